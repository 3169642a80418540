//! The small configuration, checked exhaustively; and what happens without the rules that look redundant.

use penstock_model::{
    Configuration, Faults, Omission, Protocol, State, Trace, liveness, process::Process, trace,
};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

const SMALL: Protocol = Protocol { configuration: Configuration::SMALL };

const STOPPED: Protocol = Protocol { configuration: Configuration::STOPPED };

const NO_FAULTS: Configuration = Configuration {
    lines: 1,
    incarnations: 2,
    faults: Faults { crashes: 0, lost_scratch: 0, stops: 0, ambiguous: 0 },
    endings: false,
    omission: None,
};

#[test]
fn every_property_holds_in_every_state_of_the_small_configuration() {
    let checker = SMALL.checker().spawn_bfs().join();
    println!("{}: {} states", Configuration::SMALL, checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn every_property_holds_in_every_state_where_a_process_is_told_to_stop() {
    let checker = STOPPED.checker().spawn_bfs().join();
    println!("{}: {} states", Configuration::STOPPED, checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn a_receipt_stays_reachable_without_further_faults() {
    for protocol in [SMALL, STOPPED] {
        let liveness = liveness::check(protocol);
        println!(
            "{}: {} states, {} edges, depth {}",
            protocol.configuration, liveness.states, liveness.edges, liveness.depth
        );
        let stuck = liveness.stuck;
        assert!(stuck.is_none(), "no receipt can be reached any more after\n{}", stuck.unwrap());
    }
}

#[test]
fn a_process_that_is_told_to_stop_may_find_an_older_write_of_its_own_and_goes_on() {
    let finds_it = |state: &State| {
        let older = state.storage.state.as_ref().is_some_and(|(_, writer)| writer.given_up);
        let Process::Alive(executor) = &state.processes[0] else { return false };
        older && executor.current && executor.unsure.is_some()
    };
    println!("{}", trace::shortest_to(STOPPED, finds_it).unwrap());
}

/// Leaves a rule out, checks that the checker finds `violated`, and prints a shortest way to it.
fn fails_without(rule: Omission, whole: Configuration, violated: &str) {
    let holds = Protocol { configuration: whole }.checker().spawn_bfs().join();
    assert!(holds.discovery(named(violated)).is_none(), "{whole}: it is violated with the rule, too");

    let protocol = Protocol { configuration: whole.without(rule) };
    let checker = protocol.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(
        checker.discovery(named(violated)).is_some(),
        "{}: no violation is found",
        protocol.configuration
    );
    let property = protocol.property(named(violated));
    let trace = trace::shortest_to(protocol, |state| !(property.condition)(&protocol, state))
        .expect("the checker has found a way");
    println!("{}: \"{violated}\" is violated after\n{trace}", protocol.configuration);
}

/// The name of a law, as the checker knows it.
fn named(violated: &str) -> &'static str {
    let found = SMALL.properties().into_iter().find(|property| property.name == violated);
    let property = found.expect("the model has a property of that name");
    assert_eq!(property.expectation, Expectation::Always);
    property.name
}

#[test]
fn without_the_seal_a_late_part_of_an_old_epoch_pushes_out_a_newer_one() {
    let faults = Faults { crashes: 1, ..NO_FAULTS.faults };
    let configuration = Configuration { lines: 2, faults, ..NO_FAULTS };
    fails_without(Omission::Seal, configuration, "no answer that was kept is paid again");
}

#[test]
fn without_the_freeze_two_finalisers_publish_different_files() {
    fails_without(Omission::Freeze, NO_FAULTS, "finalisers publish the same");
}

#[test]
fn without_the_freeze_a_job_can_be_stuck_for_ever() {
    let faults = Faults { crashes: 1, ..NO_FAULTS.faults };
    let configuration = Configuration { faults, ..NO_FAULTS };
    let stuck = |configuration| liveness::check(Protocol { configuration }).stuck;
    assert!(stuck(configuration).is_none());
    let way = stuck(configuration.without(Omission::Freeze)).unwrap();
    println!("{configuration}: no receipt can be reached any more after\n{way}");
}

#[test]
fn without_the_writers_name_two_incarnations_share_an_epoch() {
    fails_without(Omission::Writer, NO_FAULTS, "an epoch has one incarnation");
}

#[test]
fn without_the_endings_decision_undone_lines_are_recorded_in_a_job_that_goes_on() {
    let configuration = Configuration { endings: true, ..NO_FAULTS };
    let violated = "no undone line is recorded before the ending is stored";
    fails_without(Omission::Ending, configuration, violated);
}

#[test]
fn covering_traces_have_every_step_of_the_model_and_come_to_a_receipt() {
    let traces = trace::covering(SMALL);
    let moments = || traces.iter().flat_map(Trace::moments);
    let steps = [
        "look",
        "claim",
        "adopt",
        "seal",
        "recover",
        "send",
        "append",
        "upload",
        "checkpoint",
        "end",
        "drain",
        "record-undone",
        "reconcile",
        "repair",
        "freeze",
        "compose-final",
        "write-receipt",
        "clean",
        "crash",
    ];
    for step in steps {
        let taken = moments().any(|moment| moment.action.sort().starts_with(step));
        assert!(taken, "{step} is in no trace");
    }
    for trace in &traces {
        assert!(trace.last().storage.receipt.is_some(), "no receipt after\n{trace}");
    }
    println!("{} traces, {} actions", traces.len(), moments().count());
}

#[test]
fn a_random_trace_is_determined_by_its_seed_and_comes_to_a_receipt() {
    let mut faults = 0;
    for seed in 0..50 {
        let trace = trace::random(SMALL, seed, 40, |_, _| true);
        assert_eq!(trace.moments(), trace::random(SMALL, seed, 40, |_, _| true).moments());
        assert!(trace.last().storage.receipt.is_some(), "no receipt after\n{trace}");
        faults += trace.moments().iter().filter(|moment| moment.action.is_fault()).count();
    }
    assert!(faults > 50, "{faults} faults in 50 traces");
}
