//! Which sequences are replayed.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    thread,
};

use penstock_job::{Step, layout::Kind};
use penstock_model::{
    Action, Configuration, Fate, Faults, Omission, Protocol, State, Subject, Trace,
    process::{Process, Stage},
    scratch::Taken,
    trace,
};

use crate::{replay::replay, timing};

const SMALL: Protocol = Protocol { configuration: Configuration::SMALL };

/// The smallest world in which each rule shows.
const SMALLEST: Configuration = Configuration {
    lines: 1,
    incarnations: 2,
    faults: Faults { crashes: 0, lost_scratch: 0, stops: 0, ambiguous: 0 },
    endings: true,
    omission: None,
};

/// More of everything than can be checked exhaustively.
const LARGE: Protocol = Protocol {
    configuration: Configuration {
        lines: 4,
        incarnations: 3,
        faults: Faults { crashes: 2, lost_scratch: 1, stops: 0, ambiguous: 3 },
        endings: true,
        omission: None,
    },
};

/// Replays made at the same time.
const AT_ONCE: usize = 4;

/// Replays `count` traces and fails with the first divergence.
fn replay_all(protocol: Protocol, count: u64, trace: impl Fn(u64) -> Trace + Sync) {
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                return;
            }
            if let Err(divergence) = replay(protocol, &trace(number)) {
                panic!("trace {number}: {divergence}");
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn the_code_follows_shortest_ways_to_every_sort_of_action() {
    let traces = trace::covering(SMALL);
    let actions: usize = traces.iter().map(|trace| trace.moments().len()).sum();
    println!("{} traces, {actions} actions", traces.len());
    replay_all(SMALL, traces.len() as u64, |number| traces[usize::try_from(number).unwrap()].clone());
}

/// The traces of both worlds from the seeds 0 to 299, or to as many as the variable `CONFORMANCE_SEEDS` says.
#[test]
fn the_code_follows_random_ways() {
    let seeds = std::env::var("CONFORMANCE_SEEDS").map_or(300, |seeds| seeds.parse().unwrap());
    for protocol in [SMALL, LARGE] {
        let actions = AtomicUsize::new(0);
        replay_all(protocol, seeds, |seed| {
            let way = trace::random(protocol, seed, 60, timing::allows);
            actions.fetch_add(way.moments().len(), Relaxed);
            way
        });
        println!("{}: {seeds} traces, {} actions", protocol.configuration, actions.into_inner());
    }
}

/// A shortest way to `wanted` in the model without a rule, which the code keeps: it must diverge.
fn diverges_without(rule: Omission, wanted: impl Fn(&State) -> bool, problem: &str) {
    let protocol = Protocol { configuration: SMALLEST.without(rule) };
    let way = trace::shortest_to(protocol, wanted).unwrap();
    let divergence = replay(protocol, &way).expect_err("the code leaves the rule out, too").to_string();
    println!("{divergence}");
    assert!(divergence.contains(problem), "it diverges elsewhere:\n{divergence}");
}

fn answers(state: &State, process: usize) -> bool {
    matches!(&state.processes[process], Process::Alive(me) if me.stage == Stage::Answering)
}

#[test]
fn the_code_diverges_from_a_model_without_the_seal() {
    let second = |state: &State| {
        let Process::Alive(me) = &state.processes[1] else { return false };
        me.book.epoch.0 == 2 && me.stage == Stage::Answering
    };
    diverges_without(Omission::Seal, second, "it does not come to recover");
}

#[test]
fn the_code_diverges_from_a_model_without_the_freeze() {
    let composed = |state: &State| state.storage.finals.values().any(Option::is_some);
    diverges_without(Omission::Freeze, composed, "the store holds");
}

#[test]
fn the_code_diverges_from_a_model_without_the_writers_name() {
    diverges_without(
        Omission::Writer,
        |state| answers(state, 0) && answers(state, 1),
        "ended: Err(ClaimLost)",
    );
}

#[test]
fn the_code_diverges_from_a_model_without_the_endings_decision() {
    let recorded = |state: &State| state.storage.parts.iter().any(|part| part.name.kind == Kind::Errors);
    diverges_without(Omission::Ending, recorded, "the store holds");
}

/// Where a later process has done that with the file of a process that still lives, its owner uploads it: replays this, and
/// tells what the model says of the owner and whether its part is stored.
fn uploads_where(is_taken: impl Fn(Taken) -> bool) -> (Process, bool) {
    let protocol = Protocol { configuration: SMALLEST };
    let wanted = |state: &State| {
        let Process::Alive(owner) = &state.processes[0] else { return false };
        let open = owner.files.open[Kind::Results];
        owner.stage == Stage::Answering && !open.lines.is_empty() && is_taken(open.taken)
    };
    let way = trace::shortest_to(protocol, wanted).unwrap();
    let actions = way.moments().iter().map(|moment| moment.action.clone());
    let (step, subject) = (Step::Upload, Subject::Kind(Kind::Results));
    let upload = Action::Take { process: 0, step, subject, fate: Fate::Told };
    let way = Trace::of(protocol, actions.chain([upload]));
    println!("{way}");
    replay(protocol, &way).unwrap_or_else(|divergence| panic!("{divergence}"));
    let last = way.last();
    let is_stored = last.storage.parts.iter().any(|part| part.writer == 0);
    (last.processes[0].clone(), is_stored)
}

#[test]
fn a_file_that_is_only_copied_can_still_become_a_stray() {
    let (owner, is_stored) =
        uploads_where(|taken| matches!(taken, Taken::By(successors) if successors.contains(1)));
    assert!(is_stored && matches!(owner, Process::Alive(_)), "{owner:?}");
}

#[test]
fn who_would_upload_a_file_that_a_successor_has_deleted_exits() {
    let (owner, is_stored) = uploads_where(|taken| taken == Taken::Deleted);
    assert!(!is_stored && matches!(owner, Process::Gone(_)), "{owner:?}");
}
