//! Breadth-first search over the states of a configuration, which records how each was reached.
//!
//! Stateright's checker tells which properties hold. What it does not give is the edges between states, which liveness
//! needs, and the shortest way to a violation, since it keeps the latest that it found.
//!
//! States that were seen are remembered by a hash of 64 bits, as in stateright. With 10,000,000 states the chance that
//! any two share one, and that one of them is therefore not looked at, is 3 in 1,000,000.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
    ops::ControlFlow,
};

use stateright::Model;

use crate::{action::Action, protocol::Protocol, state::State};

/// The number of a state, in the order in which states were reached.
pub(crate) type Number = u32;

/// How a state was reached first: from which other, by which of its actions.
#[derive(Debug, Clone, Copy)]
struct Origin {
    from: Number,
    action: u16,
}

/// What the search has seen.
#[derive(Debug)]
pub(crate) struct Search {
    protocol: Protocol,
    start: State,
    numbers: HashMap<u64, Number>,
    origins: Vec<Origin>,
    depth: usize,
}

/// What the search tells whoever runs it.
pub(crate) trait Visitor {
    /// Whether the search is to follow an action.
    fn follows(&self, _action: &Action) -> bool {
        true
    }

    /// A state is reached for the first time. [`ControlFlow::Break`] ends the search.
    fn state(&mut self, _number: Number, _state: &State) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// An action leads from one state to another.
    fn edge(&mut self, _from: (Number, &State), _action: &Action, _to: Number) {}
}

impl Search {
    /// Reaches every state behind `start`, nearest first, until the visitor has seen enough.
    pub(crate) fn run(protocol: Protocol, start: State, visitor: &mut impl Visitor) -> Self {
        let mut search =
            Self { protocol, start: start.clone(), numbers: HashMap::new(), origins: Vec::new(), depth: 0 };
        let (number, _) = search.number(&start, Origin { from: 0, action: 0 });
        if visitor.state(number, &start).is_break() {
            return search;
        }
        let mut frontier = VecDeque::from([(number, start)]);
        let mut actions = Vec::new();
        let mut last_of_level = 0;
        while let Some((from, state)) = frontier.pop_front() {
            protocol.actions(&state, &mut actions);
            for (index, action) in actions.drain(..).enumerate() {
                if !visitor.follows(&action) {
                    continue;
                }
                let Some(next) = protocol.next_state(&state, action.clone()) else { continue };
                if !protocol.within_boundary(&next) {
                    continue;
                }
                let index = u16::try_from(index).expect("a state has few actions");
                let (to, is_new) = search.number(&next, Origin { from, action: index });
                visitor.edge((from, &state), &action, to);
                if is_new {
                    if visitor.state(to, &next).is_break() {
                        return search;
                    }
                    frontier.push_back((to, next));
                }
            }
            if from as usize == last_of_level && !frontier.is_empty() {
                search.depth += 1;
                last_of_level = search.origins.len() - 1;
            }
        }
        search
    }

    /// States that were reached.
    pub(crate) fn states(&self) -> usize {
        self.origins.len()
    }

    /// Actions on the shortest way to the farthest state.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// A shortest way from the start to a state.
    pub(crate) fn way_to(&self, number: Number) -> Vec<Action> {
        let mut indices = Vec::new();
        let mut at = number;
        while at != 0 {
            let origin = self.origins[at as usize];
            indices.push(origin.action);
            at = origin.from;
        }
        let mut state = self.start.clone();
        let mut way = Vec::with_capacity(indices.len());
        for index in indices.into_iter().rev() {
            let mut actions = Vec::new();
            self.protocol.actions(&state, &mut actions);
            let action = actions.swap_remove(usize::from(index));
            state = self.protocol.next_state(&state, action.clone()).unwrap_or(state);
            way.push(action);
        }
        way
    }

    fn number(&mut self, state: &State, origin: Origin) -> (Number, bool) {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        match self.numbers.entry(hasher.finish()) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(new) => {
                let number = Number::try_from(self.origins.len()).expect("fewer than 2^32 states");
                self.origins.push(origin);
                (*new.insert(number), true)
            }
        }
    }
}
