//! A scenario: its file, its cases, and the judgement on one of them.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroU64},
};

use penstock_rate::{Dimension, Limits, Mode, Profile};
use penstock_simulator::{
    Enforcement, Quota,
    rate::{Controller, Course, Job, Measures, Provider, Trial, run},
};
use serde::{Deserialize, Serialize};

use crate::{Bounds, Figure, Rule, learner::Learning, oracle::Oracle, script::Script};

/// The ways of enforcing a quota that the figures of a scenario must hold for.
const ENFORCEMENTS: [Enforcement; 5] = [
    Enforcement::MinuteBucket,
    Enforcement::SecondBucket,
    Enforcement::FixedMinute,
    Enforcement::FixedTenSeconds,
    Enforcement::SlidingMinute,
];

/// A provider, the jobs that ask it, and what must come of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub about: String,
    /// How long it lasts.
    pub minutes: u32,
    /// The hidden limit of requests.
    pub requests_per_minute: Option<NonZeroU64>,
    /// The hidden limit of tokens.
    pub tokens_per_minute: Option<NonZeroU64>,
    /// The ways in which the limits are enforced; one case each.
    pub enforcements: Vec<Enforcement>,
    /// Everything else about the provider. The quotas stand above.
    pub provider: Provider,
    /// The jobs: one endless backlog if there is nothing else to say.
    pub jobs: Vec<Job>,
    /// Every so many seconds the jobs learn each other's rate.
    pub exchange_seconds: Option<NonZeroU32>,
    /// Every so many seconds the jobs read how full the server is.
    pub saturation_seconds: Option<NonZeroU32>,
    /// What the learner of each job is told beforehand.
    pub knowledge: Knowledge,
    /// The user's bound on the requests per minute of each job, in their order, where jobs have bounds of their own.
    pub rpm_of_jobs: Vec<Option<NonZeroU32>>,
    /// The ranges, by rule and figure.
    pub expect: BTreeMap<Rule, BTreeMap<Figure, Bounds>>,
}

/// What a learner is told before it begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Knowledge {
    /// What kind of provider it is.
    pub profile: KnownProfile,
    /// The user's bound on requests per minute.
    pub rpm: Option<NonZeroU32>,
    /// The user's bound on tokens per minute.
    pub tpm: Option<NonZeroU64>,
    /// What an earlier job on the same key found, in requests per minute.
    pub remembered_rpm: Option<f64>,
    /// The same in tokens per minute, as the provider charges them.
    pub remembered_tpm: Option<f64>,
}

/// The profile that a scenario names; `openai` if it names none, as at the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct KnownProfile(pub Profile);

impl Default for KnownProfile {
    fn default() -> Self {
        Self(Profile::OpenAi)
    }
}

impl Default for Scenario {
    /// An hour of one endless backlog against a provider without limits.
    fn default() -> Self {
        Self {
            about: String::new(),
            minutes: 60,
            requests_per_minute: None,
            tokens_per_minute: None,
            enforcements: ENFORCEMENTS.to_vec(),
            provider: Provider::default(),
            jobs: vec![Job::default()],
            exchange_seconds: None,
            saturation_seconds: None,
            knowledge: Knowledge::default(),
            rpm_of_jobs: Vec::new(),
            expect: BTreeMap::new(),
        }
    }
}

/// A text that is no scenario.
#[derive(Debug, thiserror::Error)]
#[error("read the scenario: {0}; correct the file")]
pub struct ScenarioError(String);

/// One way to run a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Case {
    /// How the limits are enforced.
    pub enforcement: Enforcement,
    /// Decides every draw.
    pub seed: u64,
}

/// What came of one case under one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Which case.
    pub case: Case,
    /// What happened.
    pub course: Course,
    /// Its figures.
    pub measures: Measures,
}

impl Scenario {
    /// Reads a scenario. Unknown fields are refused.
    pub fn read(text: &str) -> Result<Self, ScenarioError> {
        serde_saphyr::from_str(text).map_err(|error| ScenarioError(error.to_string()))
    }

    /// Every enforcement, so many seeds each.
    pub fn cases(&self, seeds: u64) -> Vec<Case> {
        let seeds = |enforcement: &Enforcement| {
            let enforcement = *enforcement;
            (1..=seeds).map(move |seed| Case { enforcement, seed })
        };
        self.enforcements.iter().flat_map(seeds).collect()
    }

    /// The figures that say something about it, in the order of tables.
    pub fn figures(&self) -> Vec<Figure> {
        let limited = self.requests_per_minute.is_some() || self.tokens_per_minute.is_some();
        let steps = &self.provider.steps;
        let before = std::iter::once(1.0).chain(steps.iter().map(|step| step.times));
        let changes: Vec<(f64, f64)> = before.zip(steps.iter().map(|step| step.times)).collect();
        let several = self.jobs.len() > 1;
        let saturates = self.provider.batch.is_some();
        let shown = [
            (Figure::Utilisation, limited),
            (Figure::Refused, limited),
            (Figure::TimeTo90Percent, limited),
            (Figure::SettledAfterCut, changes.iter().any(|(before, after)| after < before)),
            (Figure::SettledAfterRaise, changes.iter().any(|(before, after)| after > before)),
            (Figure::Fairness, several),
            (Figure::LeastPart, several && limited),
            (Figure::TimeToFairness, several),
            (Figure::Work, saturates),
            (Figure::Waiting, saturates),
            (Figure::Overloaded, saturates),
            (Figure::Latency, saturates),
            (Figure::FinishedAfter, self.jobs.iter().any(|job| job.requests.is_some())),
        ];
        shown.into_iter().filter(|(_, shown)| *shown).map(|(figure, _)| figure).collect()
    }

    /// Runs one case under one rule.
    pub fn judge(&self, rule: Rule, case: Case) -> Judged {
        let trial = self.trial(case);
        let jobs = 0..trial.jobs.len();
        let mut controllers: Vec<_> = jobs.map(|job| self.controller(rule, &trial, job)).collect();
        let course = run(&trial, &mut controllers);
        let measures = Measures::of(&course);
        Judged { case, course, measures }
    }

    fn trial(&self, case: Case) -> Trial {
        let quota =
            |per_minute: NonZeroU64| Quota { per_minute: per_minute.get(), enforcement: case.enforcement };
        let mut provider = self.provider.clone();
        provider.limits.requests = self.requests_per_minute.map(quota);
        provider.limits.tokens = self.tokens_per_minute.map(quota);
        Trial {
            provider,
            jobs: self.jobs.clone(),
            seconds: self.minutes * 60,
            exchange_seconds: self.exchange_seconds,
            saturation_seconds: self.saturation_seconds,
            seed: case.seed,
        }
    }

    fn controller(&self, rule: Rule, trial: &Trial, job: usize) -> Box<dyn Controller> {
        match rule {
            Rule::Oracle => Box::new(Oracle::new(trial)),
            Rule::Script => Box::new(Script::new()),
            Rule::Aimd => self.learning(Mode::Aimd, job),
            Rule::Adaptive => self.learning(Mode::Adaptive, job),
        }
    }

    fn learning(&self, mode: Mode, job: usize) -> Box<dyn Controller> {
        let Knowledge { profile: KnownProfile(profile), rpm, tpm, remembered_rpm, remembered_tpm } =
            self.knowledge;
        let rpm = self.rpm_of_jobs.get(job).copied().flatten().or(rpm);
        let limits = Limits { rpm, tpm, max_in_flight: None };
        let remembered = [(Dimension::Requests, remembered_rpm), (Dimension::Tokens, remembered_tpm)];
        let remembered = remembered.into_iter().filter_map(|(dimension, rate)| Some((dimension, rate?)));
        Box::new(Learning::new(mode, profile, limits, remembered.collect()))
    }
}

/// One range of a scenario, and whether it holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// The figure that it is about.
    pub figure: Figure,
    /// The range.
    pub bounds: Bounds,
    /// The figure in each case; `None` where the course did not get so far.
    pub values: Vec<Option<f64>>,
    /// Whether all of them lie in the range, and their mean.
    pub holds: bool,
}

impl Scenario {
    /// The ranges that are set for a rule, and whether they hold in these cases.
    pub fn held(&self, rule: Rule, judged: &[Judged]) -> Vec<Held> {
        let ranges = self.expect.get(&rule).into_iter().flatten();
        let held = ranges.map(|(&figure, &bounds)| {
            let values: Vec<_> = judged.iter().map(|judged| figure.of(&judged.measures)).collect();
            let holds = values.iter().all(|value| bounds.admit(*value)) && bounds.admit_mean(&values);
            Held { figure, bounds, values, holds }
        });
        held.collect()
    }
}
