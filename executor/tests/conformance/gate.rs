//! Holds a run before each step until it may go on, and each write whose fate is to stay unknown also after it.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use penstock_executor::{At, Finished, Moment, Probe, RunError};
use penstock_job::Step;
use penstock_storage::{
    Action,
    faults::{Call, Fault},
};
use tokio::sync::oneshot;

/// No step of these small jobs takes longer; a run that has not come to it by then does something else.
const PATIENCE: Duration = Duration::from_secs(10);

/// The steps that change nothing which anybody else could see, or that are brought about one at a time.
const PASSING: [Step; 4] = [Step::Send, Step::Append, Step::List, Step::ComposeIntermediate];

/// The announcements of one run.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    held: Vec<Held>,
    done: BTreeMap<Step, usize>,
    reads: BTreeMap<String, usize>,
    armed: Option<(String, Fault)>,
    /// Objects whose writes were let go and have no answer yet.
    writing: BTreeSet<String>,
    ended: Option<Result<Finished, RunError>>,
    log: Vec<String>,
}

/// A run, or one of its loops, that waits at a step.
#[derive(Debug)]
struct Held {
    step: Step,
    moment: Moment,
    object: Option<String>,
    release: oneshot::Sender<()>,
}

impl Gate {
    /// Waits until `look` finds something, or the run has ended.
    pub(crate) fn wait<T>(&self, look: impl Fn(&Seen) -> Option<T>) -> Option<T> {
        let (seen, _) = self
            .changed
            .wait_timeout_while(self.seen(), PATIENCE, |seen| seen.ended.is_none() && look(seen).is_none())
            .unwrap_or_else(PoisonError::into_inner);
        look(&seen)
    }

    /// What there is now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen())
    }

    /// Lets go what is held there. The write of `object` behind it, if any, meets `fault`, and is then held again.
    pub(crate) fn release(&self, step: Step, moment: Moment, object: &str, fault: Option<Fault>) {
        let mut seen = self.seen();
        let Some(place) = seen.held.iter().position(|held| held.is(step, moment, object)) else { return };
        let held = seen.held.remove(place);
        if moment == Moment::Before {
            seen.writing.extend(held.object.clone());
        }
        seen.armed = fault.zip(held.object).map(|(fault, object)| (object, fault));
        drop(seen);
        // Nobody waits any more when the run has ended meanwhile.
        let _ = held.release.send(());
    }

    /// The fault that a write is to meet.
    pub(crate) fn fault(&self, call: &Call<'_>) -> Option<Fault> {
        if matches!(call.action, Action::Read | Action::List) {
            return None;
        }
        let seen = self.seen();
        seen.armed.as_ref().filter(|(object, _)| object == call.object).map(|(_, fault)| *fault)
    }

    /// An object was read.
    pub(crate) fn has_read(&self, object: &str) {
        *self.seen().reads.entry(object.to_owned()).or_default() += 1;
        self.changed.notify_all();
    }

    /// The run is over.
    pub(crate) fn end(&self, ended: Result<Finished, RunError>) {
        self.seen().ended = Some(ended);
        self.changed.notify_all();
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe for Gate {
    fn at(&self, at: At<'_>) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let mut seen = self.seen();
        let object = at.object.map(ToString::to_string);
        let is_armed =
            seen.armed.as_ref().is_some_and(|(armed, _)| Some(armed.as_str()) == object.as_deref());
        let words = object.clone().unwrap_or_default();
        let line = format!("{:?} {} {words}", at.moment, at.step);
        seen.log.push(line);
        if at.moment == Moment::After {
            *seen.done.entry(at.step).or_default() += 1;
            seen.writing.remove(&words);
        }
        let holds = if at.moment == Moment::After { is_armed } else { !PASSING.contains(&at.step) };
        let wait = holds.then(|| {
            let (release, released) = oneshot::channel();
            seen.held.push(Held { step: at.step, moment: at.moment, object, release });
            let wait: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
                // A replay that is over lets everything go.
                let _ = released.await;
            });
            wait
        });
        if at.moment == Moment::After && is_armed {
            seen.armed = None;
        }
        self.changed.notify_all();
        wait
    }
}

impl Seen {
    /// Whether something is held there. `object` is how the object's name ends.
    pub(crate) fn holds(&self, step: Step, moment: Moment, object: &str) -> bool {
        self.held.iter().any(|held| held.is(step, moment, object))
    }

    /// The object of what is held before a step.
    pub(crate) fn object(&self, step: Step, object: &str) -> Option<String> {
        self.held.iter().find(|held| held.is(step, Moment::Before, object))?.object.clone()
    }

    /// Whether a write that was let go has no answer yet.
    pub(crate) fn is_writing(&self, object: &str) -> bool {
        self.writing.contains(object)
    }

    /// How often a step has been done.
    pub(crate) fn done(&self, step: Step) -> usize {
        self.done.get(&step).copied().unwrap_or_default()
    }

    /// How often an object was read.
    pub(crate) fn reads(&self, object: &str) -> usize {
        self.reads.get(object).copied().unwrap_or_default()
    }

    /// How the run ended, when it has.
    pub(crate) fn ended(&self) -> Option<&Result<Finished, RunError>> {
        self.ended.as_ref()
    }

    /// What the run has announced, and where it waits.
    pub(crate) fn told(&self) -> String {
        let waits: Vec<_> = self.held.iter().map(|held| format!("{:?} {}", held.moment, held.step)).collect();
        let ended = self.ended.as_ref().map(|ended| format!(", ended: {ended:?}")).unwrap_or_default();
        format!("announced {}; waits at {waits:?}{ended}", self.log.join(", "))
    }
}

impl Held {
    fn is(&self, step: Step, moment: Moment, object: &str) -> bool {
        let named = self.object.as_deref().unwrap_or_default();
        self.step == step && self.moment == moment && named.ends_with(object)
    }
}
