//! The constants that depend on the kind of provider.

use crate::profile::Profile;

#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Seconds in which the rate doubles at the start.
    pub(super) doubling: f64,
    /// Requests at the start that may go faster than that.
    pub(super) allowance: f64,
}

impl Tuning {
    pub(super) fn of(profile: Profile) -> Self {
        let (doubling, allowance) = match profile {
            Profile::OpenAi | Profile::Vllm => (5.0, 400.0),
            Profile::Azure | Profile::Gemini => (8.0, 300.0),
            Profile::Anthropic => (15.0, 200.0),
            Profile::Unknown => (10.0, 300.0),
        };
        Self { doubling, allowance }
    }
}
