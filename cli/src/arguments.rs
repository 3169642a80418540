//! What can be said on the command line. Owns names, help and the form of single values; what they mean together is
//! decided by the commands.

mod duration;
mod run;
mod simulate;
mod url;
mod word;

use clap::{Args, Parser, Subcommand};
use penstock_batchfile::Endpoint;
use penstock_job::spec::FormatChoice;

pub(crate) use self::{
    run::RunArguments,
    simulate::{ProviderArguments, RateArguments, Simulation, StorageArguments},
    url::{UploadArguments, UrlArguments, UrlFor},
};

/// Run large batches of LLM requests and account for every line.
#[derive(Debug, Parser)]
#[command(name = "penstock", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  completed; verify: the receipt holds; validate: every line is valid
    3  failed, or the input was refused; validate: a line is invalid; simulate rate: a range does not hold
    4  cancelled or expired
   64  something must be corrected first
   65  the output belongs to another job
   66  stored files are damaged; verify: the receipt is contradicted
   69  the storage does not answer
   70  a defect of Penstock; nothing was published
   75  stopped; the same command goes on
   76  another process runs the job
  130  stopped at once

PENSTOCK_LOG=info (or debug) shows more of what happens.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a job, or resume it: the same command goes on where it was, and says so when the job is done
    Run(Box<RunArguments>),
    /// Name every invalid line of an input; nothing is sent and nothing is written
    Validate(ValidateArguments),
    /// Derive a job's receipt again from its output alone, and name the first contradiction
    Verify(OutputArguments),
    /// Say where a job is, who runs it, and what to do next
    Status(StatusArguments),
    /// End a job before it is done; what was answered is published
    Cancel(CancelArguments),
    /// Say why a job in a cluster is not further, and what helps; also `kubectl penstock why`
    Why(WhyArguments),
    /// Stand in for something that costs money
    #[command(subcommand)]
    Simulate(Simulation),
    /// Let others upload or download one object of a bucket, without credentials of their own
    #[command(subcommand)]
    Url(UrlFor),
}

/// Arguments of `penstock validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// The input: a path, `gs://bucket/object` or `s3://bucket/object`
    #[arg(value_name = "INPUT")]
    pub(crate) input: String,
    /// Format of the lines
    #[arg(long, default_value = "auto", value_parser = word::parser::<FormatChoice>(word::FORMATS))]
    pub(crate) format: FormatChoice,
    /// The endpoint of all lines [default: that of the first line, else /v1/chat/completions]
    #[arg(long, value_name = "PATH")]
    pub(crate) endpoint: Option<Endpoint>,
    /// The model of OpenAI lines that name none; without it they are invalid
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Reject lines with fields that the format does not have
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write one JSON object for each invalid line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `penstock status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Every change of the rate that is remembered, with its cause; otherwise the last three
    #[arg(long)]
    pub(crate) decisions: bool,
}

/// Arguments of the commands that look at an output.
#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// The job's output: a folder, `gs://bucket/path` or `s3://bucket/path`
    #[arg(value_name = "OUTPUT")]
    pub(crate) output: String,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `penstock cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// The job's output: a folder, `gs://bucket/path` or `s3://bucket/path`
    #[arg(value_name = "OUTPUT")]
    pub(crate) output: String,
    #[command(flatten)]
    pub(crate) view: ViewArguments,
}

/// Arguments of `penstock why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// The BatchJob, in the namespace of the kubeconfig if none is named
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) batch_job: String,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a job that is being run shows itself.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ViewArguments {
    /// Write one JSON event a line on stdout, instead of the view on stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Show only errors and the result
    #[arg(long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use penstock_job::ExitCode;

    use super::*;
    use crate::documented;

    /// Each command with its name as it is typed, those of `simulate` by both words.
    fn commands() -> Vec<(String, clap::Command)> {
        let whole = Arguments::command();
        let named = |command: &clap::Command| (command.get_name().to_owned(), command.clone());
        let (leaves, groups): (Vec<_>, Vec<_>) =
            whole.get_subcommands().map(named).partition(|(_, command)| !command.has_subcommands());
        let inner = groups.iter().flat_map(|(group, command)| {
            command
                .get_subcommands()
                .map(move |inner| (format!("{group} {}", inner.get_name()), inner.clone()))
        });
        leaves.into_iter().chain(inner).collect()
    }

    #[test]
    fn the_documented_commands_and_exit_codes_are_those_of_the_program() {
        let rows = documented::table("Commands");
        let told: Vec<_> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(told, commands().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        let codes: BTreeSet<_> = rows.iter().flat_map(|row| row[2].split(", ")).collect();
        let real: Vec<_> = ExitCode::ALL.iter().map(|code| code.code().to_string()).collect();
        assert_eq!(codes, real.iter().map(String::as_str).collect());
    }

    #[test]
    fn the_documented_flags_are_those_of_the_program() {
        for (name, command) in commands() {
            let rows = documented::table(&format!("penstock {name}"));
            let told: BTreeSet<_> = rows.iter().map(|row| row[0].split(' ').next().unwrap()).collect();
            let flags = command.get_arguments().filter_map(|argument| argument.get_long());
            let flags: BTreeSet<_> = flags.map(|flag| format!("--{flag}")).collect();
            assert_eq!(told, flags.iter().map(String::as_str).collect(), "penstock {name}");
        }
    }

    #[test]
    fn the_help_names_every_exit_code() {
        let told: Vec<_> = EXIT_CODES
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.parse::<u8>().ok())
            .collect();
        assert_eq!(told, ExitCode::ALL.map(ExitCode::code));
    }

    #[test]
    fn names_and_values_of_the_arguments_do_not_contradict_one_another() {
        Arguments::command().debug_assert();
    }
}
