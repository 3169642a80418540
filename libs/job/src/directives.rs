//! `penstock.directives/1`: what the operator answers to a report.
//!
//! An older executor must go on under a newer operator, so a field that it does not know is passed over, and a field
//! that is absent changes nothing.

use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    document::{Document, Medium, format_tag},
    spec::Limits,
};

format_tag! {
    /// The format of directives.
    DirectivesFormat = "penstock.directives/1"
}

/// What the operator wants of a run. Each answer says all of it: what the last one said holds until the next is heard,
/// and nothing is asked of a run that hears none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Directives {
    /// Names this schema.
    pub format: DirectivesFormat,
    /// End the job as cancelled and publish what was answered. Once heard it is not taken back.
    pub cancel: bool,
    /// Send nothing, store what is known, and stay with the claim until this is lifted.
    pub hold: bool,
    /// Bounds of the rate beside those of the job file; the lower one holds.
    pub rate: RateBounds,
    /// When to report next at the latest, in seconds from this answer; by default what the job file says.
    pub report_after_seconds: Option<NonZeroU32>,
}

impl Document for Directives {
    const NAME: &'static str = "the directives";
    const FORMAT: &'static str = DirectivesFormat::TEXT;
    const MEDIUM: Medium = Medium::Message;
}

/// Bounds over a whole job. What is absent is not bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RateBounds {
    /// At most so many requests per minute.
    pub rpm: Option<NonZeroU32>,
    /// At most so many tokens per minute.
    pub tpm: Option<NonZeroU64>,
    /// At most so many requests in flight.
    pub max_in_flight: Option<NonZeroU32>,
}

impl RateBounds {
    /// The lower of these bounds and those of a job file.
    pub fn within(self, limits: &Limits) -> Self {
        Self {
            rpm: self.rpm.into_iter().chain(limits.rpm).min(),
            tpm: self.tpm.into_iter().chain(limits.tpm).min(),
            max_in_flight: self.max_in_flight.into_iter().chain(limits.max_in_flight).min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::document;

    fn read(value: &serde_json::Value) -> Result<Directives, String> {
        document::read(value.to_string().as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_absent_asks_for_nothing_and_what_is_unknown_is_passed_over() {
        assert_eq!(read(&json!({"format": "penstock.directives/1"})), Ok(Directives::default()));
        let newer = json!({
            "format": "penstock.directives/1",
            "hold": true,
            "sing": "loudly",
            "rate": {"rpm": 60, "colour": "red"},
        });
        let rate = RateBounds { rpm: NonZeroU32::new(60), ..RateBounds::default() };
        assert_eq!(read(&newer), Ok(Directives { hold: true, rate, ..Directives::default() }));
    }

    #[test]
    fn an_answer_that_are_no_directives_is_refused_by_what_is_wrong_with_it() {
        for (answer, named) in [
            (json!({}), "format is absent"),
            (json!({"format": "penstock.directives/2"}), "penstock.directives/2"),
            (json!({"format": "penstock.directives/1", "cancel": "yes"}), "`cancel`"),
            (json!({"format": "penstock.directives/1", "rate": {"rpm": 0}}), "`rate.rpm`"),
            (json!([1]), "not a JSON object"),
        ] {
            let message = read(&answer).unwrap_err();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn a_bound_never_lifts_one_of_the_job_file() {
        let limits =
            Limits { rpm: NonZeroU32::new(100), max_in_flight: NonZeroU32::new(8), ..Limits::default() };
        let bounds = RateBounds {
            rpm: NonZeroU32::new(500),
            tpm: NonZeroU64::new(9),
            max_in_flight: NonZeroU32::new(2),
        };
        let held = RateBounds { rpm: limits.rpm, ..bounds };
        assert_eq!(bounds.within(&limits), held);
        assert_eq!(
            RateBounds::default().within(&limits),
            RateBounds { rpm: limits.rpm, tpm: None, max_in_flight: limits.max_in_flight }
        );
    }

    proptest! {
        #[test]
        fn directives_read_back_as_they_were_written(
            cancel: bool,
            hold: bool,
            rpm: Option<NonZeroU32>,
            tpm: Option<NonZeroU64>,
            max_in_flight: Option<NonZeroU32>,
            report_after_seconds: Option<NonZeroU32>,
        ) {
            let rate = RateBounds { rpm, tpm, max_in_flight };
            let directives = Directives { format: DirectivesFormat, cancel, hold, rate, report_after_seconds };
            prop_assert_eq!(document::read::<Directives>(&document::write(&directives)).unwrap(), directives);
        }

        #[test]
        fn no_bytes_that_are_not_of_this_format_are_taken_for_directives(bytes: Vec<u8>) {
            prop_assert!(document::read::<Directives>(&bytes).is_err());
        }
    }
}
