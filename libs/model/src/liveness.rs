//! Liveness: from every reachable state a receipt is reachable by steps alone, without a further fault, without a late
//! write and without anybody asking for anything.
//!
//! Stateright's `eventually` overlooks cycles. So every edge that needs no fault is recorded, and the receipts are
//! followed backwards over them: a state that is not met has no way to a receipt.

use std::ops::ControlFlow;

use crate::{
    action::Action,
    protocol::Protocol,
    search::{Number, Search, Visitor},
    state::State,
    trace::Trace,
};

/// What was found.
#[derive(Debug)]
pub struct Liveness {
    /// Reachable states.
    pub states: usize,
    /// Edges between them that need no fault.
    pub edges: usize,
    /// Actions on the shortest way to the farthest state.
    pub depth: usize,
    /// A shortest way to a state from which there is none to a receipt.
    pub stuck: Option<Trace>,
}

/// Looks at every reachable state.
pub fn check(protocol: Protocol) -> Liveness {
    let mut recorded = Recorded::default();
    let search = Search::run(protocol, protocol.start(), &mut recorded);
    let edges = recorded.edges.len();
    let alive = recorded.can_reach_a_receipt(search.states());
    let stuck = alive.iter().position(|alive| !alive);
    Liveness {
        states: search.states(),
        edges,
        depth: search.depth(),
        stuck: stuck.map(|at| {
            let number = Number::try_from(at).expect("it is the number of a state");
            Trace::of(protocol, search.way_to(number))
        }),
    }
}

#[derive(Debug, Default)]
struct Recorded {
    receipts: Vec<Number>,
    /// From, to.
    edges: Vec<(Number, Number)>,
}

impl Visitor for Recorded {
    fn state(&mut self, number: Number, state: &State) -> ControlFlow<()> {
        if state.storage.receipt.is_some() {
            self.receipts.push(number);
        }
        ControlFlow::Continue(())
    }

    fn edge(&mut self, (from, _): (Number, &State), action: &Action, to: Number) {
        if !action.is_fault() && from != to {
            self.edges.push((from, to));
        }
    }
}

impl Recorded {
    /// For each state, whether a receipt is reachable.
    fn can_reach_a_receipt(self, states: usize) -> Vec<bool> {
        let Self { receipts, mut edges } = self;
        // By target, so that the edges into a state stand together.
        edges.sort_unstable_by_key(|(_, to)| *to);
        let into = |to: Number| {
            let first = edges.partition_point(|(_, target)| *target < to);
            edges[first..].iter().take_while(move |(_, target)| *target == to).map(|(from, _)| *from)
        };
        let mut alive = vec![false; states];
        for receipt in &receipts {
            alive[*receipt as usize] = true;
        }
        let mut open = receipts;
        while let Some(to) = open.pop() {
            for from in into(to) {
                if !std::mem::replace(&mut alive[from as usize], true) {
                    open.push(from);
                }
            }
        }
        alive
    }
}
