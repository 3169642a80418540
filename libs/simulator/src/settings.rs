//! What kind of provider the simulator is: everything that a test or a person can tell it.
//!
//! Owns the settings as a whole and their check; the limits and the faults are described in their own rooms.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    distribution::{Distribution, InvalidDistribution},
    fault::{FaultRule, InvalidFaultRule},
    limit::{InvalidQuota, LimitSettings},
};

/// A provider. The default answers every well-formed request at once, without limits and without faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSettings {
    /// Decides every draw. Two servers with one seed treat the same prompts alike.
    pub seed: u64,
    /// The keys that are accepted, where the dialect carries them. Empty: no key is asked for.
    pub api_keys: Vec<String>,
    /// The models (with Azure the deployments) that exist; any other is answered with 404. `None`: all exist.
    pub models: Option<Vec<String>>,
    /// The largest request body in bytes; a larger one is answered with 413.
    pub largest_request_bytes: usize,
    /// Hidden rate limits and what the answers say about them.
    pub limits: LimitSettings,
    /// How long answers take.
    pub latency: Latency,
    /// How long the answers are.
    pub output_length: OutputLength,
    /// How many requests are worked on at once. `None`: any number.
    pub slots: Option<Slots>,
    /// What goes wrong. The first rule that applies to a request decides.
    pub faults: Vec<FaultRule>,
    /// What is remembered. Read when the server starts: an update leaves the log as it is.
    pub log: LogSettings,
    /// The most connections served at once; more wait to be accepted. Read when the server starts.
    pub connections: usize,
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            api_keys: Vec::new(),
            models: None,
            largest_request_bytes: 32 << 20,
            limits: LimitSettings::default(),
            latency: Latency::default(),
            output_length: OutputLength::default(),
            slots: None,
            faults: Vec::new(),
            log: LogSettings::default(),
            connections: 10_000,
        }
    }
}

/// How long an answer takes: a start, and a time for each token of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    /// Milliseconds until the first token.
    pub start_ms: Distribution,
    /// Milliseconds for each output token after that.
    pub per_output_token_ms: f64,
    /// Milliseconds until a refusal (4xx, 5xx) comes back.
    pub refusal_ms: Distribution,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            start_ms: Distribution::Constant(0.0),
            per_output_token_ms: 0.0,
            refusal_ms: Distribution::Constant(0.0),
        }
    }
}

/// How many tokens an answer has, before the limit that the request itself sets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputLength {
    /// Tokens. The answer ends with the sentence that reaches this length.
    pub tokens: Distribution,
    /// No answer is longer than this many tokens.
    pub most_tokens: u32,
    /// Tokens of thinking before each answer: not shown, but counted, and limited together with it.
    pub thought_tokens: u32,
}

impl Default for OutputLength {
    fn default() -> Self {
        Self {
            tokens: Distribution::LogNormal { median: 60.0, sigma: 0.5 },
            most_tokens: 2_048,
            thought_tokens: 0,
        }
    }
}

/// The places of a server that saturates, such as the running batch of a self-hosted model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slots {
    /// How many requests are worked on at once.
    pub at_once: u32,
    /// What happens to the next one.
    pub when_full: WhenFull,
}

/// What a saturated server does with one more request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It waits for its turn.
    Queue,
    /// It is answered with 503.
    Refuse,
}

/// What the server remembers of the requests. Both ways are off by default, since a benchmark needs neither.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// The most entries kept in memory; beyond it the oldest are forgotten. 0: none are kept.
    pub entries_in_memory: usize,
    /// A file that each arrival and each answer is appended to, as one JSON line each.
    pub file: Option<PathBuf>,
}

/// Settings that describe no provider.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidSettings {
    /// A latency or a length cannot be drawn.
    #[error(transparent)]
    Distribution(#[from] InvalidDistribution),
    /// A rate limit cannot be enforced.
    #[error(transparent)]
    Quota(#[from] InvalidQuota),
    /// A fault rule can never be applied as it is written.
    #[error(transparent)]
    FaultRule(#[from] InvalidFaultRule),
    /// A size of 0 leaves nothing that could be served.
    #[error("serve with {0} at 0: set it to 1 or more")]
    Zero(&'static str),
}

impl ProviderSettings {
    /// Refuses settings that describe no provider, before anything is started with them.
    pub(crate) fn check(&self) -> Result<(), InvalidSettings> {
        self.latency.start_ms.checked()?;
        self.latency.refusal_ms.checked()?;
        Distribution::Constant(self.latency.per_output_token_ms).checked()?;
        self.output_length.tokens.checked()?;
        self.limits.check()?;
        self.faults.iter().try_for_each(FaultRule::check)?;
        for (size, name) in [
            (self.largest_request_bytes, "`largest_request_bytes`"),
            (self.connections, "`connections`"),
            (self.output_length.most_tokens as usize, "`output_length.most_tokens`"),
            (self.slots.map_or(1, |slots| slots.at_once as usize), "`slots.at_once`"),
        ] {
            if size == 0 {
                return Err(InvalidSettings::Zero(name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_object_is_the_default_provider() {
        let settings: ProviderSettings = serde_json::from_str("{}").unwrap();
        assert_eq!(settings, ProviderSettings::default());
        assert_eq!(settings.check(), Ok(()));
    }

    #[test]
    fn a_misspelt_field_is_refused_at_every_level() {
        for misspelt in [
            r#"{"sed": 1}"#,
            r#"{"latency": {"start": 1}}"#,
            r#"{"limits": {"rpm": 1}}"#,
            r#"{"log": {"path": "x"}}"#,
            r#"{"faults": [{"fault": "hang", "probability": 1}]}"#,
        ] {
            assert!(serde_json::from_str::<ProviderSettings>(misspelt).is_err(), "{misspelt} passed");
        }
    }

    #[test]
    fn settings_that_describe_no_provider_are_refused_by_name() {
        let no_slots = ProviderSettings {
            slots: Some(Slots { at_once: 0, when_full: WhenFull::Queue }),
            ..Default::default()
        };
        assert_eq!(no_slots.check(), Err(InvalidSettings::Zero("`slots.at_once`")));
        let negative = Distribution::Constant(-5.0);
        let backwards = ProviderSettings {
            latency: Latency { start_ms: negative, ..Default::default() },
            ..Default::default()
        };
        assert_eq!(backwards.check(), Err(InvalidDistribution(negative).into()));
    }
}
