//! What must hold in every state (safety), and what must be possible in some (so that the model is not empty).

use penstock_job::layout::Kind;
use stateright::Property;

use crate::{
    configuration::Configuration,
    lines::Lines,
    process::Stage,
    protocol::{Protocol, living},
    state::State,
    storage::Part,
    witness::Law,
};

/// Every property of a configuration, by name.
pub fn all(configuration: Configuration) -> Vec<Property<Protocol>> {
    let mut all = laws();
    all.extend(possibilities());
    if configuration.endings {
        all.push(Property::sometimes("a job ends early", |_, state: &State| {
            state.storage.receipt.as_ref().is_some_and(|receipt| receipt.ending)
        }));
    }
    all
}

fn laws() -> Vec<Property<Protocol>> {
    vec![
        Property::always("a receipt has one outcome for each line", |protocol: &Protocol, state| {
            receipt_is_whole(protocol.configuration, state)
        }),
        Property::always("the published files are those of the receipt", |_, state| {
            files_are_the_receipts(state)
        }),
        Property::always("finalisers publish the same", |_, state| finalisers_agree(state)),
        Property::always("no undone line is recorded before the ending is stored", |_, state| {
            ending_comes_first(state)
        }),
        Property::always("listed parts exist and are disjoint", |_, state| manifest_is_whole(state)),
        Property::always("an epoch has one incarnation", |_, state| epochs_are_exclusive(state)),
        Property::always("no answer that was kept is paid again", |_, state| keeps(state, Law::NotPaidAgain)),
        Property::always("epoch, seal, phase and ending never go back", |_, state| {
            keeps(state, Law::NeverBack)
        }),
        Property::always("a decision never changes", |_, state| keeps(state, Law::DecidedOnce)),
        Property::always("nothing is deleted before a receipt", |_, state| {
            keeps(state, Law::NotDeletedEarly)
        }),
    ]
}

fn possibilities() -> Vec<Property<Protocol>> {
    vec![
        Property::sometimes("a job is completed", |_, state: &State| {
            state.storage.receipt.as_ref().is_some_and(|receipt| !receipt.ending)
        }),
        Property::sometimes("a part of a sealed epoch is a stray", |_, state: &State| {
            state.storage.state.as_ref().is_some_and(|(content, _)| {
                let stray = |part: &&Part| part.name.epoch <= content.sealed && !content.parts.contains(part);
                state.storage.parts.iter().any(|part| stray(&part))
            })
        }),
        Property::sometimes("two processes publish", |_, state: &State| {
            living(state).filter(|(_, executor)| executor.stage.publishes()).count() > 1
        }),
    ]
}

fn keeps(state: &State, law: Law) -> bool {
    state.witness.broken != Some(law)
}

/// The lines of parts that are disjoint; `None` when they are not.
fn disjoint_lines(parts: &[Part]) -> Option<Lines> {
    parts
        .iter()
        .try_fold(Lines::NONE, |seen, part| seen.is_disjoint(part.lines).then_some(seen.and(part.lines)))
}

fn receipt_is_whole(configuration: Configuration, state: &State) -> bool {
    state
        .storage
        .receipt
        .as_ref()
        .is_none_or(|receipt| disjoint_lines(&receipt.parts) == Some(Lines::first(configuration.lines)))
}

fn files_are_the_receipts(state: &State) -> bool {
    let Some(receipt) = &state.storage.receipt else { return true };
    Kind::ALL.into_iter().all(|kind| {
        let expected: Vec<_> = receipt.parts.iter().filter(|part| part.name.kind == kind).copied().collect();
        state.storage.finals[kind].as_deref().unwrap_or_default() == expected
    })
}

/// Whoever publishes carries out one decision, and what is published is of that one.
fn finalisers_agree(state: &State) -> bool {
    let mut finalisers = living(state).filter(|(_, executor)| executor.stage.publishes());
    let Some((_, first)) = finalisers.next() else { return true };
    let decision = first.book.decision();
    let published = Kind::ALL.into_iter().all(|kind| {
        state.storage.finals[kind].as_ref().is_none_or(|sources| *sources == first.book.of_kind(kind))
    });
    published && finalisers.all(|(_, executor)| executor.book.decision() == decision)
}

fn ending_comes_first(state: &State) -> bool {
    let decided = state.storage.state.as_ref().is_some_and(|(content, _)| content.ending);
    decided || state.storage.parts.iter().all(|part| part.name.kind == Kind::Results)
}

fn manifest_is_whole(state: &State) -> bool {
    let Some((content, _)) = &state.storage.state else { return true };
    let there = state.storage.receipt.is_some() || state.storage.has(&content.parts);
    there && disjoint_lines(&content.parts).is_some()
}

fn epochs_are_exclusive(state: &State) -> bool {
    let epochs: Vec<_> = living(state)
        .filter(|(_, executor)| executor.stage != Stage::Looked)
        .map(|(_, executor)| executor.book.epoch)
        .collect();
    epochs.iter().enumerate().all(|(place, epoch)| !epochs[..place].contains(epoch))
}
