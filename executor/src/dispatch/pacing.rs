//! The learners of a job: one for each model, since that is what providers limit, and one for the job where the user
//! bounds it as a whole. A line goes when all that concern it agree.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::Duration,
};

use penstock_job::{
    Reason,
    spec::{Limits, ModelLimits, RateMode},
    state::Requests,
};
use penstock_rate::{Cost, Learner, Mode, Profile, RequestId, Snapshot, Verdict, Wait};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::schedule::Pace;
use crate::{board::Board, ledger::Recollection};

/// The format of the learners' memory in `state.json`.
const FORMAT: &str = "penstock.learners/1";
/// Learners that are remembered.
const REMEMBERED: usize = 100;

/// What stands in `state.json` under `learner`.
#[derive(Debug, Serialize, Deserialize)]
struct Memory {
    format: String,
    models: BTreeMap<String, Snapshot>,
}

/// The learners of a job, shared between dispatch, which asks, and the ledger, which remembers.
#[derive(Debug)]
pub(crate) struct Pacing {
    began: Instant,
    mode: Mode,
    limits: Limits,
    memory: BTreeMap<String, Snapshot>,
    board: Arc<Board>,
    /// What the board counted before this pacing began.
    before: Requests,
    learners: Mutex<Learners>,
}

#[derive(Debug)]
struct Learners {
    job: Learner,
    models: BTreeMap<Arc<str>, Learner>,
    sent: RequestId,
}

/// Reads the learners' memory out of a state; what cannot be read is forgotten, since learning anew is safe.
pub(crate) fn learner_memory(value: Option<&Value>) -> BTreeMap<String, Snapshot> {
    let Some(value) = value else {
        return BTreeMap::new();
    };
    match serde_json::from_value::<Memory>(value.clone()) {
        Ok(memory) if memory.format == FORMAT => memory.models,
        Ok(memory) => {
            tracing::warn!(
                format = memory.format,
                "the learner's memory has an unknown format; learning starts afresh"
            );
            BTreeMap::new()
        }
        Err(error) => {
            tracing::warn!(%error, "the learner's memory cannot be read; learning starts afresh");
            BTreeMap::new()
        }
    }
}

impl Pacing {
    pub(crate) fn new(limits: &Limits, memory: BTreeMap<String, Snapshot>, board: Arc<Board>) -> Self {
        let mode = match limits.rate {
            RateMode::Fixed => Mode::Fixed,
            RateMode::Aimd => Mode::Aimd,
        };
        // The job's own bounds hold over all models together; they are never learned.
        let whole = penstock_rate::Limits { rpm: limits.rpm, tpm: limits.tpm, max_in_flight: None };
        let job = Learner::new(Mode::Fixed, Profile::Unknown, whole, Duration::ZERO);
        let learners = Mutex::new(Learners { job, models: BTreeMap::new(), sent: RequestId(0) });
        let before = counted(&board);
        Self { began: Instant::now(), mode, limits: limits.clone(), memory, board, before, learners }
    }

    /// When a line of this model and length may go.
    pub(super) fn pace(&self, model: &str, length: u32) -> Pace {
        let now = self.began.elapsed();
        let mut learners = self.learners();
        let learners = &mut *learners;
        let cost = estimate(length, learners.models.get(model));
        let own = learners.models.get_mut(model).map_or(Wait::Now, |learner| ask(learner, now, cost));
        match (own, ask(&mut learners.job, now, cost)) {
            (Wait::Now, Wait::Now) => Pace::Now,
            (Wait::ForVerdict, _) | (_, Wait::ForVerdict) => Pace::Wait,
            (Wait::Until(own), Wait::Until(job)) => Pace::At(self.began + own.max(job)),
            (Wait::Until(at), Wait::Now) | (Wait::Now, Wait::Until(at)) => Pace::At(self.began + at),
        }
    }

    /// A request of this model goes out; the answer names it in [`verdict`](Self::verdict).
    pub(super) fn sent(&self, model: &Arc<str>, length: u32) -> RequestId {
        let now = self.began.elapsed();
        let mut learners = self.learners();
        learners.sent = RequestId(learners.sent.0 + 1);
        let id = learners.sent;
        let cost = estimate(length, learners.models.get(model));
        learners.job.sent(now, id, cost);
        if !learners.models.contains_key(model) {
            let learner = self.learner(model, now);
            learners.models.insert(Arc::clone(model), learner);
        }
        if let Some(learner) = learners.models.get_mut(model) {
            learner.sent(now, id, cost);
        }
        id
    }

    /// What became of it.
    pub(super) fn verdict(&self, model: &str, id: RequestId, verdict: Verdict) {
        let now = self.began.elapsed();
        let mut learners = self.learners();
        // A refusal tells about the provider, not about the user's own bounds.
        let for_job = if matches!(verdict, Verdict::Refused { .. }) { Verdict::Lost } else { verdict };
        learners.job.verdict(now, id, for_job);
        if let Some(learner) = learners.models.get_mut(model) {
            learner.verdict(now, id, verdict);
        }
    }

    /// Forgets models that have nothing to do.
    pub(super) fn forget(&self, models: &[Arc<str>]) {
        let mut learners = self.learners();
        for model in models {
            learners.models.remove(model);
        }
    }

    /// What the learner believes, in one sentence, and whether it holds the job back.
    pub(super) fn explain(&self) -> (String, Option<Reason>) {
        let learners = self.learners();
        let text = match learners.models.len() {
            0 => learners.job.explain(),
            1 => learners.models.values().map(Learner::explain).collect(),
            _ => learners
                .models
                .iter()
                .map(|(model, learner)| format!("{model}: {}", learner.explain()))
                .take(3)
                .collect::<Vec<_>>()
                .join("; "),
        };
        let own = self.limits.rpm.is_some() || self.limits.tpm.is_some();
        let reason = match self.mode {
            Mode::Fixed => own.then_some(Reason::AtOwnLimit),
            Mode::Aimd => {
                let refused = learners.models.values().any(|learner| learner.gauges().refusals > 0);
                Some(if refused { Reason::RunningAtLimit } else { Reason::Learning })
            }
        };
        (text, reason)
    }

    /// Whether the rate is the user's own alone, so that only the answers say when to pause.
    pub(super) fn is_fixed(&self) -> bool {
        self.mode == Mode::Fixed
    }

    fn learner(&self, model: &str, now: Duration) -> Learner {
        let ModelLimits { rpm, tpm, .. } = self.limits.per_model.get(model).copied().unwrap_or_default();
        let limits = penstock_rate::Limits {
            rpm: [rpm, self.limits.rpm].into_iter().flatten().min(),
            tpm: [tpm, self.limits.tpm].into_iter().flatten().min(),
            max_in_flight: None,
        };
        match self
            .memory
            .get(model)
            .map(|snapshot| Learner::restore(snapshot, self.mode, Profile::Unknown, limits, now))
        {
            Some(Ok(learner)) => learner,
            Some(Err(error)) => {
                tracing::warn!(model, %error, "learning starts afresh");
                Learner::new(self.mode, Profile::Unknown, limits, now)
            }
            None => Learner::new(self.mode, Profile::Unknown, limits, now),
        }
    }

    fn learners(&self) -> MutexGuard<'_, Learners> {
        // Learners do not panic, and a half-told one would at worst pace a little wrong.
        self.learners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recollection for Pacing {
    fn learner(&self) -> Option<Value> {
        let learners = self.learners();
        let present = learners.models.iter().map(|(model, learner)| (model.to_string(), learner.snapshot()));
        let mut remembered: BTreeMap<_, _> = present.take(REMEMBERED).collect();
        for (model, snapshot) in &self.memory {
            if remembered.len() == REMEMBERED {
                break;
            }
            remembered.entry(model.clone()).or_insert_with(|| snapshot.clone());
        }
        let memory = Memory { format: FORMAT.to_owned(), models: remembered };
        serde_json::to_value(memory)
            .inspect_err(|error| tracing::warn!(%error, "the learner's memory is not kept"))
            .ok()
    }

    fn requests(&self) -> Requests {
        let now = counted(&self.board);
        Requests { sent: now.sent - self.before.sent, throttled: now.throttled - self.before.throttled }
    }
}

fn counted(board: &Board) -> Requests {
    Requests { sent: board.sent.load(Relaxed), throttled: board.throttled.load(Relaxed) }
}

/// When to ask again at the latest: the rate may rise by itself before the next request is due.
fn ask(learner: &mut Learner, now: Duration, cost: Cost) -> Wait {
    match learner.next(now, cost) {
        Wait::Until(at) => Wait::Until(learner.changes_at().map_or(at, |change| at.min(change).max(now))),
        wait => wait,
    }
}

/// Tokens of a line before its body is looked at: a quarter of its bytes, and for the answer what nearly all recent
/// answers of its model stayed within, or as many again before the first.
fn estimate(length: u32, learner: Option<&Learner>) -> Cost {
    let input_tokens = length / 4;
    let output_tokens = learner.and_then(|learner| learner.gauges().p95_tokens).unwrap_or(input_tokens);
    Cost { input_tokens, output_tokens }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(limits: &Limits, memory: BTreeMap<String, Snapshot>) -> Pacing {
        Pacing::new(limits, memory, Arc::default())
    }

    fn exchange(pacing: &Pacing, model: &str, output_tokens: u32) {
        let model = Arc::from(model);
        let id = pacing.sent(&model, 40);
        pacing.verdict(&model, id, Verdict::Succeeded { output_tokens, input_tokens: 10 });
    }

    fn wait(pacing: &Pacing, model: &str) -> Option<Duration> {
        match pacing.pace(model, 40) {
            Pace::Now => Some(Duration::ZERO),
            Pace::At(at) => Some(at - Instant::now()),
            Pace::Wait => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_limit_counts_answers_as_long_as_they_turn_out_to_be() {
        let limits = Limits { tpm: 6_000.try_into().ok(), ..Limits::default() };
        let pacing = pacing(&limits, BTreeMap::new());
        exchange(&pacing, "model", 990);
        let first = wait(&pacing, "model").unwrap();
        assert!(first <= Duration::from_millis(200), "10 tokens and 10 for the answer: {first:?}");
        tokio::time::sleep(first).await;
        exchange(&pacing, "model", 990);
        let second = wait(&pacing, "model").unwrap();
        assert!(second.abs_diff(Duration::from_secs(10)) < Duration::from_millis(10), "{second:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_limits_of_a_job_hold_over_all_models_and_a_models_own_for_it_alone() {
        let mut limits = Limits { rpm: 60.try_into().ok(), ..Limits::default() };
        let own = ModelLimits { rpm: 6.try_into().ok(), ..ModelLimits::default() };
        limits.per_model.insert("slow".to_owned(), own);
        let pacing = pacing(&limits, BTreeMap::new());
        exchange(&pacing, "slow", 1);
        let rounded = |model| wait(&pacing, model).unwrap().as_secs_f64().round();
        assert!((rounded("slow") - 10.0).abs() < f64::EPSILON);
        assert!((rounded("quick") - 1.0).abs() < f64::EPSILON);
    }

    #[tokio::test(start_paused = true)]
    async fn the_memory_of_many_models_is_bounded_and_prefers_those_of_this_run() {
        let limits = Limits::default();
        let first = pacing(&limits, BTreeMap::new());
        (0..150).for_each(|model| exchange(&first, &format!("old-{model}"), 1));
        let remembered = learner_memory(Recollection::learner(&first).as_ref());
        assert_eq!(remembered.len(), REMEMBERED);
        let second = pacing(&limits, remembered);
        (0..60).for_each(|model| exchange(&second, &format!("young-{model}"), 1));
        let remembered = learner_memory(Recollection::learner(&second).as_ref());
        assert_eq!(remembered.len(), REMEMBERED);
        assert_eq!(remembered.keys().filter(|model| model.starts_with("young")).count(), 60);
    }

    #[test]
    fn a_memory_that_cannot_be_read_is_forgotten() {
        assert!(learner_memory(None).is_empty());
        assert!(learner_memory(Some(&serde_json::json!(7))).is_empty());
        let newer = serde_json::json!({"format": "penstock.learners/2", "models": {}});
        assert!(learner_memory(Some(&newer)).is_empty());
    }
}
