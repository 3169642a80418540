//! What goes wrong, and for which requests.
//!
//! Owns the faults, the rules that hand them out and the decision, which is pure. Carrying a fault out is the
//! server's business.

use std::time::Duration;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::{
    answer::End,
    draw::{PromptHash, Purpose, draw},
    limit::Exceeded,
    refusal::Refusal,
    settings::ProviderSettings,
};

/// The requests of a minute that a rate fault speaks of where no limit is set.
const UNSET_LIMIT: u64 = 60;

/// One way in which a provider fails. Each dialect tells it in its own words; the statuses here are OpenAI's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// 500.
    InternalError,
    /// 502.
    BadGateway,
    /// 503.
    Unavailable,
    /// 504: the provider's own deadline has passed.
    DeadlineExceeded,
    /// 503 "Slow Down": the client is asked to go back to its old rate.
    SlowDown,
    /// 529: the provider is overloaded for everybody.
    Overloaded,
    /// 400 `invalid_prompt`. With [`ShareOf::Prompts`] the same prompts are refused every time.
    RejectedPrompt,
    /// 400: the request is wrong, whatever its prompt.
    InvalidRequest,
    /// 413.
    RequestTooLarge,
    /// 401 `invalid_api_key`.
    Unauthorized,
    /// 401: the credential is of a kind that is not accepted.
    Unauthenticated,
    /// 403.
    Forbidden,
    /// 404 `model_not_found`.
    ModelNotFound,
    /// 429 of a minute's limit, whether or not one is set.
    RateLimited {
        /// Milliseconds until the next request is welcome.
        wait_ms: u64,
    },
    /// 429: the quota of the day is used up.
    DayQuota,
    /// 429: the quota is 0, so no request will ever pass.
    ZeroQuota,
    /// 429 `insufficient_quota`: nothing is left to pay with, and no waiting helps.
    InsufficientQuota,
    /// 429 `billing_hard_limit_reached`: as much is spent as the account wants to spend.
    SpendLimit,
    /// 200 whose text the provider's content filter held back.
    FilteredAnswer,
    /// 200 whose text was held back because it repeats a source.
    RecitedAnswer,
    /// The connection closes before a byte of the answer is sent.
    DropBeforeAnswer,
    /// The connection closes in the middle of the answer.
    DropInBody,
    /// No answer ever comes.
    Hang,
    /// Less is sent than `content-length` says.
    TruncatedBody,
    /// 200 with a web page instead of JSON.
    NotJson,
    /// The right answer in sixteen pieces.
    SlowBody {
        /// Milliseconds from the first piece to the last.
        total_ms: u64,
    },
    /// The right answer behind leading white space.
    OversizedBody {
        /// Size of the whole body in bytes.
        bytes: u64,
    },
}

impl Fault {
    /// Whether the gate in front of the rate limits causes it.
    pub(crate) fn is_before_limits(self) -> bool {
        matches!(
            self,
            Self::Unauthorized
                | Self::Unauthenticated
                | Self::Forbidden
                | Self::ModelNotFound
                | Self::RequestTooLarge
                | Self::InsufficientQuota
                | Self::SpendLimit
                | Self::ZeroQuota
        )
    }

    /// The refusal that the fault is answered with; `None` where it spoils the answer instead.
    pub(crate) fn refusal(self, settings: &ProviderSettings) -> Option<Refusal> {
        let refusal = match self {
            Self::InternalError => Refusal::InternalError,
            Self::BadGateway => Refusal::BadGateway,
            Self::Unavailable => Refusal::Unavailable,
            Self::DeadlineExceeded => Refusal::DeadlineExceeded,
            Self::SlowDown => Refusal::SlowDown,
            Self::Overloaded => Refusal::Overloaded,
            Self::RejectedPrompt => Refusal::RejectedPrompt,
            Self::InvalidRequest => Refusal::InvalidRequest,
            Self::RequestTooLarge => Refusal::TooLarge(settings.largest_request_bytes),
            Self::Unauthorized => Refusal::WrongKey,
            Self::Unauthenticated => Refusal::Unauthenticated,
            Self::Forbidden => Refusal::Forbidden,
            Self::ModelNotFound => Refusal::ModelNotFound,
            Self::RateLimited { wait_ms } => {
                let per_minute = settings.limits.requests.map_or(UNSET_LIMIT, |quota| quota.per_minute);
                Refusal::RateLimited(Exceeded::requests(per_minute, Duration::from_millis(wait_ms)))
            }
            Self::DayQuota => Refusal::DayQuota,
            Self::ZeroQuota => Refusal::ZeroQuota,
            Self::InsufficientQuota => Refusal::InsufficientQuota,
            Self::SpendLimit => Refusal::SpendLimit,
            Self::FilteredAnswer
            | Self::RecitedAnswer
            | Self::DropBeforeAnswer
            | Self::DropInBody
            | Self::Hang
            | Self::TruncatedBody
            | Self::NotJson
            | Self::SlowBody { .. }
            | Self::OversizedBody { .. } => return None,
        };
        Some(refusal)
    }

    /// How the text of the answer ends before it began, if the fault holds it back.
    pub(crate) fn cut(self) -> Option<End> {
        match self {
            Self::FilteredAnswer => Some(End::Filtered),
            Self::RecitedAnswer => Some(End::Recited),
            _ => None,
        }
    }
}

/// What a [`FaultRule::share`] is a share of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareOf {
    /// Each attempt is drawn anew, so a retry may succeed.
    #[default]
    Attempts,
    /// A prompt is drawn once: each attempt at it meets the fault, or none does.
    Prompts,
}

/// A moment in the life of a server, counted from when its settings came into force. It is reached when both
/// numbers are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Moment {
    /// Requests that arrived before.
    pub requests: u64,
    /// Milliseconds that have passed.
    pub elapsed_ms: u64,
}

impl Moment {
    fn is_reached_at(self, now: Self) -> bool {
        now.requests >= self.requests && now.elapsed_ms >= self.elapsed_ms
    }
}

/// One fault and the requests that meet it. All conditions must hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// What goes wrong.
    pub fault: Fault,
    /// The share of attempts or prompts that meet it, from 0 to 1.
    #[serde(default = "all")]
    pub share: f64,
    /// What `share` is a share of.
    #[serde(default)]
    pub of: ShareOf,
    /// The rule holds from this moment on.
    #[serde(default)]
    pub from: Moment,
    /// The rule ends at this moment.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Only this many first attempts at each prompt meet the fault.
    #[serde(default)]
    pub first_attempts: Option<u32>,
    /// Only requests with this key meet the fault: with another accepted key it is over.
    #[serde(default)]
    pub only_key: Option<String>,
}

fn all() -> f64 {
    1.0
}

/// A rule that cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("apply a fault to a share of {0}: use a share from 0 to 1")]
pub struct InvalidFaultRule(pub f64);

/// What a rule can know about one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    pub(crate) key: Option<&'a str>,
    pub(crate) prompt: PromptHash,
    /// How often this prompt was asked before.
    pub(crate) times_seen: u32,
    pub(crate) now: Moment,
}

impl FaultRule {
    /// A rule that every request meets.
    pub fn always(fault: Fault) -> Self {
        Self {
            fault,
            share: all(),
            of: ShareOf::default(),
            from: Moment::default(),
            until: None,
            first_attempts: None,
            only_key: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidFaultRule> {
        if (0.0..=1.0).contains(&self.share) { Ok(()) } else { Err(InvalidFaultRule(self.share)) }
    }

    fn holds_for(&self, circumstances: Circumstances<'_>) -> bool {
        self.from.is_reached_at(circumstances.now)
            && !self.until.is_some_and(|until| until.is_reached_at(circumstances.now))
            && self.first_attempts.is_none_or(|attempts| circumstances.times_seen < attempts)
            && self.only_key.as_deref().is_none_or(|key| circumstances.key == Some(key))
    }
}

/// The fault that a request meets: that of the first rule that holds for it and whose draw hits.
pub(crate) fn decide(seed: u64, rules: &[FaultRule], circumstances: Circumstances<'_>) -> Option<Fault> {
    if rules.is_empty() {
        return None;
    }
    let mut attempt = draw(seed, circumstances.prompt, circumstances.times_seen, Purpose::AttemptFault);
    let mut prompt = draw(seed, circumstances.prompt, 0, Purpose::PromptFault);
    // Every rule takes its draws whether it holds or not, so that one rule does not shift the luck of the next.
    let drawn: Vec<(f64, f64)> = rules.iter().map(|_| (attempt.random(), prompt.random())).collect();
    rules.iter().zip(drawn).find_map(|(rule, (attempt, prompt))| {
        let luck = match rule.of {
            ShareOf::Attempts => attempt,
            ShareOf::Prompts => prompt,
        };
        (rule.holds_for(circumstances) && luck < rule.share).then_some(rule.fault)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(prompt: u64, times_seen: u32) -> Circumstances<'static> {
        Circumstances { key: None, prompt: PromptHash(prompt), times_seen, now: Moment::default() }
    }

    fn share(fault: Fault, share: f64, of: ShareOf) -> FaultRule {
        FaultRule { share, of, ..FaultRule::always(fault) }
    }

    #[test]
    fn about_the_given_share_of_attempts_meets_the_fault() {
        let rules = [share(Fault::InternalError, 0.1, ShareOf::Attempts)];
        let hit = (0..10_000).filter(|&prompt| decide(3, &rules, asked(prompt, 0)).is_some()).count();
        assert!((900..1_100).contains(&hit), "{hit} of 10,000");
    }

    #[test]
    fn the_first_rule_that_hits_decides() {
        let rules = [FaultRule::always(Fault::Hang), FaultRule::always(Fault::NotJson)];
        assert_eq!(decide(0, &rules, asked(1, 0)), Some(Fault::Hang));
    }

    #[test]
    fn a_rule_holds_between_its_moments() {
        let moment = |requests, elapsed_ms| Moment { requests, elapsed_ms };
        let rules = [FaultRule {
            from: moment(10, 500),
            until: Some(moment(20, 0)),
            ..FaultRule::always(Fault::Unauthorized)
        }];
        let at = |now| decide(0, &rules, Circumstances { now, ..asked(1, 0) });
        assert_eq!(at(moment(9, 900)), None);
        assert_eq!(at(moment(15, 499)), None);
        assert_eq!(at(moment(10, 500)), Some(Fault::Unauthorized));
        assert_eq!(at(moment(20, 900)), None);
    }

    #[test]
    fn a_fault_of_one_key_is_over_with_another_key() {
        let rules =
            [FaultRule { only_key: Some("old".to_owned()), ..FaultRule::always(Fault::Unauthorized) }];
        let with = |key| decide(0, &rules, Circumstances { key: Some(key), ..asked(1, 0) });
        assert_eq!(with("old"), Some(Fault::Unauthorized));
        assert_eq!(with("new"), None);
    }

    #[test]
    fn a_fault_of_the_first_attempts_lets_a_retry_pass() {
        let rules = [FaultRule { first_attempts: Some(2), ..FaultRule::always(Fault::BadGateway) }];
        let fates: Vec<bool> = (0..4).map(|seen| decide(0, &rules, asked(1, seen)).is_some()).collect();
        assert_eq!(fates, [true, true, false, false]);
    }

    #[test]
    fn a_rule_is_written_in_json_with_its_fault_and_whatever_differs_from_always() {
        let rule: FaultRule =
            serde_json::from_str(r#"{"fault":{"slow_body":{"total_ms":5}},"share":0.5,"of":"prompts"}"#)
                .unwrap();
        assert_eq!(rule, share(Fault::SlowBody { total_ms: 5 }, 0.5, ShareOf::Prompts));
        assert_eq!(share(Fault::Hang, 1.5, ShareOf::Attempts).check(), Err(InvalidFaultRule(1.5)));
    }

    proptest! {
        #[test]
        fn a_share_of_prompts_ignores_how_often_they_were_seen(seed: u64, prompt: u64, seen: u32, part in 0.0..1.0) {
            let rules = [share(Fault::RejectedPrompt, part, ShareOf::Prompts)];
            prop_assert_eq!(decide(seed, &rules, asked(prompt, 0)), decide(seed, &rules, asked(prompt, seen)));
        }

        #[test]
        fn a_rule_that_never_hits_changes_nothing_for_the_next(seed: u64, prompt: u64, seen: u32) {
            let second = share(Fault::Hang, 0.5, ShareOf::Attempts);
            let silent = share(Fault::NotJson, 0.0, ShareOf::Attempts);
            let always = FaultRule::always(Fault::NotJson);
            let mute = FaultRule { first_attempts: Some(0), ..always };
            prop_assert_eq!(
                decide(seed, &[silent, second.clone()], asked(prompt, seen)),
                decide(seed, &[mute, second], asked(prompt, seen))
            );
        }
    }
}
