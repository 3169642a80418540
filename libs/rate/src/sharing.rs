//! How jobs on one key share its limit: each writes down what it sends, and reads what the others do. A pure document:
//! whoever stores it names the key by a fingerprint.
//!
//! Nobody is in charge. An entry expires unless its job renews it, so a job that was killed counts for three intervals
//! at most, and a document that is lost is whole again after one. The clocks of two machines may differ by less than
//! what an entry lasts; beyond that each works as if it were alone. An entry that claims to last longer than any
//! interval allows does not count.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use serde::{Deserialize, Serialize};

use crate::document::{self, DocumentError};

/// The format that this version writes and reads.
const FORMAT: &str = "penstock.sharing/1";

/// Entries of one model; beyond it those that expire first are dropped.
const JOBS: usize = 1_000;

/// Models of one key; beyond it those whose entries expire first are dropped.
const MODELS: usize = 1_000;

/// An entry lasts so many intervals, so that one that could not be renewed in time does no harm.
const INTERVALS: u32 = 3;

/// The longest that an entry may last, whatever it says of itself.
const LONGEST_MS: u64 = 60 * 60 * 1_000;

/// What the jobs on one key send, by model and job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sharing {
    models: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    /// Requests a minute.
    rpm: f64,
    /// When the entry ceases to count: milliseconds since the Unix epoch.
    expires_ms: u64,
}

/// What a job learns about those that use its key for the same model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shared {
    /// How many jobs there are, the one that asks among them.
    pub jobs: NonZeroU32,
    /// The mean of their rates in requests a minute, one that has not begun to send counting as zero; `None` where
    /// nobody has begun. So the mean is an equal part of what they send together.
    pub mean_rpm: Option<f64>,
}

impl Sharing {
    /// Reads what [`write`](Self::write) has written.
    pub fn read(bytes: &[u8]) -> Result<Self, DocumentError> {
        document::read(FORMAT, bytes)
    }

    /// The document as one line of JSON.
    pub fn write(&self) -> Vec<u8> {
        document::write(FORMAT, self)
    }

    /// A job says what it sends to a model; it says so again every `every`. What has expired is dropped. One that begins
    /// anew, and sends nothing yet, counts with what it last said.
    pub fn tell(&mut self, model: &str, job: &str, rpm: f64, now_ms: u64, every: Duration) {
        self.drop_expired(now_ms);
        let tells_something = rpm == 0.0 || document::is_rate(rpm);
        if !tells_something || !document::is_noted(model) {
            return;
        }
        let lasts =
            u64::try_from(every.saturating_mul(INTERVALS).as_millis()).unwrap_or(u64::MAX).min(LONGEST_MS);
        let expires_ms = now_ms.saturating_add(lasts);
        let jobs = self.models.entry(model.to_owned()).or_default();
        let entry = jobs.entry(job.to_owned()).or_insert(Entry { rpm, expires_ms });
        let rpm = if rpm > 0.0 { rpm } else { entry.rpm };
        *entry = Entry { rpm, expires_ms };
        self.bound();
    }

    /// A job sends no more.
    pub fn leave(&mut self, job: &str) {
        for jobs in self.models.values_mut() {
            jobs.remove(job);
        }
        self.models.retain(|_, jobs| !jobs.is_empty());
    }

    /// What `job` is to know of the others at a model.
    pub fn of(&self, model: &str, job: &str, now_ms: u64) -> Shared {
        let entries = self.models.get(model).into_iter().flatten();
        let living = entries.filter(|(_, entry)| entry.lives(now_ms));
        let (mut jobs, mut sum, mut present) = (0_u32, 0.0, false);
        for (name, entry) in living {
            present |= name == job;
            jobs = jobs.saturating_add(1);
            if document::is_rate(entry.rpm) {
                sum += entry.rpm;
            }
        }
        let jobs = NonZeroU32::new(jobs + u32::from(!present)).unwrap_or(NonZeroU32::MIN);
        Shared { jobs, mean_rpm: (sum > 0.0).then(|| sum / f64::from(jobs.get())) }
    }

    fn drop_expired(&mut self, now_ms: u64) {
        for jobs in self.models.values_mut() {
            jobs.retain(|_, entry| entry.lives(now_ms));
        }
        self.models.retain(|_, jobs| !jobs.is_empty());
    }

    fn bound(&mut self) {
        let soonest = |jobs: &BTreeMap<String, Entry>| {
            jobs.iter().min_by_key(|(_, entry)| entry.expires_ms).map(|(job, _)| job.clone())
        };
        for jobs in self.models.values_mut() {
            while jobs.len() > JOBS
                && let Some(job) = soonest(jobs)
            {
                jobs.remove(&job);
            }
        }
        while self.models.len() > MODELS {
            let last = |jobs: &BTreeMap<String, Entry>| jobs.values().map(|entry| entry.expires_ms).max();
            let model = self.models.iter().min_by_key(|(_, jobs)| last(jobs)).map(|(model, _)| model.clone());
            let Some(model) = model else { break };
            self.models.remove(&model);
        }
    }
}

impl Entry {
    /// Whether it counts; one from a clock that is far ahead does not.
    fn lives(&self, now_ms: u64) -> bool {
        let left_ms = self.expires_ms.saturating_sub(now_ms);
        left_ms > 0 && left_ms <= 2 * LONGEST_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn shared(jobs: u32, mean_rpm: Option<f64>) -> Shared {
        Shared { jobs: NonZeroU32::new(jobs).unwrap(), mean_rpm }
    }

    #[test]
    fn jobs_hear_of_one_another_until_they_leave_or_expire() {
        let mut sharing = Sharing::default();
        assert_eq!(sharing.of("m", "a", 0), shared(1, None));
        sharing.tell("m", "a", 900.0, 0, EVERY);
        sharing.tell("m", "b", 100.0, 20_000, EVERY);
        sharing.tell("other", "c", 7.0, 20_000, EVERY);
        let sharing = Sharing::read(&sharing.write()).unwrap();
        assert_eq!(sharing.of("m", "a", 20_000), shared(2, Some(500.0)));
        assert_eq!(sharing.of("m", "newcomer", 20_000), shared(3, Some(1_000.0 / 3.0)));
        assert_eq!(sharing.of("m", "b", 30_000), shared(1, Some(100.0)), "a has not renewed its entry");
        let mut left = sharing;
        left.leave("b");
        assert_eq!(left.of("m", "b", 20_000), shared(2, Some(450.0)));
    }

    #[test]
    fn a_job_that_begins_anew_counts_with_what_it_last_said() {
        let mut sharing = Sharing::default();
        sharing.tell("m", "a", 900.0, 0, EVERY);
        sharing.tell("m", "a", 0.0, 20_000, EVERY);
        assert_eq!(sharing.of("m", "b", 40_000), shared(2, Some(450.0)));
        sharing.tell("m", "a", 0.0, 90_000, EVERY);
        assert_eq!(sharing.of("m", "b", 90_000), shared(2, None), "that was too long ago");
    }

    #[test]
    fn what_expired_is_dropped_when_somebody_writes() {
        let mut sharing = Sharing::default();
        sharing.tell("old", "a", 1.0, 0, EVERY);
        sharing.tell("m", "b", 1.0, 30_000, EVERY);
        assert_eq!(sharing.models.keys().collect::<Vec<_>>(), ["m"]);
    }

    #[test]
    fn entries_from_clocks_that_are_far_off_and_rates_that_are_none_do_not_count() {
        let mut sharing = Sharing::default();
        sharing.tell("m", "future", 5_000.0, u64::MAX / 2, EVERY);
        for rpm in [f64::NAN, f64::INFINITY, -1.0, 1e8] {
            sharing.tell("m", "b", rpm, 1, EVERY);
        }
        assert_eq!(sharing.of("m", "b", 1), shared(1, None));
        sharing.tell(&"m".repeat(1_000), "b", 60.0, 1, EVERY);
        assert_eq!(sharing.of(&"m".repeat(1_000), "b", 1), shared(1, None));
        sharing.tell("m", "b", 0.0, 1, EVERY);
        assert_eq!(sharing.of("m", "a", 1), shared(2, None), "it is there and has not begun to send");
    }

    #[test]
    fn the_document_is_bounded() {
        let mut sharing = Sharing::default();
        for job in 0..1_200 {
            sharing.tell("m", &job.to_string(), 1.0, job, EVERY);
        }
        assert_eq!(sharing.of("m", "1199", 1_200).jobs.get(), 1_000);
        for model in 0..1_200 {
            sharing.tell(&format!("model {model}"), "a", 1.0, 1_200 + model, EVERY);
        }
        assert_eq!(sharing.models.len(), MODELS);
    }
}
