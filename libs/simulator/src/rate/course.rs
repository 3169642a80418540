//! What happened in a trial, second by second.

use std::time::Duration;

use super::{Answer, Outcome};

/// The course of a trial. Every list has one entry a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// Requests per minute that the provider admitted in the long run. `None`: it did not count requests.
    pub requests_limit: Vec<Option<f64>>,
    /// Tokens per minute likewise.
    pub tokens_limit: Vec<Option<f64>>,
    /// Tokens that had been charged until the end of the second, and not been given back.
    pub charged_tokens: Vec<f64>,
    /// Requests that the server worked on, where it saturates.
    pub running: Vec<u32>,
    /// Requests that waited there.
    pub waiting: Vec<u32>,
    /// How many requests it can work on at once.
    pub slots: Option<u32>,
    /// The share of a saturating server's capacity that was used on average. `None`: it does not saturate.
    pub work: Option<f64>,
    /// One for each job.
    pub jobs: Vec<JobCourse>,
}

/// What happened to one job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobCourse {
    /// Requests that went out.
    pub sent: Vec<u32>,
    /// Those of them that were refused for the rate.
    pub refused: Vec<u32>,
    /// Those of them that found no room (503).
    pub overloaded: Vec<u32>,
    /// Requests in flight at the end of the second.
    pub in_flight: Vec<u32>,
    /// What its controller aimed at, in requests per minute, where it says so.
    pub target: Vec<Option<f64>>,
    /// The most requests that were in flight at once.
    pub most_in_flight: u32,
    /// Answers that came, and the time that they took in all.
    pub answers: u64,
    /// See `answers`.
    pub time_of_answers: Duration,
    /// When it had begun.
    pub began_at: Duration,
    /// When its last answer came, if it had an end and reached it.
    pub finished_at: Option<Duration>,
}

impl JobCourse {
    /// Requests that were let in, second by second.
    pub fn admitted(&self) -> impl Iterator<Item = u32> {
        let turned_away =
            self.refused.iter().zip(&self.overloaded).map(|(refused, overloaded)| refused + overloaded);
        self.sent.iter().zip(turned_away).map(|(sent, turned_away)| sent - turned_away)
    }

    /// A request went out; `turned_away` says how, if it was.
    pub(super) fn sent(&mut self, turned_away: Option<&Answer>, in_flight: u32) {
        count(&mut self.sent);
        match turned_away.map(|answer| answer.outcome) {
            Some(Outcome::Refused { .. }) => count(&mut self.refused),
            Some(Outcome::Overloaded) => count(&mut self.overloaded),
            _ => {}
        }
        self.most_in_flight = self.most_in_flight.max(in_flight);
    }

    pub(super) fn answered(&mut self, now: Duration, answer: &Answer) {
        if matches!(answer.outcome, Outcome::Succeeded { .. } | Outcome::Failed) {
            self.answers += 1;
            self.time_of_answers += now.saturating_sub(answer.sent_at);
        }
    }

    pub(super) fn begin_second(&mut self) {
        for counts in [&mut self.sent, &mut self.refused, &mut self.overloaded] {
            counts.push(0);
        }
    }
}

/// One more in the present second.
fn count(seconds: &mut [u32]) {
    if let Some(present) = seconds.last_mut() {
        *present += 1;
    }
}
