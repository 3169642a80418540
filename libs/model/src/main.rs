//! Checks the larger configurations and prints what each came to (`make model`). Exits with 1 when one does not hold.

use std::{process::ExitCode, time::Instant};

use penstock_model::{Configuration, Protocol, liveness};
use stateright::{Checker, Model};

fn main() -> ExitCode {
    println!(
        "{:<88} {:>10} {:>11} {:>6} {:>8} {:>8}",
        "configuration", "states", "edges", "depth", "safety", "liveness"
    );
    let mut holds = true;
    for configuration in Configuration::LARGER {
        holds &= check(configuration);
    }
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(configuration: Configuration) -> bool {
    let protocol = Protocol { configuration };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    let checker = protocol.checker().threads(threads).spawn_bfs().join();
    let safety = began.elapsed();
    let began = Instant::now();
    let alive = liveness::check(protocol);
    let liveness = began.elapsed();
    println!(
        "{:<88} {:>10} {:>11} {:>6} {:>6} s {:>6} s",
        configuration.to_string(),
        alive.states,
        alive.edges,
        alive.depth,
        safety.as_secs(),
        liveness.as_secs()
    );
    let found = checker.discoveries();
    let mut holds = alive.stuck.is_none();
    for property in protocol.properties() {
        let violated = found.contains_key(property.name) == property.expectation.discovery_is_failure();
        if violated {
            holds = false;
            println!("does not hold: {}", property.name);
        }
    }
    if let Some(stuck) = &alive.stuck {
        println!("no receipt can be reached any more after\n{stuck}");
    }
    if checker.unique_state_count() != alive.states {
        holds = false;
        println!("the two searches differ: {} states", checker.unique_state_count());
    }
    holds
}
