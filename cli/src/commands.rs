//! Carries out one command: runtime, log, command, and the words for its failure.

use penstock_job::ExitCode;

use crate::{
    arguments::{Command, Simulation, ViewArguments},
    cancel,
    error::CommandError,
    lines::Lines,
    logs, run, simulate, status, url, validate, verify,
    view::{Event, Screen},
    why,
};

/// Carries a command out, says on stderr why it failed if it did, and returns the code to exit with.
pub(crate) fn execute(command: Command) -> ExitCode {
    let screen = Screen::stderr();
    logs::install(screen.clone());
    in_runtime(command, &screen).unwrap_or_else(|error| {
        screen.clear();
        screen.say(&format!("penstock: {}", error.message()));
        error.exit_code()
    })
}

fn in_runtime(command: Command, screen: &Screen) -> Result<ExitCode, CommandError> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CommandError::Runtime)?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Run(arguments) => {
                let view = arguments.view;
                last_event(view, run::run(*arguments, screen).await)
            }
            Command::Validate(arguments) => validate::validate(&arguments, screen).await,
            Command::Cancel(arguments) => {
                last_event(arguments.view, cancel::cancel(&arguments, screen).await)
            }
            Command::Simulate(Simulation::Provider(arguments)) => simulate::provider(arguments, screen).await,
            Command::Simulate(Simulation::Rate(arguments)) => simulate::rate(&arguments),
            Command::Simulate(Simulation::Storage(arguments)) => simulate::storage(arguments, screen).await,
            Command::Url(wanted) => url::url(&wanted, screen).await,
            Command::Verify(arguments) => verify::verify(&arguments).await,
            Command::Status(arguments) => status::status(&arguments).await,
            Command::Why(arguments) => Box::pin(why::why(&arguments)).await,
        }
    });
    // A second Ctrl-C ends the process at once, whatever still blocks a thread; otherwise nothing is left to wait for.
    runtime.shutdown_background();
    outcome
}

/// With `--json` a failure is the last event too.
fn last_event(
    view: ViewArguments,
    outcome: Result<ExitCode, CommandError>,
) -> Result<ExitCode, CommandError> {
    if view.json
        && let Err(error) = &outcome
    {
        let mut stdout = Lines::stdout();
        stdout.json(&Event::Failed {
            message: &error.message(),
            reason: error.reason(),
            exit_code: error.exit_code().code(),
        });
        // The same is said on stderr, and this failure is the one to tell.
        let _ = stdout.flush();
    }
    outcome
}
