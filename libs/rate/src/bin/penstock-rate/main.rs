//! The learner behind a pipe, so that the very code that is shipped can be judged from outside in virtual time.

mod pipe;

use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::process::ExitCode;

use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use penstock_rate::{Limits, Mode, Profile};

use crate::pipe::Asked;

/// Say when requests may go, given what became of those before.
///
/// Reads one event per line from standard input and answers each with one line, in virtual time. Times are in
/// seconds.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    /// Speak over standard input and output
    #[arg(long, required = true)]
    stdio: bool,
    /// How the rate is found
    #[arg(long, default_value_t = Mode::Adaptive, value_parser = modes())]
    mode: Mode,
    /// What kind of provider is asked
    #[arg(long, default_value_t = Profile::OpenAi, value_parser = profiles())]
    profile: Profile,
    /// Upper bound on requests per minute
    #[arg(long, value_name = "N")]
    rpm: Option<NonZeroU32>,
    /// Upper bound on tokens per minute
    #[arg(long, value_name = "N")]
    tpm: Option<NonZeroU64>,
    /// Upper bound on requests in flight
    #[arg(long, value_name = "N")]
    max_in_flight: Option<NonZeroU32>,
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(Mode::as_str)).try_map(|name| name.parse::<Mode>())
}

fn profiles() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::as_str)).try_map(|name| name.parse::<Profile>())
}

fn main() -> ExitCode {
    let Arguments { mode, profile, rpm, tpm, max_in_flight, .. } = Arguments::parse();
    let limits = Limits { rpm, tpm, max_in_flight };
    match pipe::converse(io::stdin().lock(), io::stdout().lock(), Asked { mode, profile, limits }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("penstock-rate: failed to {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent_and_offer_exactly_the_modes_there_are() {
        Arguments::command().debug_assert();
        let parse = |mode: &str| Arguments::try_parse_from(["penstock-rate", "--stdio", "--mode", mode]);
        for mode in Mode::ALL {
            assert_eq!(parse(mode.as_str()).unwrap().mode, mode);
        }
        assert!(parse("other").unwrap_err().to_string().contains("[possible values: fixed, aimd, adaptive]"));
    }
}
