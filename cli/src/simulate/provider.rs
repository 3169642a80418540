//! `penstock simulate provider`: a provider that costs nothing, until Ctrl-C.

use penstock_job::ExitCode;
use penstock_simulator::{
    Distribution, Enforcement, Fault, FaultRule, ProviderSettings, Quota, Requests, Server,
};

use crate::{
    arguments::ProviderArguments,
    error::CommandError,
    lines::Lines,
    signals::Signals,
    spec_file,
    view::{Screen, grouped},
};

/// Serves until a signal. The first line on stdout is the base URL; the counts follow at the end, on stderr.
pub(crate) async fn provider(
    arguments: ProviderArguments,
    screen: &Screen,
) -> Result<ExitCode, CommandError> {
    let mut signals = Signals::listen()?;
    let file = arguments.settings.as_deref().map(spec_file::read::<ProviderSettings>).transpose()?;
    let listen = arguments.listen;
    let server = Server::start(over(arguments, file.unwrap_or_default()), listen).await?;
    let mut stdout = Lines::stdout();
    stdout.text(&server.base_url());
    stdout.flush()?;
    signals.next().await;
    let requests = server.requests();
    server.shutdown().await;
    screen.say(&told(requests));
    Ok(ExitCode::Completed)
}

/// The settings that the arguments ask for over a file's.
fn over(arguments: ProviderArguments, mut settings: ProviderSettings) -> ProviderSettings {
    let quota = |per_minute| Quota { per_minute, enforcement: Enforcement::MinuteBucket };
    let limits = &mut settings.limits;
    limits.requests = arguments.rpm.map(|rpm| quota(u64::from(rpm.get()))).or(limits.requests);
    limits.tokens = arguments.tpm.map(|tpm| quota(tpm.get())).or(limits.tokens);
    settings.seed = arguments.seed.unwrap_or(settings.seed);
    if let Some(latency) = arguments.latency_ms {
        settings.latency.start_ms = Distribution::Constant(f64::from(latency));
    }
    if let Some(share) = arguments.fail_share {
        settings.faults.push(FaultRule { share, ..FaultRule::always(Fault::InternalError) });
    }
    settings.log.file = arguments.log.or(settings.log.file);
    settings
}

fn told(requests: Requests) -> String {
    let Requests { received, succeeded, throttled, failed, unanswered } = requests;
    format!(
        "{} requests: {} answered, {} refused for the rate, {} refused or failed, {} without an answer",
        grouped(received),
        grouped(succeeded),
        grouped(throttled),
        grouped(failed),
        grouped(unanswered)
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command, Simulation};

    fn settings(flags: &str, file: ProviderSettings) -> ProviderSettings {
        let words = ["penstock", "simulate", "provider"].into_iter().chain(flags.split_whitespace());
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Simulate(Simulation::Provider(arguments)) => over(arguments, file),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flag_wins_over_the_settings_file() {
        let file = ProviderSettings { seed: 7, ..ProviderSettings::default() };
        assert_eq!(settings("", file.clone()), file);
        let settings = settings("--seed 8 --rpm 60 --latency-ms 5 --fail-share 0.5 --log x", file);
        assert_eq!(settings.seed, 8);
        assert_eq!(settings.limits.requests.unwrap().per_minute, 60);
        assert_eq!(settings.latency.start_ms, Distribution::Constant(5.0));
        assert!((settings.faults[0].share - 0.5).abs() < f64::EPSILON);
        assert_eq!(settings.log.file.as_deref(), Some("x".as_ref()));
    }
}
