//! Which line goes next. Pure: told what happened and asked with a clock reading.
//!
//! Each model has its own queue: lines that wait for another attempt first, then its plans, window by window. The
//! models take turns, so none starves another; of the two limits on requests in flight a model's own is taken first.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use penstock_batchfile::{Ordinal, Position};
use tokio::time::Instant;

use super::{retries::Retries, task::Task};
use crate::ingest::{Plan, PlanEntry, Spool, Window};

/// Lines that wait for another attempt at most, over all models; beyond this no new line is started.
pub(super) const MOST_RETRIES: usize = 4_096;

/// Whether a model's requests are let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    /// Nothing goes before this moment; then one request goes to see whether it works again.
    Closed(Instant),
    /// That request is on its way.
    Probing,
}

#[derive(Debug)]
struct Queue {
    waiting: Retries,
    plans: VecDeque<PlannedLines>,
    in_flight: u32,
    limit: u32,
    gate: Gate,
}

#[derive(Debug)]
struct PlannedLines {
    start: Position,
    spool: Arc<Spool>,
    entries: std::vec::IntoIter<PlanEntry>,
}

/// The answer to "what goes next?".
#[derive(Debug)]
pub(super) enum Next {
    /// This line, now. It counts as in flight.
    Send(Task),
    /// Nothing before this moment, unless something happens.
    At(Instant),
    /// Nothing until something happens: an answer comes or a window is loaded.
    Wait,
}

/// When a model's next request may go, as its pacing says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Now,
    At(Instant),
    /// Not before an answer comes.
    Wait,
}

/// Every line that is loaded and has no outcome yet, and how many are in flight.
#[derive(Debug)]
pub(super) struct Schedule {
    queues: BTreeMap<Arc<str>, Queue>,
    /// The model whose turn was last.
    last: Option<Arc<str>>,
    in_flight: u32,
    max_in_flight: u32,
    waiting: usize,
}

impl Schedule {
    pub(super) fn new(max_in_flight: u32) -> Self {
        Self { queues: BTreeMap::new(), last: None, in_flight: 0, max_in_flight, waiting: 0 }
    }

    /// So many requests may be in flight from now on; those that are stay.
    pub(super) fn bound(&mut self, max_in_flight: u32) {
        self.max_in_flight = max_in_flight;
    }

    /// Loads a window; `limit` says how many requests of a model may be in flight.
    pub(super) fn load(&mut self, window: Window, limit: impl Fn(&str) -> u32) {
        for Plan { model, entries } in window.plans {
            let queue = self.queues.entry(Arc::clone(&model)).or_insert_with(|| Queue {
                waiting: Retries::default(),
                plans: VecDeque::new(),
                in_flight: 0,
                limit: limit(&model),
                gate: Gate::Open,
            });
            let spool = Arc::clone(&window.spool);
            queue.plans.push_back(PlannedLines { start: window.start, spool, entries: entries.into_iter() });
        }
    }

    /// Whether every loaded line has been sent at least once: time for another window.
    pub(super) fn is_exhausted(&self) -> bool {
        self.queues.values().all(|queue| queue.plans.is_empty())
    }

    /// Whether every loaded line has an outcome.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.waiting == 0 && self.is_exhausted()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether the user's own limit on requests in flight holds lines back.
    pub(super) fn is_full(&self) -> bool {
        self.in_flight >= self.max_in_flight
    }

    /// What goes next; `pace` is asked with the model and the length of the line that would go.
    pub(super) fn next(&mut self, now: Instant, mut pace: impl FnMut(&str, u32) -> Pace) -> Next {
        if self.is_full() {
            return Next::Wait;
        }
        let room = MOST_RETRIES.saturating_sub(self.waiting);
        let mut earliest: Option<Instant> = None;
        let mut found = None;
        for (model, queue) in self.turns() {
            // A model takes at most as much room as it leaves, so one that is refused again and again starves no other.
            match queue.ready(now, queue.waiting.len() < room) {
                Ready::Nothing => {}
                Ready::At(at) => earliest = Some(earliest.map_or(at, |other| other.min(at))),
                Ready::Line { length } => match pace(model, length) {
                    Pace::Now => {
                        found = Some(Arc::clone(model));
                        break;
                    }
                    Pace::At(at) => earliest = Some(earliest.map_or(at, |other| other.min(at))),
                    Pace::Wait => {}
                },
            }
        }
        match found {
            Some(model) => Next::Send(self.take(model, now)),
            None => earliest.map_or(Next::Wait, Next::At),
        }
    }

    /// The models in the order of their turns: those behind the last one first.
    fn turns(&self) -> impl Iterator<Item = (&Arc<str>, &Queue)> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let (behind, rest) = match &self.last {
            Some(last) => ((Excluded(last), Unbounded), Some((Unbounded, Included(last)))),
            None => ((Unbounded, Unbounded), None),
        };
        self.queues.range::<Arc<str>, (std::ops::Bound<&Arc<str>>, std::ops::Bound<&Arc<str>>)>(behind).chain(
            rest.into_iter().flat_map(|rest| {
                self.queues.range::<Arc<str>, (std::ops::Bound<&Arc<str>>, std::ops::Bound<&Arc<str>>)>(rest)
            }),
        )
    }

    fn take(&mut self, model: Arc<str>, now: Instant) -> Task {
        let queue = self.queues.get_mut(&model).expect("the model was found a moment ago");
        let task = match queue.waiting.take(now) {
            Some(task) => {
                self.waiting -= 1;
                task
            }
            None => queue.take_planned(&model),
        };
        queue.in_flight += 1;
        if matches!(queue.gate, Gate::Closed(_)) {
            queue.gate = Gate::Probing;
        }
        self.in_flight += 1;
        self.last = Some(model);
        task
    }

    /// A request has ended, one way or the other.
    pub(super) fn ended(&mut self, model: &str) {
        self.in_flight -= 1;
        if let Some(queue) = self.queues.get_mut(model) {
            queue.in_flight -= 1;
        }
    }

    /// The line is to be tried again, not before `due`.
    pub(super) fn try_again(&mut self, task: Task, due: Instant) {
        self.waiting += 1;
        let queue =
            self.queues.get_mut(&task.model).expect("a queue stays while one of its lines is in flight");
        queue.waiting.push(task, due);
    }

    /// Nothing of this model goes before `until`, and then one request only. Never shortens a longer closure.
    pub(super) fn close(&mut self, model: &str, until: Instant) {
        if let Some(queue) = self.queues.get_mut(model) {
            queue.gate = match queue.gate {
                Gate::Closed(other) => Gate::Closed(other.max(until)),
                Gate::Open | Gate::Probing => Gate::Closed(until),
            };
        }
    }

    /// A request that was not turned away has ended: if it was the one that was to see whether its model works again,
    /// the model is open. One that was sent before the model was closed opens nothing.
    pub(super) fn open_probed(&mut self, model: &str) {
        if let Some(queue) = self.queues.get_mut(model)
            && queue.gate == Gate::Probing
        {
            queue.gate = Gate::Open;
        }
    }

    /// Every closed model may try again at once.
    pub(super) fn open_all(&mut self) {
        for queue in self.queues.values_mut() {
            queue.gate = Gate::Open;
        }
    }

    /// Whether any model is closed or being probed.
    pub(super) fn any_closed(&self) -> bool {
        self.queues.values().any(|queue| queue.gate != Gate::Open)
    }

    /// Forgets models that have nothing to do, beyond `most` of them.
    pub(super) fn forget_idle(&mut self, most: usize) -> Vec<Arc<str>> {
        if self.queues.len() <= most {
            return Vec::new();
        }
        let idle: Vec<_> = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.is_idle())
            .map(|(model, _)| Arc::clone(model))
            .collect();
        for model in &idle {
            self.queues.remove(model);
        }
        idle
    }
}

/// What one model could send.
enum Ready {
    Nothing,
    At(Instant),
    Line { length: u32 },
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.waiting.is_empty() && self.plans.is_empty()
    }

    fn ready(&self, now: Instant, may_start: bool) -> Ready {
        if self.in_flight >= self.limit || self.gate == Gate::Probing {
            return Ready::Nothing;
        }
        if let Gate::Closed(until) = self.gate
            && until > now
        {
            return if self.is_idle() { Ready::Nothing } else { Ready::At(until) };
        }
        let planned = self.plans.front().and_then(|lines| lines.entries.as_slice().first());
        match (self.waiting.ready(now), planned) {
            (Some(task), _) => Ready::Line { length: task.length },
            (None, Some(entry)) if may_start => Ready::Line { length: entry.length },
            (None, _) => self.waiting.due().map_or(Ready::Nothing, Ready::At),
        }
    }

    fn take_planned(&mut self, model: &Arc<str>) -> Task {
        let lines = self.plans.front_mut().expect("a model without plans is not ready");
        let entry = lines.entries.next().expect("a plan without lines is dropped");
        let task = Task {
            model: Arc::clone(model),
            ordinal: Ordinal::new(lines.start.ordinal.get() + entry.ordinal),
            input_offset: lines.start.byte_offset + u64::from(entry.offset),
            length: entry.length,
            spool: Arc::downgrade(&lines.spool),
            tries: 0,
            refusals: 0,
            history: Vec::new(),
        };
        if lines.entries.as_slice().is_empty() {
            self.plans.pop_front();
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Semaphore;

    use super::*;

    /// A window with so many lines of each model, in alphabetical order of the models.
    fn window(models: &[(&str, u32)]) -> Window {
        let slot = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let spool = Arc::new(Spool::new(tempfile::tempfile().unwrap(), 0, slot));
        let mut ordinal = 0;
        let mut plan = |model: &str, count: u32| Plan {
            model: model.into(),
            entries: (0..count)
                .map(|_| {
                    ordinal += 1;
                    PlanEntry::new(ordinal * 10, 9, ordinal - 1)
                })
                .collect(),
        };
        let plans = models.iter().map(|(model, count)| plan(model, *count)).collect();
        Window { start: Position::START, end: Position::START, plans, spool }
    }

    fn schedule(max_in_flight: u32, models: &[(&str, u32)], limit: u32) -> Schedule {
        let mut schedule = Schedule::new(max_in_flight);
        schedule.load(window(models), |_| limit);
        schedule
    }

    fn take(schedule: &mut Schedule, now: Instant) -> Option<Task> {
        match schedule.next(now, |_, _| Pace::Now) {
            Next::Send(task) => Some(task),
            Next::At(_) | Next::Wait => None,
        }
    }

    fn models(schedule: &mut Schedule) -> String {
        let now = Instant::now();
        std::iter::from_fn(|| take(schedule, now).map(|task| task.model.to_string())).collect()
    }

    #[test]
    fn models_take_turns_however_many_lines_each_has() {
        let mut schedule = schedule(100, &[("a", 5), ("b", 2), ("c", 1)], 100);
        assert_eq!(models(&mut schedule), "abcabaaa");
        assert!(schedule.is_exhausted() && !schedule.is_idle());
    }

    #[test]
    fn a_models_own_limit_leaves_room_for_others_and_the_jobs_limit_holds_for_all() {
        let mut schedule = schedule(5, &[("a", 9), ("b", 9)], 2);
        assert_eq!(models(&mut schedule), "abab");
        schedule.ended("a");
        assert_eq!(models(&mut schedule), "a");
        let mut schedule = super::tests::schedule(3, &[("a", 9), ("b", 9)], 2);
        assert_eq!(models(&mut schedule), "aba");
        assert!(schedule.is_full());
    }

    #[test]
    fn a_model_that_must_wait_does_not_hold_up_another() {
        let mut schedule = schedule(100, &[("a", 3), ("b", 3)], 100);
        let now = Instant::now();
        let later = now + Duration::from_secs(5);
        let pace = |model: &str, _| if model == "a" { Pace::At(later) } else { Pace::Now };
        for _ in 0..3 {
            assert!(matches!(schedule.next(now, pace), Next::Send(task) if &*task.model == "b"));
        }
        assert!(matches!(schedule.next(now, pace), Next::At(at) if at == later));
    }

    #[test]
    fn a_line_that_waits_for_another_attempt_goes_first_once_it_is_due() {
        let mut schedule = schedule(100, &[("a", 3)], 100);
        let now = Instant::now();
        let due = now + Duration::from_secs(1);
        let first = take(&mut schedule, now).unwrap();
        let ordinal = first.ordinal;
        schedule.ended("a");
        schedule.try_again(first, due);
        assert_ne!(take(&mut schedule, now).unwrap().ordinal, ordinal, "not yet");
        assert_eq!(take(&mut schedule, due).unwrap().ordinal, ordinal);
        assert_eq!(schedule.waiting(), 0);
    }

    #[test]
    fn no_new_line_is_started_while_too_many_wait() {
        let mut schedule = schedule(u32::MAX, &[("a", 5_000), ("b", 5_000)], u32::MAX);
        let now = Instant::now();
        let due = now + Duration::from_secs(1);
        let mut counts = [0; 2];
        while let Some(task) = take(&mut schedule, now) {
            counts[usize::from(&*task.model == "b")] += 1;
            schedule.ended(&task.model);
            let model = Arc::clone(&task.model);
            schedule.try_again(task, due);
            assert!(schedule.waiting() <= MOST_RETRIES, "{model}");
        }
        assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
        assert!(matches!(schedule.next(now, |_, _| Pace::Now), Next::At(at) if at == due));
    }

    #[test]
    fn a_model_that_is_always_refused_leaves_room_for_another() {
        let mut schedule = schedule(u32::MAX, &[("a", 5_000), ("b", 1)], 1);
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let b = loop {
            let task = take(&mut schedule, now).unwrap();
            if &*task.model == "b" {
                break task;
            }
            schedule.ended("a");
            schedule.try_again(task, later);
        };
        while let Some(task) = take(&mut schedule, now) {
            assert_eq!(&*task.model, "a");
            schedule.ended("a");
            schedule.try_again(task, later);
        }
        schedule.ended("b");
        schedule.load(window(&[("b", 1)]), |_| 1);
        assert_eq!(&*take(&mut schedule, now).expect("b may still start").model, "b");
        drop(b);
    }

    #[test]
    fn an_answer_to_a_request_from_before_the_closure_opens_nothing() {
        let mut schedule = schedule(100, &[("a", 5)], 100);
        let now = Instant::now();
        take(&mut schedule, now).unwrap();
        let until = now + Duration::from_mins(1);
        schedule.close("a", until);
        schedule.ended("a");
        schedule.open_probed("a");
        assert!(take(&mut schedule, now).is_none());
        assert!(take(&mut schedule, until).is_some());
    }

    #[test]
    fn a_closed_model_is_probed_by_one_request_and_opens_with_its_answer() {
        let mut schedule = schedule(100, &[("a", 5), ("b", 1)], 100);
        let now = Instant::now();
        let until = now + Duration::from_mins(1);
        schedule.close("a", until);
        schedule.close("a", now);
        assert_eq!(&*take(&mut schedule, now).unwrap().model, "b", "another model goes on");
        assert!(
            matches!(schedule.next(now, |_, _| Pace::Now), Next::At(at) if at == until),
            "never shortened"
        );
        assert!(take(&mut schedule, until).is_some());
        assert!(take(&mut schedule, until).is_none(), "one probe at a time");
        schedule.open_probed("a");
        assert!(!schedule.any_closed());
        assert!(take(&mut schedule, until).is_some());
    }

    #[test]
    fn a_probe_that_is_refused_closes_the_model_again() {
        let mut schedule = schedule(100, &[("a", 2)], 100);
        let now = Instant::now();
        schedule.close("a", now);
        let probe = take(&mut schedule, now).unwrap();
        schedule.ended("a");
        schedule.close("a", now + Duration::from_mins(1));
        schedule.try_again(probe, now);
        assert!(take(&mut schedule, now).is_none());
        assert!(take(&mut schedule, now + Duration::from_mins(1)).is_some());
    }

    #[test]
    fn idle_models_are_forgotten_only_beyond_the_bound() {
        let mut schedule = schedule(100, &[("a", 1), ("b", 2)], 100);
        let now = Instant::now();
        take(&mut schedule, now);
        schedule.ended("a");
        assert!(schedule.forget_idle(2).is_empty());
        assert_eq!(schedule.forget_idle(1), ["a".into()]);
    }
}
