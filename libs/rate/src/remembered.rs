//! What jobs have found out about the limits of one key, for the jobs that come after them. A pure document: whoever
//! stores it names the key by a fingerprint, and the document itself knows neither key nor provider.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::document::{self, DocumentError};

/// The format that this version writes and reads.
const FORMAT: &str = "penstock.rates/1";

/// Models that are remembered; beyond it the oldest are forgotten.
const MODELS: usize = 1_000;

/// How long a rate is worth starting from. Accounts are raised to another tier, models are replaced; after a month
/// learning anew is as good a guess.
const LIFETIME_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// Rates by model, each with the time at which it was true.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    models: BTreeMap<String, Finding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Finding {
    /// Requests a minute.
    rpm: f64,
    /// Milliseconds since the Unix epoch.
    at_ms: u64,
}

impl Remembered {
    /// Reads what [`write`](Self::write) has written.
    pub fn read(bytes: &[u8]) -> Result<Self, DocumentError> {
        document::read(FORMAT, bytes)
    }

    /// The document as one line of JSON.
    pub fn write(&self) -> Vec<u8> {
        document::write(FORMAT, self)
    }

    /// The last rate of a model in requests a minute, unless it is too old. A time in the future, from a clock that was
    /// wrong, counts as the present.
    pub fn rpm(&self, model: &str, now_ms: u64) -> Option<f64> {
        let finding = self.models.get(model)?;
        let is_young = now_ms.saturating_sub(finding.at_ms) <= LIFETIME_MS;
        (is_young && document::is_rate(finding.rpm)).then_some(finding.rpm)
    }

    /// A job runs well with so many requests a minute. What is no rate is not noted.
    pub fn record(&mut self, model: &str, rpm: f64, now_ms: u64) {
        if !document::is_rate(rpm) || !document::is_noted(model) {
            return;
        }
        self.models.insert(model.to_owned(), Finding { rpm, at_ms: now_ms });
        while self.models.len() > MODELS {
            let oldest = self.models.iter().min_by_key(|(_, finding)| finding.at_ms);
            let Some(oldest) = oldest.map(|(model, _)| model.clone()) else { break };
            self.models.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_read_back_until_it_is_too_old() {
        let mut rates = Remembered::default();
        rates.record("m", 3_480.5, 1_000);
        let read = Remembered::read(&rates.write()).unwrap();
        assert_eq!(read, rates);
        assert_eq!(read.rpm("m", 1_000 + LIFETIME_MS), Some(3_480.5));
        assert_eq!(read.rpm("m", 0), Some(3_480.5), "a clock that went back");
        assert_eq!(read.rpm("m", 1_001 + LIFETIME_MS), None);
        assert_eq!(read.rpm("other", 1_000), None);
    }

    #[test]
    fn what_is_no_rate_is_neither_noted_nor_believed() {
        let mut rates = Remembered::default();
        for rpm in [0.0, -1.0, 1e8, f64::NAN, f64::INFINITY] {
            rates.record("m", rpm, 0);
        }
        rates.record(&"m".repeat(1_000), 60.0, 0);
        assert_eq!(rates, Remembered::default());
        let lies = br#"{"format":"penstock.rates/1","models":{"m":{"rpm":-7,"at_ms":0}}}"#;
        assert_eq!(Remembered::read(lies).unwrap().rpm("m", 0), None);
    }

    #[test]
    fn the_oldest_models_are_forgotten_beyond_the_bound() {
        let mut rates = Remembered::default();
        for at_ms in 0..1_500 {
            rates.record(&at_ms.to_string(), 60.0, at_ms);
        }
        assert_eq!(rates.models.len(), MODELS);
        assert_eq!((rates.rpm("499", 0), rates.rpm("500", 0)), (None, Some(60.0)));
    }
}
