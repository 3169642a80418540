//! Figures of a course.

use std::ops::Range;

use serde::Serialize;

use super::{Course, JobCourse};

/// A rate is looked at over so many seconds at least, and over the time of [`REQUESTS`] at the limit.
const SECONDS: usize = 5;
const REQUESTS: f64 = 20.0;

/// What counts as having arrived at a limit.
const ARRIVED: f64 = 0.9;

/// After a change of the limit so many seconds must go well for it to count as settled: what a bucket still held, or a
/// window that has just begun, would hide for less than that what is to come.
const SETTLING: usize = 60;

/// After a change of the limit no more than this share of the requests may be refused for it to count as settled.
const SETTLED_REFUSED: f64 = 0.05;

/// What counts as fair: Jain's index.
const FAIR: f64 = 0.99;

/// How long the end is over which fairness is judged, in seconds.
const END: usize = 600;

/// The figures of a course. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measures {
    /// What was admitted, against what the limits admit in the long run: of the limit that was used more. A bucket
    /// that is full at first can bring it above 1.
    pub utilisation: Option<f64>,
    /// Requests refused for the rate, of all that were sent.
    pub refused: f64,
    /// Requests that found no room (503), of all that were sent.
    pub overloaded: f64,
    /// Seconds until the limit was used to 90 % for the first time. `None`: never.
    pub seconds_to_90_percent: Option<f64>,
    /// What came after each change of the limit.
    pub settled: Vec<Settled>,
    /// Jain's index over what each job was admitted in the last ten minutes; one job is fair to itself.
    pub fairness: f64,
    /// The least part of the limit that a job was admitted in the last ten minutes, as a share of its even part.
    pub least_part: f64,
    /// Seconds from the beginning of the last job until a minute begins that has a Jain's index of 0.99 or more.
    /// `None`: never.
    pub seconds_to_fairness: Option<f64>,
    /// The share of a saturating server's capacity that was used.
    pub work: Option<f64>,
    /// Requests that waited at a saturating server on average, in parts of its slots.
    pub waiting: Option<f64>,
    /// Seconds that an answer took on average.
    pub latency_seconds: f64,
    /// Requests that were sent.
    pub sent: u64,
    /// The most that one job had in flight.
    pub most_in_flight: u32,
    /// Seconds until the last job had all answers. `None`: it has no end, or did not reach it.
    pub finished_after_seconds: Option<f64>,
}

/// What came after a change of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Settled {
    /// When the limit changed, in minutes.
    pub after_minutes: f64,
    /// Whether it rose.
    pub raised: bool,
    /// Seconds until a minute began in which the new limit was used to 90 % with at most 5 % refused. `None`: not
    /// before the next change.
    pub seconds: Option<f64>,
}

impl Measures {
    /// Takes the figures.
    pub fn of(course: &Course) -> Self {
        let total = Totals::of(course);
        let sum = |counts: &[f64]| counts.iter().sum::<f64>();
        let sent = sum(&total.sent);
        let share = |part: f64| if sent > 0.0 { part / sent } else { 0.0 };
        let jobs = &course.jobs;
        let answers: f64 = jobs.iter().map(|job| amount(job.answers)).sum();
        let time: f64 = jobs.iter().map(|job| job.time_of_answers.as_secs_f64()).sum();
        let finished: Option<Vec<f64>> =
            jobs.iter().map(|job| job.finished_at.map(|at| at.as_secs_f64())).collect();
        let end = total.sent.len().saturating_sub(END)..total.sent.len();
        Self {
            utilisation: utilisation(course, &total),
            refused: share(sum(&total.refused)),
            overloaded: share(sum(&total.overloaded)),
            seconds_to_90_percent: total.arrived(0..total.sent.len(), SECONDS, 1.0),
            settled: settled(course, &total),
            fairness: fairness(jobs, end.clone()),
            least_part: least_part(course, end),
            seconds_to_fairness: seconds_to_fairness(jobs),
            work: course.work,
            waiting: course.slots.map(|slots| mean(&course.waiting) / f64::from(slots)),
            latency_seconds: if answers > 0.0 { time / answers } else { 0.0 },
            sent: jobs.iter().flat_map(|job| &job.sent).map(|count| u64::from(*count)).sum(),
            most_in_flight: jobs.iter().map(|job| job.most_in_flight).max().unwrap_or_default(),
            finished_after_seconds: finished.and_then(|ends| ends.into_iter().max_by(f64::total_cmp)),
        }
    }
}

/// All jobs together, second by second.
struct Totals {
    sent: Vec<f64>,
    refused: Vec<f64>,
    overloaded: Vec<f64>,
    /// Of the limit that binds: what was admitted, and what would have been in the long run.
    used: Vec<f64>,
    allowed: Vec<f64>,
    /// What a request takes of the limit that binds, on average.
    unit: f64,
}

impl Totals {
    fn of(course: &Course) -> Self {
        let seconds = course.requests_limit.len();
        let total = |of: fn(&JobCourse) -> &Vec<u32>| {
            let at = |second: usize| course.jobs.iter().filter_map(|job| of(job).get(second)).sum::<u32>();
            (0..seconds).map(|second| f64::from(at(second))).collect::<Vec<f64>>()
        };
        let (sent, refused, overloaded) =
            (total(|job| &job.sent), total(|job| &job.refused), total(|job| &job.overloaded));
        let admitted: Vec<f64> =
            (0..seconds).map(|second| sent[second] - refused[second] - overloaded[second]).collect();
        let before = std::iter::once(0.0).chain(course.charged_tokens.iter().copied());
        let tokens: Vec<f64> =
            course.charged_tokens.iter().zip(before).map(|(now, before)| now - before).collect();
        let per_second = |limits: &[Option<f64>]| {
            limits.iter().map(|limit| limit.unwrap_or(f64::INFINITY) / 60.0).collect()
        };
        let (requests_limit, tokens_limit): (Vec<f64>, Vec<f64>) =
            (per_second(&course.requests_limit), per_second(&course.tokens_limit));
        let share = |used: &[f64], allowed: &[f64]| used.iter().sum::<f64>() / allowed.iter().sum::<f64>();
        let requests: f64 = admitted.iter().sum();
        let by_tokens = share(&tokens, &tokens_limit) > share(&admitted, &requests_limit);
        let unit = if by_tokens && requests > 0.0 { tokens.iter().sum::<f64>() / requests } else { 1.0 };
        let (used, allowed) = if by_tokens { (tokens, tokens_limit) } else { (admitted, requests_limit) };
        Self { sent, refused, overloaded, used, allowed, unit }
    }

    /// Seconds from the start of `span` until the limit was used to 90 % with at most this share refused: to the
    /// beginning of the first window in which it was.
    fn arrived(&self, span: Range<usize>, shortest: usize, most_refused: f64) -> Option<f64> {
        let first = span.start;
        span.clone().find_map(|start| {
            let window = start..start + shortest.max(window(*self.allowed.get(start)? / self.unit));
            let sum = |counts: &[f64]| counts.get(window.clone()).map(|counts| counts.iter().sum::<f64>());
            let (used, allowed) = (sum(&self.used)?, sum(&self.allowed)?);
            let (sent, refused) = (sum(&self.sent)?, sum(&self.refused)?);
            let arrived =
                window.end <= span.end && used >= ARRIVED * allowed && refused <= most_refused * sent;
            arrived.then(|| seconds(start - first))
        })
    }
}

/// How many seconds must be looked at where so many requests a second are allowed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and at most 60 times 20"
)]
fn window(per_second: f64) -> usize {
    (REQUESTS / per_second.max(1.0 / 60.0)).ceil() as usize
}

fn utilisation(course: &Course, total: &Totals) -> Option<f64> {
    let limited = |limits: &[Option<f64>]| limits.first().is_some_and(Option::is_some);
    (limited(&course.requests_limit) || limited(&course.tokens_limit))
        .then(|| total.used.iter().sum::<f64>() / total.allowed.iter().sum::<f64>())
}

fn settled(course: &Course, total: &Totals) -> Vec<Settled> {
    let limit = if course.requests_limit.iter().any(Option::is_some) {
        &course.requests_limit
    } else {
        &course.tokens_limit
    };
    let changes: Vec<usize> = (1..limit.len()).filter(|&second| limit[second] != limit[second - 1]).collect();
    let ends = changes.iter().skip(1).copied().chain([limit.len()]);
    let settled = changes.iter().zip(ends).map(|(&change, end)| Settled {
        after_minutes: seconds(change) / 60.0,
        raised: limit[change] > limit[change - 1],
        seconds: total.arrived(change..end, SETTLING, SETTLED_REFUSED),
    });
    settled.collect()
}

/// Jain's index: the square of the sum over the sum of the squares, times how many; 1 where all are equal.
fn jain(parts: &[f64]) -> f64 {
    let (sum, squares) = (parts.iter().sum::<f64>(), parts.iter().map(|part| part * part).sum::<f64>());
    if squares > 0.0 { sum * sum / (squares * amount(parts.len() as u64)) } else { 1.0 }
}

fn admitted(job: &JobCourse, span: Range<usize>) -> f64 {
    job.admitted().skip(span.start).take(span.len()).map(f64::from).sum()
}

fn fairness(jobs: &[JobCourse], span: Range<usize>) -> f64 {
    jain(&jobs.iter().map(|job| admitted(job, span.clone())).collect::<Vec<_>>())
}

fn least_part(course: &Course, span: Range<usize>) -> f64 {
    let limit: f64 =
        course.requests_limit[span.clone()].iter().map(|limit| limit.unwrap_or(f64::INFINITY) / 60.0).sum();
    let even = limit / amount(course.jobs.len() as u64);
    let parts = course.jobs.iter().map(|job| admitted(job, span.clone()) / even);
    parts.min_by(f64::total_cmp).unwrap_or_default()
}

/// Judged over minutes: where the windows of a provider end, some seconds admit nobody.
fn seconds_to_fairness(jobs: &[JobCourse]) -> Option<f64> {
    const WINDOW: usize = 60;
    let began = jobs.iter().map(|job| job.began_at.as_secs()).max()?;
    let began = usize::try_from(began).ok()?;
    let length = jobs.iter().map(|job| job.sent.len()).min()?;
    let mut starts = (began..length.saturating_sub(WINDOW)).step_by(10);
    let fair = starts.find(|&start| fairness(jobs, start..start + WINDOW) >= FAIR)?;
    Some(seconds(fair - began))
}

fn mean(values: &[u32]) -> f64 {
    let sum: f64 = values.iter().copied().map(f64::from).sum();
    if values.is_empty() { 0.0 } else { sum / amount(values.len() as u64) }
}

fn seconds(count: usize) -> f64 {
    amount(count as u64)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn amount(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A course of one job against limits, per minute and second by second, that it was sent and refused these.
    fn course(limits: &[f64], sent: &[u32], refused: &[u32]) -> Course {
        let none = vec![0; sent.len()];
        let job = JobCourse {
            sent: sent.to_vec(),
            refused: refused.to_vec(),
            overloaded: none,
            ..JobCourse::default()
        };
        Course {
            requests_limit: limits.iter().map(|limit| Some(*limit)).collect(),
            tokens_limit: vec![None; limits.len()],
            charged_tokens: vec![0.0; limits.len()],
            jobs: vec![job],
            ..Course::default()
        }
    }

    #[test]
    fn utilisation_counts_what_was_admitted_of_what_could_have_been() {
        let measures = Measures::of(&course(&[600.0; 20], &[10; 20], &[1; 20]));
        assert_eq!((measures.sent, measures.utilisation, measures.refused), (200, Some(0.9), 0.1));
        assert_eq!(measures.seconds_to_90_percent, Some(0.0));
    }

    #[test]
    fn the_limit_is_reached_where_five_seconds_in_a_row_use_it() {
        let sent: Vec<u32> = (0..20).map(|second| if second < 7 { 2 } else { 10 }).collect();
        let measures = Measures::of(&course(&[600.0; 20], &sent, &[0; 20]));
        assert_eq!(measures.seconds_to_90_percent, Some(7.0));
        assert_eq!(Measures::of(&course(&[600.0; 20], &[8; 20], &[0; 20])).seconds_to_90_percent, None);
    }

    #[test]
    fn a_change_has_settled_when_a_minute_of_good_use_without_many_refusals_begins() {
        let limits: Vec<f64> = (0..300).map(|second| if second < 100 { 600.0 } else { 300.0 }).collect();
        // Refused for half a minute after the cut, then at the new limit.
        let sent: Vec<u32> = (0..300).map(|second| if second < 130 { 10 } else { 5 }).collect();
        let refused: Vec<u32> =
            (0..300).map(|second| if (100..130).contains(&second) { 5 } else { 0 }).collect();
        let settled = Measures::of(&course(&limits, &sent, &refused)).settled;
        assert_eq!(settled.len(), 1);
        assert!(!settled[0].raised);
        let seconds = settled[0].seconds.unwrap();
        assert!((25.0..=30.0).contains(&seconds), "{seconds} s");
    }

    #[test]
    fn fairness_is_judged_over_minutes() {
        let mut course = course(&[600.0; 200], &[8; 200], &[0; 200]);
        let mut second = course.jobs[0].clone();
        second.began_at = Duration::from_secs(20);
        second.sent = (0..200).map(|at| [0, 2, 8][usize::from(at >= 20) + usize::from(at >= 80)]).collect();
        course.jobs.push(second);
        let measures = Measures::of(&course);
        // From second 60 on a minute holds at most 20 seconds of the slow beginning.
        assert_eq!(measures.seconds_to_fairness, Some(50.0));
        assert!((measures.least_part - (60.0 * 2.0 + 120.0 * 8.0) / 1_000.0).abs() < 1e-9);
        assert!((jain(&[1.0, 0.0]) - 0.5).abs() < 1e-9);
    }
}
