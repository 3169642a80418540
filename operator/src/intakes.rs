//! The intakes that run in this process: a few at once, each a task of its own that is ended with its job.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use kube::runtime::reflector::ObjectRef;
use penstock_crds::BatchJob;
use penstock_job::JobSpec;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    intake::{Word, intake},
    observe::IntakeSeen,
};

/// Intakes at once: each takes some megabytes and a connection.
const AT_ONCE: usize = 4;
/// A larger input is validated by a pod of its own.
const LARGEST: u64 = 64 << 20;

/// The intakes of this process.
#[derive(Debug)]
pub struct Intakes {
    scratch: PathBuf,
    room: Arc<Semaphore>,
    turned: mpsc::Sender<ObjectRef<BatchJob>>,
    running: Arc<Mutex<HashMap<String, Running>>>,
}

#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    said: Option<(Word, Instant)>,
    tries: u32,
    /// Ends with it.
    _task: AbortOnDropHandle<()>,
}

impl Intakes {
    /// None yet; `turned` hears of each that is done.
    pub fn new(scratch: PathBuf, turned: mpsc::Sender<ObjectRef<BatchJob>>) -> Self {
        Self { scratch, room: Arc::new(Semaphore::new(AT_ONCE)), turned, running: Arc::default() }
    }

    /// What the intake of the job of this uid is doing.
    pub fn of(&self, uid: &str) -> IntakeSeen {
        match self.running().get(uid) {
            None => IntakeSeen::None,
            Some(Running { said: None, .. }) => IntakeSeen::Running,
            Some(Running { said: Some((word, at)), tries, .. }) => {
                IntakeSeen::Said { word: word.clone(), ago: at.elapsed(), tries: *tries }
            }
        }
    }

    /// Begins one, unless it runs.
    pub fn begin(&self, uid: &str, batch_job: ObjectRef<BatchJob>, spec: JobSpec) {
        let mut running = self.running();
        let tries = match running.get(uid) {
            Some(Running { said: None, .. }) => return,
            Some(Running { tries, .. }) => tries.saturating_add(1),
            None => 1,
        };
        let stop = CancellationToken::new();
        let work = Work {
            uid: uid.to_owned(),
            batch_job,
            spec,
            scratch: self.scratch.clone(),
            room: Arc::clone(&self.room),
            stop: stop.clone(),
            running: Arc::clone(&self.running),
            turned: self.turned.clone(),
        };
        let task = tokio::spawn(work.run());
        running
            .insert(uid.to_owned(), Running { stop, said: None, tries, _task: AbortOnDropHandle::new(task) });
    }

    /// Ends the one of the job of this uid. What it had written it deletes itself, unless the process ends first.
    pub fn stop(&self, uid: &str) {
        if let Some(running) = self.running().get(uid) {
            running.stop.cancel();
        }
    }

    /// Forgets every job but those.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.running().retain(|uid, running| {
            if !is_there(uid) {
                running.stop.cancel();
            }
            // One that still runs deletes what it wrote before it is forgotten.
            is_there(uid) || running.said.is_none()
        });
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        lock(&self.running)
    }
}

/// One intake.
struct Work {
    uid: String,
    batch_job: ObjectRef<BatchJob>,
    spec: JobSpec,
    scratch: PathBuf,
    room: Arc<Semaphore>,
    stop: CancellationToken,
    running: Arc<Mutex<HashMap<String, Running>>>,
    turned: mpsc::Sender<ObjectRef<BatchJob>>,
}

impl Work {
    async fn run(self) {
        // The semaphore is never closed.
        let _permit = self.room.acquire().await;
        let word = intake(&self.spec, &self.scratch, Some(LARGEST), &self.stop).await;
        if let Some(running) = lock(&self.running).get_mut(&self.uid) {
            running.said = Some((word, Instant::now()));
        }
        // Nobody listens any more only when the process ends.
        let _ = self.turned.send(self.batch_job).await;
    }
}

fn lock(running: &Mutex<HashMap<String, Running>>) -> MutexGuard<'_, HashMap<String, Running>> {
    // Nothing panics while it holds this lock.
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
