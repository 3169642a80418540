//! The soak: rounds of everything that may happen to a job at once, drawn from a seed, until a time is over. Each round
//! must end with every line accounted for.
//!
//! | module | owns |
//! |---|---|
//! | `plan` | what happens in a round, drawn from the seed. Pure |
//! | `input` | the lines of a round: odd ids, invalid and blank lines |
//! | `provider` | how the provider double treats a run |
//! | `bucket` | how the storage double treats a run |
//! | `place` | the job of a round in a folder or a bucket, provider double and witness, and its processes |
//! | `clock` | the wall clock of a round, which jumps |
//! | `round` | carries a plan out and checks what is left |
//! | `report` | what was done, and what came of it |
//! | `bound` | how many requests may have been sent again |
//!
//! Without arguments, as `cargo test` runs it, it does a few rounds. One seed gives one plan; what comes of it also depends
//! on how fast the machine is at that moment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bound;
mod bucket;
mod clock;
mod input;
mod place;
mod plan;
mod provider;
mod report;
mod round;
#[path = "../site/mod.rs"]
#[expect(dead_code, reason = "the crash tests use the rest")]
mod site;
#[path = "../witness/mod.rs"]
#[expect(dead_code, reason = "its own tests run with the crash tests")]
mod witness;

use std::{
    env,
    process::{self, ExitCode},
    time::{Duration, Instant},
};

use clap::Parser;

use crate::{plan::Plan, report::Report, site::Kind};

/// Rounds that are done where no time is given, in a folder and in a bucket by turns, and the seed of some that are short
/// and unlike.
const FEW: u32 = 5;
const SEED: u64 = 6;

/// Runs jobs that are killed, paused, overtaken and misled, and accounts for every line.
#[derive(Debug, Parser)]
struct Arguments {
    /// No round begins later than so many seconds after the start.
    #[arg(long)]
    seconds: Option<u64>,
    /// Decides every draw.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Only this round of the seed.
    #[arg(long)]
    round: Option<u32>,
    /// Only rounds in a folder, or only in a bucket of the storage double; both where nothing is said.
    #[arg(long, value_enum)]
    place: Option<Kind>,
    /// What `cargo test` passes on: flags of its own harness, and parts of the names of tests.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    of_cargo: Vec<String>,
}

impl Arguments {
    /// Where a round is to be; `None` where that is drawn.
    fn place_of(&self, number: u32) -> Option<Kind> {
        let by_turns = if number % 2 == 1 { Kind::Folder } else { Kind::Bucket };
        self.place.or((self.seconds.is_none() && self.round.is_none()).then_some(by_turns))
    }

    /// Whether the tests that cargo was asked for are others.
    fn is_filtered_out(&self) -> bool {
        let mut names = self.of_cargo.iter().filter(|word| !word.starts_with('-')).peekable();
        names.peek().is_some() && !names.any(|name| "soak".contains(name.as_str()))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.is_filtered_out() {
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let mut whole = Report::default();
    let (mut rounds, mut failures) = (0u32, 0u32);
    for number in arguments.round.unwrap_or(1).. {
        let enough = match (arguments.round, arguments.seconds) {
            (Some(_), _) => rounds == 1,
            (None, Some(seconds)) => began.elapsed() >= Duration::from_secs(seconds),
            (None, None) => rounds == FEW,
        };
        if enough {
            break;
        }
        rounds += 1;
        let plan = Plan::draw(arguments.seed, number, arguments.place_of(number));
        let (told, kind) = (plan.to_string(), plan.kind);
        let name = format!("penstock-soak-{}-{}-{number}", process::id(), arguments.seed);
        let folder = env::temp_dir().join(name);
        let began = Instant::now();
        // A task of its own, so that a panic ends only this round.
        if let Ok(report) = tokio::spawn(round::run(plan, folder.clone())).await {
            println!("round {number}: {told}: {report}, {:.1} s", began.elapsed().as_secs_f64());
            whole.add(&report);
        } else {
            failures += 1;
            println!(
                "round {number}: {told}: FAILED; it left {}; to repeat it: make soak SEED={} ROUND={number} PLACE={kind}",
                folder.display(),
                arguments.seed
            );
        }
    }
    println!(
        "soak: seed {}, {rounds} rounds, {failures} failed, {whole}, {:.0} s",
        arguments.seed,
        began.elapsed().as_secs_f64()
    );
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
