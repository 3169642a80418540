//! Sequences of actions, each with the state that it leads to: for tests that replay them against the real code, and to
//! show how a property is violated.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::ControlFlow,
};

use stateright::Model;

use crate::{
    action::{Action, Fate},
    process::Process,
    protocol::Protocol,
    search::{Number, Search, Visitor},
    state::State,
    storage::{Incarnation, Part, Write, Writer},
};

/// A walk through the model.
#[derive(Debug, Clone)]
pub struct Trace {
    protocol: Protocol,
    moments: Vec<Moment>,
}

/// One action of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// What happens.
    pub action: Action,
    /// What there is afterwards; its `storage` is what all processes share.
    pub state: State,
}

impl Trace {
    /// The trace of these actions, each of which must be possible where it stands.
    pub fn of(protocol: Protocol, actions: impl IntoIterator<Item = Action>) -> Self {
        let mut trace = Self { protocol, moments: Vec::new() };
        trace.extend(actions);
        trace
    }

    /// What it is a walk through.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// What happens, in order.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// The state that the trace comes to.
    pub fn last(&self) -> State {
        self.moments.last().map_or_else(|| self.protocol.start(), |moment| moment.state.clone())
    }

    /// Goes on to a receipt by a shortest way without faults; stays where there is none.
    fn finished(mut self) -> Self {
        let way = shortest(self.protocol, self.last(), |action| !action.is_fault(), is_published);
        self.extend(way.unwrap_or_default());
        self
    }

    /// What it covers.
    fn sorts(&self) -> BTreeSet<String> {
        let start = self.protocol.start();
        let before = std::iter::once(&start).chain(self.moments.iter().map(|moment| &moment.state));
        before
            .zip(&self.moments)
            .flat_map(|(state, moment)| sorts(self.protocol, state, &moment.action))
            .collect()
    }

    fn extend(&mut self, actions: impl IntoIterator<Item = Action>) {
        let mut at = self.last();
        for action in actions {
            if let Some(state) = self.protocol.next_state(&at, action.clone()) {
                self.moments.push(Moment { action, state: state.clone() });
                at = state;
            }
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.moments.iter().try_for_each(|moment| writeln!(formatter, "  {}", moment.action))
    }
}

/// A walk of at most `length` random actions, which `seed` determines, and then on by random steps without faults until
/// there is a receipt and nothing is left to be done. `allows` may leave out what a test cannot bring about.
pub fn random(
    protocol: Protocol,
    seed: u64,
    length: usize,
    allows: impl Fn(&Trace, &Action) -> bool,
) -> Trace {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut trace = Trace::of(protocol, []);
    loop {
        let is_free = trace.moments.len() < length;
        let mut actions = protocol.possible(&trace.last());
        actions.retain(|action| (is_free || !action.is_fault()) && allows(&trace, action));
        let Some(action) = random.choice(actions) else { return trace };
        trace.extend([action]);
    }
}

/// Shortest ways to every sort of action that is possible at all ([`Action::sort`]), to each sort of crash before every step,
/// and to what lands after its process has ended, all prolonged to a receipt. What a longer trace has anyway gets none of
/// its own.
pub fn covering(protocol: Protocol) -> Vec<Trace> {
    let mut sorts = Sorts { protocol, first: BTreeMap::new() };
    let search = Search::run(protocol, protocol.start(), &mut sorts);
    let mut ways: Vec<_> = sorts
        .first
        .into_values()
        .map(|(from, action)| {
            let mut way = search.way_to(from);
            way.push(action);
            way
        })
        .collect();
    ways.sort_by_key(|way| std::cmp::Reverse(way.len()));
    let mut covered = BTreeSet::new();
    let mut traces = Vec::new();
    for way in ways {
        let trace = Trace::of(protocol, way);
        if !trace.sorts().is_subset(&covered) {
            let trace = trace.finished();
            covered.append(&mut trace.sorts());
            traces.push(trace);
        }
    }
    traces
}

/// A shortest way to a state that `wanted` holds for; `None` when there is none.
pub fn shortest_to(protocol: Protocol, wanted: impl Fn(&State) -> bool) -> Option<Trace> {
    let way = shortest(protocol, protocol.start(), |_| true, wanted)?;
    Some(Trace::of(protocol, way))
}

fn is_published(state: &State) -> bool {
    state.storage.receipt.is_some()
}

fn shortest(
    protocol: Protocol,
    start: State,
    follows: impl Fn(&Action) -> bool,
    wanted: impl Fn(&State) -> bool,
) -> Option<Vec<Action>> {
    let mut until = Until { follows, wanted, found: None };
    let search = Search::run(protocol, start, &mut until);
    until.found.map(|number| search.way_to(number))
}

struct Until<F, W> {
    follows: F,
    wanted: W,
    found: Option<Number>,
}

impl<F: Fn(&Action) -> bool, W: Fn(&State) -> bool> Visitor for Until<F, W> {
    fn follows(&self, action: &Action) -> bool {
        (self.follows)(action)
    }

    fn state(&mut self, number: Number, state: &State) -> ControlFlow<()> {
        if (self.wanted)(state) {
            self.found = Some(number);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// What an action is in a state, for a set of traces that has to cover everything: of a crash also the steps that its
/// process could have taken instead, of a late write whether its process has ended.
fn sorts(protocol: Protocol, state: &State, action: &Action) -> Vec<String> {
    let sort = action.sort();
    let lives =
        |number: Incarnation| matches!(state.processes.get(usize::from(number)), Some(Process::Alive(_)));
    let crashed = match action {
        Action::Crash { process, .. } => process,
        Action::LandLate(
            Write::State(_, Writer { incarnation: writer, .. }) | Write::Part(Part { writer, .. }),
        ) if !lives(*writer) => {
            return vec![format!("{sort}, its process has ended")];
        }
        _ => return vec![sort],
    };
    let steps = protocol.possible(state).into_iter().filter_map(|instead| match instead {
        Action::Take { process, fate: Fate::Told, .. } if process == *crashed => Some(instead),
        _ => None,
    });
    let waits = |step: &Action| match (step, state.processes.get(usize::from(*crashed))) {
        (Action::Take { step, subject, .. }, Some(Process::Alive(me))) => me.is_unsure_of(*step, *subject),
        _ => false,
    };
    steps
        .map(|step| {
            let again = if waits(&step) { "repeated " } else { "" };
            format!("{sort} before {again}{}", step.sort())
        })
        .collect()
}

/// For each sort of action the state where it was possible first.
#[derive(Debug)]
struct Sorts {
    protocol: Protocol,
    first: BTreeMap<String, (Number, Action)>,
}

impl Visitor for Sorts {
    fn edge(&mut self, (from, state): (Number, &State), action: &Action, _to: Number) {
        for sort in sorts(self.protocol, state, action) {
            self.first.entry(sort).or_insert_with(|| (from, action.clone()));
        }
    }
}
