//! One incarnation: a real run on a thread, a runtime and a clock of its own. Time passes for it only when the replay
//! says so.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use penstock_executor::{Board, Job, Moment, Stop, run};
use penstock_job::Step;
use penstock_model::Fate;
use penstock_storage::faults::Fault;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{gate::Gate, provider::Provider};

/// The longest wait for the first repetition of a write; each further one is at most twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// Whether a run has done what was expected; else what it has not.
pub(crate) type Taken = Result<(), String>;

/// A living run, or one that has ended by itself.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) gate: Arc<Gate>,
    pub(crate) provider: Provider,
    /// How much time has passed for it.
    pub(crate) now: Duration,
    /// When its checkpoint loop last began to wait.
    pub(crate) checkpointed: Duration,
    /// When it began to answer.
    pub(crate) answering: Duration,
    /// How often writes under way, each named by step and object, were repeated.
    repetitions: BTreeMap<(Step, String), u32>,
    clock: Option<UnboundedSender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl Process {
    pub(crate) fn start(job: Job, gate: Arc<Gate>, provider: Provider) -> Self {
        let (clock, times) = unbounded_channel();
        let thread = thread::spawn({
            let gate = Arc::clone(&gate);
            move || live(job, &gate, times)
        });
        let zero = Duration::ZERO;
        Self {
            gate,
            provider,
            now: zero,
            checkpointed: zero,
            answering: zero,
            repetitions: BTreeMap::new(),
            clock: Some(clock),
            thread: Some(thread),
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, duration: Duration) {
        self.now += duration;
        if let Some(clock) = &self.clock {
            // A run that has ended has no time.
            let _ = clock.send(duration);
        }
    }

    /// The next write of that step is another one.
    pub(crate) fn begin(&mut self, step: Step, object: &str) {
        self.repetitions.remove(&(step, object.to_owned()));
    }

    /// Lets time pass until then.
    pub(crate) fn advance_to(&mut self, then: Duration) {
        self.advance(then.saturating_sub(self.now));
    }

    /// Waits until the run is held before a step.
    pub(crate) fn comes_to(&self, step: Step, object: &str) -> Taken {
        let come = self.gate.wait(|seen| seen.holds(step, Moment::Before, object).then_some(()));
        come.ok_or_else(|| format!("it does not come to {step} {object}"))
    }

    /// Lets the run take a step; what it writes meets `fault`.
    pub(crate) fn go(&self, step: Step, object: &str, fault: Option<Fault>) -> Taken {
        self.comes_to(step, object)?;
        self.gate.release(step, Moment::Before, object, fault);
        Ok(())
    }

    /// Lets the run take a step that writes nothing, and waits until it has.
    pub(crate) fn pass(&self, step: Step) -> Taken {
        let before = self.gate.look(|seen| seen.done(step));
        self.go(step, "", None)?;
        self.done(step, before + 1)
    }

    /// Waits until a step has been done so often.
    pub(crate) fn done(&self, step: Step, times: usize) -> Taken {
        let done = self.gate.wait(|seen| (seen.done(step) >= times).then_some(()));
        done.ok_or_else(|| format!("{step} is not done"))
    }

    /// Waits until a write that was let go has its answer.
    pub(crate) fn written(&self, step: Step, object: &str, fate: Fate) -> Taken {
        let is_held = fate != Fate::Told;
        let done = self.gate.wait(|seen| {
            let here = seen.holds(step, Moment::After, object);
            (here == is_held && !seen.is_writing(object)).then_some(())
        });
        done.ok_or_else(|| format!("{step} has no answer"))
    }

    /// A write of unknown fate: the run looks what became of it. What it does next without waiting, it has done when
    /// time passes for it again.
    pub(crate) fn look_back(&self, step: Step, object: &str) -> Taken {
        let reads = self.gate.look(|seen| seen.reads(object));
        self.gate.release(step, Moment::After, object, None);
        let looked = self.gate.wait(|seen| (seen.reads(object) > reads).then_some(()));
        looked.ok_or_else(|| format!("it does not look at {object}"))
    }

    /// As before; it finds nothing, and waits before it tries again.
    pub(crate) fn look_again(&mut self, step: Step, object: &str) -> Taken {
        self.look_back(step, object)?;
        let repetitions = self.repetitions.entry((step, object.to_owned())).or_default();
        let pause = PAUSE * 2u32.pow(*repetitions);
        *repetitions += 1;
        self.advance(pause);
        Ok(())
    }
}

impl Drop for Process {
    /// Ends it wherever it is, as a crash does.
    fn drop(&mut self) {
        self.clock = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn live(job: Job, gate: &Gate, mut times: UnboundedReceiver<Duration>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (awake, asleep) = mpsc::channel::<()>();
    runtime.block_on(async {
        // While a blocking task runs, paused time does not pass by itself.
        tokio::task::spawn_blocking(move || asleep.recv());
        let mut running = tokio::spawn(run(job, Arc::new(Board::default()), Stop::new()));
        loop {
            tokio::select! {
                ended = &mut running => return gate.end(ended.unwrap()),
                duration = times.recv() => match duration {
                    Some(duration) => tokio::time::advance(duration).await,
                    None => break,
                },
            }
        }
        running.abort();
        let _ = running.await;
    });
    drop(awake);
}
