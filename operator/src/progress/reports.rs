//! What executors have last said, in memory: the newest report of each job, and how fast it has come further lately.
//!
//! It is lost with the process, and told again within seconds; nothing that decides a job rests on it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use penstock_job::Report;

/// Over how long answers are counted for the rate that is shown.
const LATELY: Duration = Duration::from_mins(1);
/// The least time over which they are: less says too little.
const LONG_ENOUGH: Duration = Duration::from_secs(5);

/// A report, and when it came.
#[derive(Debug, Clone)]
pub struct Heard {
    /// What the executor said.
    pub report: Arc<Report>,
    /// When.
    pub at: Instant,
    /// Answers a minute, counted over the last one; `None` before there is enough to count.
    pub per_minute: Option<u64>,
}

/// The newest report of each job.
#[derive(Debug, Default)]
pub struct Reports {
    jobs: Mutex<HashMap<String, Job>>,
    taken: AtomicU64,
}

/// What is remembered of one job.
#[derive(Debug)]
struct Job {
    heard: Heard,
    /// How many of its lines had an outcome, and when; of one process.
    done: VecDeque<(Instant, u64)>,
}

impl Reports {
    /// The newest report of the job of this uid.
    pub fn of(&self, uid: &str) -> Option<Heard> {
        self.jobs().get(uid).map(|job| job.heard.clone())
    }

    /// Takes in a report of the job of this uid. One that is older than what was heard changes nothing.
    pub fn hear(&self, uid: &str, report: Report, at: Instant) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(uid) else {
            let done = VecDeque::from([(at, report.outcomes.total())]);
            let heard = Heard { report: Arc::new(report), at, per_minute: None };
            jobs.insert(uid.to_owned(), Job { heard, done });
            return;
        };
        if is_outdated(&report, &job.heard.report) {
            return;
        }
        if report.incarnation != job.heard.report.incarnation {
            job.done.clear();
        }
        job.count(at, report.outcomes.total());
        job.heard = Heard { report: Arc::new(report), at, per_minute: job.per_minute() };
    }

    /// How many reports were taken in.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Forgets every job but those.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.jobs().retain(|uid, _| is_there(uid));
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<String, Job>> {
        // Nothing panics while it holds this lock.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn count(&mut self, at: Instant, done: u64) {
        // Reports may come each second; the rate needs no more than one in five.
        if self.done.back().is_none_or(|(last, _)| at.duration_since(*last) >= LONG_ENOUGH) {
            self.done.push_back((at, done));
        }
        while self.done.len() > 2 && at.duration_since(self.done[1].0) >= LATELY {
            self.done.pop_front();
        }
    }

    fn per_minute(&self) -> Option<u64> {
        let ((began, before), (ended, now)) = (self.done.front()?, self.done.back()?);
        let millis = ended.duration_since(*began).as_millis();
        let answers = u128::from(now.saturating_sub(*before));
        u64::try_from((answers * 60_000).checked_div(millis)?).ok()
    }
}

/// Whether a report is older than one that was heard: the same process has said more since, or the job was claimed from
/// the one that says it.
fn is_outdated(report: &Report, heard: &Report) -> bool {
    if report.incarnation == heard.incarnation {
        report.sequence <= heard.sequence
    } else {
        report.epoch.0 > 0 && report.epoch <= heard.epoch
    }
}

#[cfg(test)]
mod tests {
    use penstock_job::{Epoch, Incarnation};

    use super::*;
    use crate::decide::tests::report;

    fn at(second: u64, report: Report, reports: &Reports, began: Instant) -> Heard {
        reports.hear("uid", report, began + Duration::from_secs(second));
        reports.of("uid").unwrap()
    }

    #[test]
    fn of_one_process_only_a_later_word_counts() {
        let (reports, began) = (Reports::default(), Instant::now());
        let first = Report { sequence: 5, ..report(penstock_job::report::Stage::Running) };
        at(0, first.clone(), &reports, began);
        let late = Report { sequence: 4, lines: 99, ..first.clone() };
        assert_eq!(at(1, late, &reports, began).report.lines, first.lines);
        let next = Report { sequence: 6, lines: 99, ..first };
        assert_eq!(at(2, next, &reports, began).report.lines, 99);
        assert_eq!(reports.taken(), 3);
    }

    #[test]
    fn an_executor_that_has_lost_its_claim_is_not_heard_any_more() {
        let (reports, began) = (Reports::default(), Instant::now());
        let old = Report { epoch: Epoch(1), ..report(penstock_job::report::Stage::Running) };
        let new = Report { epoch: Epoch(2), incarnation: Incarnation::draw(), ..old.clone() };
        at(0, old.clone(), &reports, began);
        at(1, new, &reports, began);
        let heard = at(2, Report { sequence: 100, ..old }, &reports, began);
        assert_eq!(heard.report.epoch, Epoch(2));
    }

    #[test]
    fn the_rate_is_that_of_the_last_minute_of_one_process() {
        let (reports, began) = (Reports::default(), Instant::now());
        let first = report(penstock_job::report::Stage::Running);
        let said = |sequence, succeeded| {
            let mut next = Report { sequence, ..first.clone() };
            next.outcomes.succeeded = succeeded;
            next
        };
        assert_eq!(
            at(0, said(1, 1_000), &reports, began).per_minute,
            None,
            "what was done before is not counted"
        );
        assert_eq!(at(30, said(2, 1_050), &reports, began).per_minute, Some(100));
        assert_eq!(at(60, said(3, 1_100), &reports, began).per_minute, Some(100));
        assert_eq!(
            at(90, said(4, 1_400), &reports, began).per_minute,
            Some(350),
            "the first half minute is over"
        );
        let other = Report { incarnation: Incarnation::draw(), epoch: Epoch(2), ..said(1, 1_400) };
        assert_eq!(at(100, other, &reports, began).per_minute, None);
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let reports = Reports::default();
        reports.hear("uid", report(penstock_job::report::Stage::Running), Instant::now());
        reports.retain(|uid| uid != "uid");
        assert!(reports.of("uid").is_none());
    }
}
