//! The conditions of a job: what `kubectl wait`, Helm, Flux and Argo CD look at.
//!
//! `Succeeded` is the summary: unknown until the job is over. `Ready`, `Reconciling` and `Stalled` are for tools that
//! know kstatus, which takes both `Ready=False` and `Ready=Unknown` for "in progress": so `Ready` is true from the moment
//! when the job is accepted, and only a failure, which needs a person, takes it back.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use penstock_job::Reason;

use crate::state::State;

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing<'a> {
    /// Its state.
    pub state: State,
    /// Why it is not further.
    pub reason: Option<Reason>,
    /// Evidence and help.
    pub message: &'a str,
    /// Whether its receipt was read.
    pub published: bool,
    /// The generation of the spec that was looked at.
    pub observed_generation: i64,
}

/// The conditions of a job at `now`, those that were written last being `previous`.
pub fn conditions(standing: &Standing<'_>, previous: &[Condition], now: &Time) -> Vec<Condition> {
    let kinds = Kind::ALL.into_iter();
    let truths = kinds.filter_map(|kind| Some((kind, standing.truth(kind, previous)?)));
    truths.map(|(kind, truth)| standing.condition(kind, truth, previous, now)).collect()
}

/// The conditions, in the order in which they come true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The input was validated.
    Validated,
    /// The job had its turn.
    Admitted,
    /// An executor runs.
    Running,
    /// The accounts agree and the receipt is published.
    Reconciled,
    /// The job is over, well or not.
    Succeeded,
    /// Accepted, and not failed.
    Ready,
    /// Not accepted yet; absent otherwise.
    Reconciling,
    /// Failed; absent otherwise.
    Stalled,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Validated,
        Self::Admitted,
        Self::Running,
        Self::Reconciled,
        Self::Succeeded,
        Self::Ready,
        Self::Reconciling,
        Self::Stalled,
    ];

    /// Whether it carries the message; once or twice in a status is enough.
    fn explains(self) -> bool {
        matches!(self, Self::Succeeded | Self::Reconciling | Self::Stalled)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    fn of(condition: &Condition) -> Self {
        match condition.status.as_str() {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }

    fn known(known: bool) -> Self {
        if known { Self::True } else { Self::False }
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

fn find(kind: Kind, conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == kind.to_string())
}

impl Standing<'_> {
    /// Whether a condition holds; `None` for one that is left out.
    fn truth(&self, kind: Kind, previous: &[Condition]) -> Option<Truth> {
        let before = |kind| find(kind, previous).map_or(Truth::Unknown, Truth::of);
        Some(match kind {
            Kind::Validated => self.validated().unwrap_or_else(|| before(kind)),
            Kind::Admitted => match self.state {
                State::Running | State::Finalizing => Truth::True,
                State::Queued => Truth::False,
                _ => before(kind),
            },
            Kind::Running => Truth::known(self.runs()),
            Kind::Reconciled if self.published => Truth::True,
            Kind::Reconciled => {
                if self.state.is_over() {
                    Truth::False
                } else {
                    Truth::Unknown
                }
            }
            Kind::Succeeded => match self.state {
                State::Completed => Truth::True,
                state if state.is_over() => Truth::False,
                _ => Truth::Unknown,
            },
            Kind::Ready => match self.state {
                State::Failed => Truth::False,
                State::Validating if before(kind) != Truth::True => Truth::Unknown,
                _ => Truth::True,
            },
            Kind::Reconciling if self.truth(Kind::Ready, previous) == Some(Truth::Unknown) => Truth::True,
            Kind::Stalled if self.state == State::Failed => Truth::True,
            Kind::Reconciling | Kind::Stalled => return None,
        })
    }

    /// Whether the input is valid, where the state says so.
    fn validated(&self) -> Option<Truth> {
        match (self.state, self.reason) {
            (State::Queued | State::Running | State::Finalizing | State::Completed, _) => Some(Truth::True),
            (State::Failed, Some(Reason::EmptyInput | Reason::InvalidInput)) => Some(Truth::False),
            _ => None,
        }
    }

    fn runs(&self) -> bool {
        let waits = matches!(
            self.reason,
            Some(Reason::Suspended | Reason::TenantQuota | Reason::WaitingForTurn | Reason::WaitingForPod)
        );
        matches!(self.state, State::Running | State::Finalizing | State::Cancelling) && !waits
    }

    fn condition(&self, kind: Kind, truth: Truth, previous: &[Condition], now: &Time) -> Condition {
        let unchanged = find(kind, previous).filter(|condition| Truth::of(condition) == truth);
        Condition {
            last_transition_time: unchanged.map_or(now, |condition| &condition.last_transition_time).clone(),
            message: if kind.explains() { self.message.to_owned() } else { String::new() },
            observed_generation: Some(self.observed_generation),
            reason: self.reason.map_or_else(|| self.state.to_string(), |reason| reason.to_string()),
            status: truth.to_string(),
            type_: kind.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    const GENERATION: i64 = 3;

    fn time(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn standing(state: State) -> Standing<'static> {
        Standing {
            state,
            reason: None,
            message: "Seen. Do this.",
            published: matches!(state, State::Completed | State::Cancelled | State::Expired),
            observed_generation: GENERATION,
        }
    }

    fn status<'a>(conditions: &'a [Condition], name: &str) -> Option<&'a str> {
        conditions.iter().find(|condition| condition.type_ == name).map(|condition| condition.status.as_str())
    }

    #[test]
    fn ready_does_not_go_back_but_for_a_failure() {
        for first in State::ALL {
            let before = conditions(&standing(first), &[], &time(1));
            for second in State::ALL.into_iter().filter(|second| second.may_follow(Some(first))) {
                let after = conditions(&standing(second), &before, &time(2));
                if status(&before, "Ready") == Some("True") && second != State::Failed {
                    assert_eq!(status(&after, "Ready"), Some("True"), "{first} -> {second}");
                }
            }
        }
    }

    #[test]
    fn each_state_has_its_conditions() {
        // Validated, Admitted, Running, Reconciled, Succeeded, Ready, Reconciling, Stalled; - is left out.
        for (state, expected) in [
            (State::AwaitingUpload, "??F??T--"),
            (State::Validating, "??F???T-"),
            (State::Queued, "TFF??T--"),
            (State::Running, "TTT??T--"),
            (State::Finalizing, "TTT??T--"),
            (State::Completed, "T?FTTT--"),
            (State::Cancelling, "??T??T--"),
            (State::Cancelled, "??FTFT--"),
            (State::Expired, "??FTFT--"),
            (State::Failed, "??FFFF-T"),
        ] {
            let found = conditions(&standing(state), &[], &time(1));
            let letter = |kind: Kind| match status(&found, &kind.to_string()) {
                None => '-',
                Some("Unknown") => '?',
                Some(known) => known.chars().next().unwrap(),
            };
            assert_eq!(Kind::ALL.map(letter).iter().collect::<String>(), expected, "{state}");
        }
    }

    #[test]
    fn what_was_known_stays_known() {
        let running = conditions(&standing(State::Running), &[], &time(1));
        let cancelled = conditions(&standing(State::Cancelled), &running, &time(2));
        assert_eq!(status(&cancelled, "Validated"), Some("True"));
        assert_eq!(status(&cancelled, "Admitted"), Some("True"));
        let invalid = Standing { reason: Some(Reason::InvalidInput), ..standing(State::Failed) };
        assert_eq!(status(&conditions(&invalid, &[], &time(1)), "Validated"), Some("False"));
        let waits = Standing { reason: Some(Reason::WaitingForPod), ..standing(State::Running) };
        assert_eq!(status(&conditions(&waits, &running, &time(2)), "Running"), Some("False"));
    }

    #[test]
    fn the_time_of_a_condition_is_that_of_its_last_change_of_status() {
        let queued = conditions(&standing(State::Queued), &[], &time(1));
        let running = conditions(&standing(State::Running), &queued, &time(2));
        for (kind, expected) in
            [(Kind::Validated, 1), (Kind::Admitted, 2), (Kind::Running, 2), (Kind::Succeeded, 1)]
        {
            assert_eq!(find(kind, &running).unwrap().last_transition_time, time(expected), "{kind}");
        }
        assert_eq!(conditions(&standing(State::Running), &running, &time(3)), running, "nothing to write");
    }

    #[test]
    fn the_reason_is_a_word_and_the_message_stands_where_people_look() {
        let refused = Standing { reason: Some(Reason::CredentialsRefused), ..standing(State::Running) };
        for condition in conditions(&refused, &[], &time(1)) {
            assert_eq!(condition.reason, "CredentialsRefused");
            assert_eq!(condition.observed_generation, Some(GENERATION));
            assert_eq!(condition.message.is_empty(), condition.type_ != "Succeeded");
        }
    }
}
