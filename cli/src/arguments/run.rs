//! The arguments of `penstock run`, and how they lie over a job file: a flag wins over the file's field.

use std::{
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
};

use clap::Args;
use penstock_batchfile::Endpoint;
use penstock_job::{
    JobSpec,
    money::Decimal,
    spec::{FormatChoice, KeySource, OnInvalid, ProviderKind, ProviderSpec, RateMode},
};

use super::{ViewArguments, duration, word};

/// Arguments of `penstock run`.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The input, one JSON object a line: a path, `gs://bucket/object` or `s3://bucket/object`
    #[arg(value_name = "INPUT", required_unless_present = "job")]
    pub(crate) input: Option<String>,
    /// Where results, errors and receipt go: a folder, `gs://bucket/path` or `s3://bucket/path`
    #[arg(long, short, value_name = "OUTPUT", required_unless_present = "job")]
    pub(crate) output: Option<String>,
    /// A job file (YAML or JSON): routes, TLS, sampling parameters, per-model limits; flags win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) job: Option<PathBuf>,
    /// Format of the lines [default: auto]
    #[arg(long, value_parser = word::parser::<FormatChoice>(word::FORMATS))]
    pub(crate) format: Option<FormatChoice>,
    /// What to do about invalid lines: record them as rejected, or refuse the input [default: skip]
    #[arg(long, value_parser = word::parser::<OnInvalid>(word::ON_INVALID))]
    pub(crate) on_invalid: Option<OnInvalid>,

    /// Who answers [default: openai]
    #[arg(long, help_heading = "Provider", value_parser = word::parser::<ProviderKind>(word::PROVIDERS))]
    pub(crate) provider: Option<ProviderKind>,
    /// Where the provider is, with or without /v1 [default: the provider's own address, where it has one]
    #[arg(long, help_heading = "Provider", value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The version of the API that is asked for (azure-openai only) [default: 2024-10-21]
    #[arg(long, help_heading = "Provider", value_name = "VERSION")]
    pub(crate) api_version: Option<String>,
    /// The environment variable that holds the API key [default: the provider's: `OPENAI_API_KEY`,
    /// `ANTHROPIC_API_KEY`, `AZURE_OPENAI_API_KEY`, or `GEMINI_API_KEY` and then `GOOGLE_API_KEY`]
    #[arg(long, help_heading = "Provider", value_name = "NAME", conflicts_with = "api_key_file")]
    pub(crate) api_key_env: Option<String>,
    /// The file that holds the API key; read again when the key is refused
    #[arg(long, help_heading = "Provider", value_name = "FILE")]
    pub(crate) api_key_file: Option<PathBuf>,

    /// The model of lines that name none
    #[arg(long, help_heading = "Requests", value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The endpoint of all lines [default: that of the first line, else /v1/chat/completions]
    #[arg(long, help_heading = "Requests", value_name = "PATH")]
    pub(crate) endpoint: Option<Endpoint>,
    /// System prompt of every line (format prompts only)
    #[arg(long, help_heading = "Requests", value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    /// Most tokens of one answer (format prompts only)
    #[arg(long, help_heading = "Requests", value_name = "N")]
    pub(crate) max_output_tokens: Option<NonZeroU32>,
    /// A name that makes this job another one: to have the same work done again, into another output
    #[arg(long, help_heading = "Requests", value_name = "NAME")]
    pub(crate) run: Option<String>,

    /// How the rate is found: from the provider's answers, your own limits and nothing else, or careful increase and
    /// decrease [default: adaptive; fixed with --provider simulated]
    #[arg(long, help_heading = "Limits", value_parser = word::parser::<RateMode>(word::RATES))]
    pub(crate) rate: Option<RateMode>,
    /// Most requests per minute
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub(crate) rpm: Option<NonZeroU32>,
    /// Most tokens per minute
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub(crate) tpm: Option<NonZeroU64>,
    /// Most requests in flight [default: what memory and open files allow, at least 200]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub(crate) max_in_flight: Option<NonZeroU32>,
    /// Attempts before a line fails; refusals for rate or load do not count [default: 8]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub(crate) max_attempts: Option<NonZeroU32>,
    /// Completion window from the first start, such as 24h; then the rest is recorded as expired [default: none]
    #[arg(long, help_heading = "Limits", value_name = "TIME", value_parser = duration::seconds)]
    pub(crate) deadline: Option<NonZeroU64>,
    /// Most tokens that the job uses up, of requests and answers together; then it stops, and goes on with a larger budget
    /// [default: none]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub(crate) token_budget: Option<NonZeroU64>,
    /// Most money that the job costs, such as 12.50; needs `prices` in the job file [default: none]
    #[arg(long, help_heading = "Limits", value_name = "AMOUNT")]
    pub(crate) cost_budget: Option<Decimal>,

    /// Where jobs on one key tell each other what they learn of its rate: a folder, a path in a bucket, or none
    /// [default: `$XDG_STATE_HOME/penstock`, else `~/.local/state/penstock`]
    #[arg(long, help_heading = "Limits", value_name = "URI")]
    pub(crate) shared_state: Option<String>,
    /// How often this job tells the others there what it sends
    #[arg(long, help_heading = "Limits", value_name = "TIME", default_value = "10s", value_parser = duration::seconds)]
    pub(crate) share_every: NonZeroU64,

    #[command(flatten)]
    pub(crate) view: ViewArguments,
    /// Take the job over from another process that runs it; that one then stops
    #[arg(long)]
    pub(crate) take_over: bool,
}

/// Replaces a field that was given.
fn replace<T>(field: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *field = given;
    }
}

impl RunArguments {
    /// The job that these arguments ask for over the job file `spec`.
    pub(crate) fn over(self, mut spec: JobSpec) -> JobSpec {
        spec.input = self.input.or(spec.input);
        spec.output = self.output.or(spec.output);
        replace(&mut spec.format, self.format);
        replace(&mut spec.on_invalid, self.on_invalid);
        if let Some(kind) = self.provider.filter(|kind| *kind != spec.provider.kind) {
            // Address, key and routes of another provider mean nothing to this one, and its key must not go there.
            spec.provider = ProviderSpec { kind, ..ProviderSpec::default() };
        }
        let key = self.api_key_env.map(KeySource::Env).or(self.api_key_file.map(KeySource::File));
        spec.provider.base_url = self.base_url.or(spec.provider.base_url);
        spec.provider.api_version = self.api_version.or(spec.provider.api_version);
        spec.provider.api_key = key.or(spec.provider.api_key);
        spec.model = self.model.or(spec.model);
        spec.endpoint = self.endpoint.or(spec.endpoint);
        spec.system_prompt = self.system_prompt.or(spec.system_prompt);
        spec.max_output_tokens = self.max_output_tokens.or(spec.max_output_tokens);
        replace(&mut spec.run, self.run);
        let limits = &mut spec.limits;
        limits.rate = self.rate.or(limits.rate);
        limits.rpm = self.rpm.or(limits.rpm);
        limits.tpm = self.tpm.or(limits.tpm);
        limits.max_in_flight = self.max_in_flight.or(limits.max_in_flight);
        replace(&mut limits.max_attempts, self.max_attempts);
        limits.deadline_seconds = self.deadline.or(limits.deadline_seconds);
        spec.budget.tokens = self.token_budget.or(spec.budget.tokens);
        spec.budget.cost = self.cost_budget.or(spec.budget.cost);
        spec
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn arguments(text: &str) -> RunArguments {
        let words = ["penstock", "run"].into_iter().chain(text.split_whitespace());
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Run(arguments) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let file = JobSpec { model: Some("file".to_owned()), run: "file".to_owned(), ..JobSpec::default() };
        let spec = arguments("in --output out --run flag --rpm 7 --deadline 1h").over(file);
        assert_eq!(spec.model.as_deref(), Some("file"));
        assert_eq!(spec.run, "flag");
        assert_eq!(spec.limits.rpm, NonZeroU32::new(7));
        assert_eq!(spec.limits.deadline_seconds, NonZeroU64::new(3_600));
        assert_eq!(spec.limits.max_attempts.get(), 8);
    }

    #[test]
    fn every_flag_of_the_contract_reaches_the_job() {
        let spec = arguments(
            "in --output out --format openai --provider azure-openai --base-url http://h --api-version v --model m --endpoint \
             /v1/responses --api-key-env KEY --rate aimd --run again --rpm 1 --tpm 2 --max-in-flight 3 --max-attempts 4 \
             --deadline 5s --token-budget 7 --cost-budget 8.50 --on-invalid fail --system-prompt S --max-output-tokens 6 --json",
        )
        .over(JobSpec::default());
        let written = serde_json::to_value(&spec).unwrap();
        for (pointer, value) in [
            ("/input", "\"in\""),
            ("/output", "\"out\""),
            ("/format", "\"openai\""),
            ("/provider/kind", "\"azure-openai\""),
            ("/provider/base_url", "\"http://h\""),
            ("/provider/api_version", "\"v\""),
            ("/provider/api_key/env", "\"KEY\""),
            ("/model", "\"m\""),
            ("/endpoint", "\"/v1/responses\""),
            ("/limits/rate", "\"aimd\""),
            ("/run", "\"again\""),
            ("/limits/rpm", "1"),
            ("/limits/tpm", "2"),
            ("/limits/max_in_flight", "3"),
            ("/limits/max_attempts", "4"),
            ("/limits/deadline_seconds", "5"),
            ("/budget/tokens", "7"),
            ("/budget/cost", "\"8.50\""),
            ("/on_invalid", "\"fail\""),
            ("/system_prompt", "\"S\""),
            ("/max_output_tokens", "6"),
        ] {
            assert_eq!(
                written.pointer(pointer).map(ToString::to_string).as_deref(),
                Some(value),
                "{pointer}"
            );
        }
    }

    #[test]
    fn another_provider_than_the_files_takes_neither_its_address_nor_its_key() {
        let mut file = JobSpec::default();
        file.provider.kind = ProviderKind::OpenAiCompatible;
        file.provider.base_url = Some("http://gateway".to_owned());
        file.provider.api_key = Some(KeySource::Env("KEY".to_owned()));
        let same = arguments("in --output out --provider openai-compatible").over(file.clone());
        assert_eq!(same.provider, file.provider);
        let other = arguments("in --output out --provider simulated").over(file);
        assert_eq!(other.provider, ProviderSpec { kind: ProviderKind::Simulated, ..ProviderSpec::default() });
    }
}
