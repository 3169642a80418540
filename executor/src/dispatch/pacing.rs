//! The learners of a job: one for each model, since that is what providers limit, and one for the job where the user
//! bounds it as a whole. A line goes when all that concern it agree.

mod estimate;
mod lately;
mod memory;
mod outside;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use penstock_job::{
    JobSpec, Reason,
    directives::RateBounds,
    spec::{Limits, ModelLimits, ProviderKind, RateMode},
    state::Requests,
};
use penstock_rate::{Cost, Gauges, Learner, Mode, Profile, RequestId, Snapshot, Verdict, Wait};
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

pub(crate) use self::memory::learner_memory;
pub use self::memory::{Decision, Learned, learned};
use self::{estimate::AnswerBound, lately::Lately, memory::Memory};
use super::schedule::Pace;
use crate::{
    board::{Board, RateGauges},
    ledger::Recollection,
};

/// Models whose beliefs are told in words; more would fill the screen.
const TOLD: usize = 3;

/// A rate counts as being at a limit from this part of it on: a learner stays a little below.
const NEAR: f64 = 0.9;

/// The learners of a job, shared between dispatch, which asks, and the ledger, which remembers.
#[derive(Debug)]
pub(crate) struct Pacing {
    began: Instant,
    mode: Mode,
    profile: Profile,
    /// What the job file allows.
    limits: Limits,
    memory: BTreeMap<String, Snapshot>,
    board: Arc<Board>,
    /// What the board counted before this pacing began.
    before: Requests,
    learners: Mutex<Learners>,
    model_count: watch::Sender<usize>,
    /// Servers tell their load.
    tells_load: AtomicBool,
}

#[derive(Debug)]
struct Learners {
    job: Learner,
    models: BTreeMap<Arc<str>, Model>,
    sent: RequestId,
    /// Bounds over the whole job: those of the job file, or lower ones.
    bounds: RateBounds,
}

/// What is known of one model's rate.
#[derive(Debug)]
struct Model {
    learner: Learner,
    /// What the user allows.
    own: penstock_rate::Limits,
    /// Whether it goes on from what an earlier run of the job has learned.
    is_resumed: bool,
    answers: AnswerBound,
    lately: Lately,
}

/// What dispatch shows of the rate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    /// What is believed and why, in a sentence.
    pub(super) belief: String,
    pub(super) gauges: RateGauges,
    /// Whether the rate holds the job back.
    pub(super) reason: Option<Reason>,
}

impl Pacing {
    pub(crate) fn new(spec: &JobSpec, memory: BTreeMap<String, Snapshot>, board: Arc<Board>) -> Self {
        let limits = &spec.limits;
        // The job's own bounds hold over all models together; they are never learned.
        let bounds = RateBounds::default().within(limits);
        let profile = profile(spec.provider.kind);
        let job = Learner::new(Mode::Fixed, profile, over_all(bounds), Duration::ZERO);
        let learners = Learners { job, models: BTreeMap::new(), sent: RequestId(0), bounds };
        let before = counted(&board);
        Self {
            began: Instant::now(),
            mode: mode(spec.rate()),
            profile,
            limits: limits.clone(),
            memory,
            board,
            before,
            learners: Mutex::new(learners),
            model_count: watch::Sender::new(0),
            tells_load: AtomicBool::new(false),
        }
    }

    /// Holds the job within these bounds from now on, never above those of the job file.
    pub(super) fn bound(&self, bounds: RateBounds) {
        let (now, bounds) = (self.began.elapsed(), bounds.within(&self.limits));
        let mut learners = self.learners();
        let known = std::mem::replace(&mut learners.bounds, bounds);
        if (known.rpm, known.tpm) == (bounds.rpm, bounds.tpm) {
            return;
        }
        tracing::info!(rpm = ?bounds.rpm, tpm = ?bounds.tpm, "the rate is bounded otherwise");
        learners.job.limit(now, over_all(bounds));
        for (name, model) in &mut learners.models {
            model.own = self.own(name, bounds);
            model.learner.limit(now, model.own);
        }
    }

    /// When a line of this model and length may go.
    pub(super) fn pace(&self, model: &str, length: u32) -> Pace {
        let now = self.began.elapsed();
        let mut learners = self.learners();
        let Learners { job, models, .. } = &mut *learners;
        let of_model = models.get_mut(model);
        let cost = cost(length, of_model.as_deref());
        let own = of_model.map_or(Wait::Now, |model| ask(&mut model.learner, now, cost));
        match (own, ask(job, now, cost)) {
            (Wait::Now, Wait::Now) => Pace::Now,
            (Wait::ForVerdict, _) | (_, Wait::ForVerdict) => Pace::Wait,
            (Wait::Until(own), Wait::Until(job)) => Pace::At(self.began + own.max(job)),
            (Wait::Until(at), Wait::Now) | (Wait::Now, Wait::Until(at)) => Pace::At(self.began + at),
        }
    }

    /// What a line of this model and length is expected to take.
    pub(super) fn estimate(&self, model: &str, length: u32) -> Cost {
        cost(length, self.learners().models.get(model))
    }

    /// Whether anything is known of how long this model's answers are.
    pub(super) fn knows_answers(&self, model: &str) -> bool {
        let learners = self.learners();
        let known = learners.models.get(model);
        known.is_some_and(|model| model.answers.is_known() || model.learner.p95_tokens().is_some())
    }

    /// A request of this model goes out; the answer names it in [`verdict`](Self::verdict).
    pub(super) fn sent(&self, model: &Arc<str>, length: u32) -> RequestId {
        let now = self.began.elapsed();
        let mut learners = self.learners();
        let Learners { job, models, sent, bounds } = &mut *learners;
        sent.0 += 1;
        let cost = cost(length, models.get(model));
        job.sent(now, *sent, cost);
        // The name is copied for a model that is new, not for each request.
        if !models.contains_key(model) {
            models.insert(Arc::clone(model), self.model(model, *bounds, now));
            self.model_count.send_modify(|count| *count += 1);
        }
        if let Some(model) = models.get_mut(model) {
            model.learner.sent(now, *sent, cost);
            model.lately.sent(now);
        }
        *sent
    }

    /// A request of this model allows its answer so many tokens.
    pub(super) fn bounded(&self, model: &str, output_tokens: u32) {
        if let Some(model) = self.learners().models.get_mut(model) {
            model.answers.record(output_tokens);
        }
    }

    /// What became of it.
    pub(super) fn verdict(&self, model: &str, id: RequestId, verdict: Verdict) {
        let now = self.began.elapsed();
        let mut learners = self.learners();
        // What a provider refuses tells about the provider, not about the user's own bounds.
        let for_job = match verdict {
            Verdict::Admitted { .. } | Verdict::Succeeded { .. } => verdict,
            Verdict::Refused { .. }
            | Verdict::SlowDown { .. }
            | Verdict::Overloaded { .. }
            | Verdict::Lost => Verdict::Lost,
        };
        learners.job.verdict(now, id, for_job);
        if let Some(model) = learners.models.get_mut(model) {
            if matches!(verdict, Verdict::Refused { .. }) {
                model.lately.refused(now);
            }
            model.learner.verdict(now, id, verdict);
        }
    }

    /// Forgets models that have nothing to do.
    pub(super) fn forget(&self, models: &[Arc<str>]) {
        let mut learners = self.learners();
        for model in models {
            learners.models.remove(model);
        }
    }

    /// What the learners believe, and whether it holds the job back.
    pub(super) fn view(&self) -> View {
        let now = self.began.elapsed();
        let learners = self.learners();
        View { belief: learners.belief(), gauges: learners.gauges(now), reason: self.reason(&learners) }
    }

    fn reason(&self, learners: &Learners) -> Option<Reason> {
        let own = learners.bounds.rpm.is_some() || learners.bounds.tpm.is_some();
        match self.mode {
            Mode::Fixed => own.then_some(Reason::AtOwnLimit),
            Mode::Aimd => {
                let refused = learners.models.values().any(|model| model.learner.gauges().refusals > 0);
                Some(if refused { Reason::RunningAtLimit } else { Reason::Learning })
            }
            Mode::Adaptive => Some(learners.reason()),
        }
    }

    /// Whether the rate is the user's own alone, so that only the answers say when to pause.
    pub(super) fn is_fixed(&self) -> bool {
        self.mode == Mode::Fixed
    }

    /// A model's learner as it begins.
    fn model(&self, model: &str, bounds: RateBounds, now: Duration) -> Model {
        let limits = self.own(model, RateBounds::default().within(&self.limits));
        let profile = if self.tells_load.load(Relaxed) { Profile::Vllm } else { self.profile };
        let restore = |snapshot| Learner::restore(snapshot, self.mode, profile, limits, now);
        let restored = match self.memory.get(model).map(restore) {
            Some(Ok(learner)) => Some(learner),
            Some(Err(error)) => {
                tracing::warn!(model, %error, "learning starts afresh");
                None
            }
            None => None,
        };
        let is_resumed = restored.is_some();
        let mut learner = restored.unwrap_or_else(|| Learner::new(self.mode, profile, limits, now));
        let own = self.own(model, bounds);
        if own != limits {
            learner.limit(now, own);
        }
        Model { own, is_resumed, learner, answers: AnswerBound::default(), lately: Lately::default() }
    }

    /// What a model is allowed: its own limits, and those of the job.
    fn own(&self, model: &str, bounds: RateBounds) -> penstock_rate::Limits {
        let ModelLimits { rpm, tpm, .. } = self.limits.per_model.get(model).copied().unwrap_or_default();
        penstock_rate::Limits {
            rpm: [rpm, bounds.rpm].into_iter().flatten().min(),
            tpm: [tpm, bounds.tpm].into_iter().flatten().min(),
            max_in_flight: None,
        }
    }

    fn learners(&self) -> MutexGuard<'_, Learners> {
        // Learners do not panic, and a half-told one would at worst pace a little wrong.
        self.learners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model {
    /// Why an adaptive learner sends no faster.
    fn reason(&self) -> Reason {
        let Gauges { rpm_target, effective_rpm, learned_rpm, stated_rpm, .. } = self.learner.gauges();
        let effective = effective_rpm.unwrap_or(f64::INFINITY);
        let at = |limit: f64| effective >= NEAR * limit;
        let at_own_tokens =
            self.own.tpm.is_some() && rpm_target.is_some_and(|target| effective < NEAR * f64::from(target));
        if at_own_tokens || self.own.rpm.is_some_and(|rpm| at(f64::from(rpm.get()))) {
            Reason::AtOwnLimit
        } else if learned_rpm.into_iter().chain(stated_rpm).any(at) {
            Reason::RunningAtLimit
        } else {
            Reason::Learning
        }
    }
}

impl Learners {
    fn belief(&self) -> String {
        match self.models.len() {
            0 => self.job.explain(),
            1 => self.models.values().map(|model| model.learner.explain()).collect(),
            several => {
                let told = self.models.iter().take(TOLD);
                let mut told: Vec<_> =
                    told.map(|(name, model)| format!("{name}: {}", model.learner.explain())).collect();
                if several > TOLD {
                    told.push(format!("and {} models more", several - TOLD));
                }
                told.join("; ")
            }
        }
    }

    /// Why adaptive learners hold the job back: one that is still learning may go faster by itself.
    fn reason(&self) -> Reason {
        let reasons = self.models.values().map(Model::reason);
        reasons.min().unwrap_or(Reason::Learning)
    }

    fn gauges(&self, now: Duration) -> RateGauges {
        let gauges: Vec<Gauges> = self.models.values().map(|model| model.learner.gauges()).collect();
        if gauges.is_empty() {
            return RateGauges::default();
        }
        RateGauges {
            rpm_target: gauges.iter().map(|gauges| gauges.rpm_target.map(u64::from)).sum(),
            effective_rpm: gauges.iter().map(|gauges| gauges.effective_rpm).sum(),
            p95_tokens: gauges.iter().filter_map(|gauges| gauges.p95_tokens).max(),
            refusals: gauges.iter().map(|gauges| gauges.refusals).sum(),
            learned_utilisation: self.part_of(now, gauges.iter().map(|gauges| gauges.learned_rpm).sum()),
            stated_utilisation: self.part_of(now, gauges.iter().map(|gauges| gauges.stated_rpm).sum()),
        }
    }

    /// Requests a minute that all models let in lately, as a part of their limits together.
    fn part_of(&self, now: Duration, limits: Option<f64>) -> Option<f64> {
        let let_in: Option<f64> = self.models.values().map(|model| model.lately.per_minute(now)).sum();
        let part = let_in? / limits?;
        // Three digits: more are noise.
        part.is_finite().then(|| (part * 1_000.0).round() / 1_000.0)
    }
}

impl Recollection for Pacing {
    fn learner(&self) -> Option<Value> {
        let now = self.began.elapsed();
        let learners = self.learners();
        let present =
            learners.models.iter().map(|(name, model)| (name.to_string(), model.learner.snapshot()));
        let memory = Memory::new(learners.belief(), learners.gauges(now), present, &self.memory);
        serde_json::to_value(memory)
            .inspect_err(|error| tracing::warn!(%error, "the learner's memory is not kept"))
            .ok()
    }

    fn requests(&self) -> Requests {
        let now = counted(&self.board);
        Requests { sent: now.sent - self.before.sent, throttled: now.throttled - self.before.throttled }
    }
}

/// The bounds over all models together. How many are in flight is for the schedule.
fn over_all(bounds: RateBounds) -> penstock_rate::Limits {
    penstock_rate::Limits { rpm: bounds.rpm, tpm: bounds.tpm, max_in_flight: None }
}

/// How a kind of provider limits, which chooses constants only.
fn profile(kind: ProviderKind) -> Profile {
    match kind {
        ProviderKind::OpenAi | ProviderKind::Simulated => Profile::OpenAi,
        ProviderKind::AzureOpenAi => Profile::Azure,
        ProviderKind::Anthropic => Profile::Anthropic,
        ProviderKind::Gemini => Profile::Gemini,
        // A gateway to somebody's limits, or a server that saturates.
        ProviderKind::OpenAiCompatible => Profile::Unknown,
    }
}

fn mode(rate: RateMode) -> Mode {
    match rate {
        RateMode::Adaptive => Mode::Adaptive,
        RateMode::Fixed => Mode::Fixed,
        RateMode::Aimd => Mode::Aimd,
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

fn cost(length: u32, model: Option<&Model>) -> Cost {
    let answers = model.map(|model| model.answers).unwrap_or_default();
    answers.cost(length, model.and_then(|model| model.learner.p95_tokens()))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn pacing(limits: &Limits, memory: BTreeMap<String, Snapshot>) -> Pacing {
        let mut spec = JobSpec { limits: limits.clone(), ..JobSpec::default() };
        spec.provider.kind = ProviderKind::Simulated;
        Pacing::new(&spec, memory, Arc::default())
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
    async fn a_token_limit_counts_answers_as_long_as_requests_allow_them_to_be() {
        let limits = Limits { tpm: 6_000.try_into().ok(), ..Limits::default() };
        let pacing = pacing(&limits, BTreeMap::new());
        exchange(&pacing, "model", 1);
        pacing.bounded("model", 990);
        exchange(&pacing, "model", 1);
        let waits = wait(&pacing, "model").unwrap();
        assert!(waits.abs_diff(Duration::from_secs(10)) < Duration::from_millis(300), "{waits:?}");
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
    async fn a_bound_holds_at_once_in_every_mode_and_never_lifts_that_of_the_job_file() {
        for rate in [RateMode::Fixed, RateMode::Aimd, RateMode::Adaptive] {
            let limits = Limits { rate: Some(rate), rpm: 600.try_into().ok(), ..Limits::default() };
            let pacing = pacing(&limits, BTreeMap::new());
            for (asked, within) in [(6, 9.9..10.1), (12, 4.9..6.1), (6_000, 0.09..6.1)] {
                pacing.bound(RateBounds { rpm: NonZeroU32::new(asked), ..RateBounds::default() });
                // Also of a model that begins under the bound.
                for model in ["first".to_owned(), format!("begun-at-{asked}")] {
                    while let Some(rest) = wait(&pacing, &model).filter(|rest| !rest.is_zero()) {
                        tokio::time::sleep(rest).await;
                    }
                    exchange(&pacing, &model, 1);
                    let waits = wait(&pacing, &model).unwrap().as_secs_f64();
                    assert!(within.contains(&waits), "{rate:?} at most {asked}: {waits}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_memory_of_many_models_is_bounded_and_prefers_those_of_this_run() {
        let limits = Limits::default();
        let first = pacing(&limits, BTreeMap::new());
        (0..150).for_each(|model| exchange(&first, &format!("old-{model}"), 1));
        let remembered = learner_memory(Recollection::learner(&first).as_ref());
        assert_eq!(remembered.len(), 100);
        let second = pacing(&limits, remembered);
        (0..60).for_each(|model| exchange(&second, &format!("young-{model}"), 1));
        let remembered = learner_memory(Recollection::learner(&second).as_ref());
        assert_eq!(remembered.len(), 100);
        assert_eq!(remembered.keys().filter(|model| model.starts_with("young")).count(), 60);
    }
}
