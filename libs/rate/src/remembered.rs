//! What jobs have found out about the limits of one key, for the jobs that come after them. A pure document: whoever
//! stores it names the key by a fingerprint, and the document itself knows neither key nor provider.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::document::{self, DocumentError};
use crate::event::Dimension;

/// The format that this version writes and reads.
const FORMAT: &str = "penstock.rates/2";

/// Models that are remembered; beyond it the oldest are forgotten.
const MODELS: usize = 1_000;

/// How long a rate is worth starting from. Accounts are raised to another tier, models are replaced; after a month
/// learning anew is as good a guess.
const LIFETIME_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// What was found by model and by what is limited, each with the time at which it was true. One job may meet the limit
/// of requests and the next that of tokens: each finding stands until another of the same quantity comes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    models: BTreeMap<String, BTreeMap<Dimension, Finding>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Finding {
    /// Requests, or tokens.
    per_minute: f64,
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

    /// What the last jobs found at a model, in units a minute, unless it is too old. A time in the future, from a clock
    /// that was wrong, counts as the present.
    pub fn found(&self, model: &str, now_ms: u64) -> BTreeMap<Dimension, f64> {
        let is_young = |finding: &Finding| now_ms.saturating_sub(finding.at_ms) <= LIFETIME_MS;
        let findings = self.models.get(model).into_iter().flatten();
        findings
            .filter(|(dimension, finding)| {
                is_young(finding) && document::is_limit(**dimension, finding.per_minute)
            })
            .map(|(dimension, finding)| (*dimension, finding.per_minute))
            .collect()
    }

    /// A job runs well with so many requests, or tokens, a minute. What is no rate is not noted.
    pub fn record(&mut self, model: &str, found: &BTreeMap<Dimension, f64>, now_ms: u64) {
        let believed = found.iter().filter(|(dimension, rate)| document::is_limit(**dimension, **rate));
        let findings =
            believed.map(|(dimension, rate)| (*dimension, Finding { per_minute: *rate, at_ms: now_ms }));
        let mut findings = findings.peekable();
        if findings.peek().is_none() || !document::is_noted(model) {
            return;
        }
        self.models.entry(model.to_owned()).or_default().extend(findings);
        while self.models.len() > MODELS {
            let latest =
                |findings: &BTreeMap<Dimension, Finding>| findings.values().map(|found| found.at_ms).max();
            let oldest = self.models.iter().min_by_key(|(_, findings)| latest(findings));
            let Some(oldest) = oldest.map(|(model, _)| model.clone()) else { break };
            self.models.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(per_minute: f64) -> BTreeMap<Dimension, f64> {
        BTreeMap::from([(Dimension::Requests, per_minute)])
    }

    #[test]
    fn what_is_recorded_is_read_back_until_it_is_too_old() {
        let mut rates = Remembered::default();
        rates.record("m", &requests(3_480.5), 1_000);
        let read = Remembered::read(&rates.write()).unwrap();
        assert_eq!(read, rates);
        assert_eq!(read.found("m", 1_000 + LIFETIME_MS), requests(3_480.5));
        assert_eq!(read.found("m", 0), requests(3_480.5), "a clock that went back");
        assert_eq!(read.found("m", 1_001 + LIFETIME_MS), BTreeMap::new());
        assert_eq!(read.found("other", 1_000), BTreeMap::new());
    }

    #[test]
    fn each_quantity_is_remembered_until_it_is_found_again() {
        let mut rates = Remembered::default();
        rates.record("m", &BTreeMap::from([(Dimension::Requests, 500.0), (Dimension::Tokens, 1e6)]), 1_000);
        rates.record("m", &BTreeMap::from([(Dimension::Tokens, 2e6)]), 2_000);
        let both = BTreeMap::from([(Dimension::Requests, 500.0), (Dimension::Tokens, 2e6)]);
        assert_eq!(rates.found("m", 2_000), both);
        assert_eq!(rates.found("m", 1_500 + LIFETIME_MS), BTreeMap::from([(Dimension::Tokens, 2e6)]));
    }

    #[test]
    fn what_is_no_rate_is_neither_noted_nor_believed() {
        let mut rates = Remembered::default();
        for rpm in [0.0, -1.0, 1e8, f64::NAN, f64::INFINITY] {
            rates.record("m", &requests(rpm), 0);
        }
        rates.record("m", &BTreeMap::from([(Dimension::OutputTokens, 1e13)]), 0);
        rates.record(&"m".repeat(1_000), &requests(60.0), 0);
        assert_eq!(rates, Remembered::default());
        let lies =
            br#"{"format":"penstock.rates/2","models":{"m":{"requests":{"per_minute":-7,"at_ms":0}}}}"#;
        assert_eq!(Remembered::read(lies).unwrap().found("m", 0), BTreeMap::new());
    }

    #[test]
    fn the_oldest_models_are_forgotten_beyond_the_bound() {
        let mut rates = Remembered::default();
        for at_ms in 0..1_500 {
            rates.record(&at_ms.to_string(), &requests(60.0), at_ms);
        }
        assert_eq!(rates.models.len(), MODELS);
        assert_eq!((rates.found("499", 0), rates.found("500", 0)), (BTreeMap::new(), requests(60.0)));
    }
}
