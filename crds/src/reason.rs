//! Why a job is not further: the one reason of all that hold, with one sentence of evidence and one of what helps.
//!
//! The words and their precedence are [`penstock_job::Reason`]'s; here is what in a cluster speaks for each.

use penstock_job::{Reason, report::Hindrance};

use crate::state::State;

/// What was seen of a job. What was not seen is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// What the job refers to and what is wrong with it, as a sentence.
    pub misconfigured: Option<String>,
    /// Who holds the job.
    pub suspended: Option<Suspension>,
    /// Why its tenant may not run more, as a sentence.
    pub tenant_quota: Option<String>,
    /// Its place among the jobs that wait.
    pub turn: Option<Turn>,
    /// What the scheduler or the kubelet says of a pod that has not started.
    pub pod_waits: Option<String>,
    /// What the executor reports.
    pub executor: Option<Hindrance>,
    /// Why the job ended as it did.
    pub ended: Option<Hindrance>,
}

/// Who holds a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspension {
    /// Its own `spec.suspend`.
    Spec,
    /// Somebody who suspended its Kubernetes Job, such as a queue.
    Queue,
}

/// A place in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Counted from 1.
    pub position: u32,
    /// How many wait.
    pub of: u32,
}

/// Why a job is not further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The reason; with none the job goes on, or ended, as it should.
    pub reason: Option<Reason>,
    /// What was seen, in a sentence.
    pub evidence: String,
    /// What helps, in a sentence; empty when nothing needs help.
    pub help: &'static str,
}

impl Explanation {
    /// The word for it: the reason, else the state.
    pub fn word(&self, state: State) -> String {
        self.reason.map_or_else(|| state.to_string(), |reason| reason.to_string())
    }

    /// Evidence and help together.
    pub fn message(&self) -> String {
        if self.help.is_empty() { self.evidence.clone() } else { format!("{} {}", self.evidence, self.help) }
    }
}

/// The first reason, by precedence, that holds in a state.
pub fn explain(state: State, evidence: &Evidence) -> Explanation {
    let holding = if state.is_over() { evidence.ends() } else { evidence.hindrances() };
    match holding.into_iter().min_by_key(|(reason, _)| *reason) {
        Some((reason, evidence)) => {
            Explanation { reason: Some(reason), evidence: sentence(&evidence), help: help(reason) }
        }
        None => Explanation { reason: None, evidence: progress(state).to_owned(), help: "" },
    }
}

impl Evidence {
    /// What holds a job back that is not over.
    fn hindrances(&self) -> Vec<(Reason, String)> {
        let suspended = |suspension: Suspension| match suspension {
            Suspension::Spec => "`spec.suspend` is true".to_owned(),
            Suspension::Queue => "its Kubernetes Job is suspended, by a queue or by hand".to_owned(),
        };
        let turn = |Turn { position, of }: Turn| format!("it is number {position} of {of} that wait");
        let own = [
            (Reason::Misconfigured, self.misconfigured.clone()),
            (Reason::Suspended, self.suspended.map(suspended)),
            (Reason::TenantQuota, self.tenant_quota.clone()),
            (Reason::WaitingForTurn, self.turn.map(turn)),
            (Reason::WaitingForPod, self.pod_waits.clone()),
        ];
        let own = own.into_iter().filter_map(|(reason, evidence)| Some((reason, evidence?)));
        own.chain(said(self.executor.as_ref())).collect()
    }

    /// Why a job that is over ended so.
    fn ends(&self) -> Vec<(Reason, String)> {
        said(self.ended.as_ref()).collect()
    }
}

fn said(hindrance: Option<&Hindrance>) -> impl Iterator<Item = (Reason, String)> {
    hindrance.into_iter().map(|Hindrance { reason, evidence }| (*reason, evidence.to_string()))
}

/// With a capital letter and a stop.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    let stop = if text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    format!("{}{}{stop}", first.to_uppercase(), letters.as_str())
}

/// What is said of a state in which nothing is in the way.
fn progress(state: State) -> &'static str {
    match state {
        State::AwaitingUpload => "The input is not there yet.",
        State::Validating => "The input is being validated.",
        State::Queued => "The job is valid and is about to start.",
        State::Running => "Lines are being answered.",
        State::Finalizing => "The outcome is decided and is being published.",
        State::Completed => "Every valid line was answered or failed; the receipt accounts for each.",
        State::Cancelling => "What was answered is being stored before the job ends.",
        State::Cancelled => "The job was cancelled; what was answered is published.",
        State::Expired => "The completion window was over; what was answered is published.",
        State::Failed => "The job could not be run.",
    }
}

/// What helps in a cluster, where a job has no flags: the fields to change, and where a new job is needed.
fn help(reason: Reason) -> &'static str {
    match reason {
        Reason::AtOwnLimit => {
            "Raise `spec.limits` of the Provider; the bounds in `spec.rate` of the job hold to its end."
        }
        Reason::CredentialsRefused => {
            "Put a valid key into the Secret of the Provider; the job goes on by itself."
        }
        Reason::CostCapReached => {
            "Set `spec.cancel` to publish what was answered; or delete the job and apply it again with a larger `spec.budget` \
             and a price for every model, and it goes on where it stopped."
        }
        Reason::InvalidInput => {
            "Correct the lines that validation names, or set `spec.input.onInvalid` to Skip, and apply the job with \
             another name and another output."
        }
        Reason::EmptyInput => "Upload a file with at least one line, and apply the job with another name.",
        Reason::InputModified => {
            "Apply a job with another name and another output for the changed file; what was answered is published \
             here."
        }
        Reason::OutputOccupied => {
            "Choose another `spec.output.uri`; to do the same work again, change `spec.run` as well."
        }
        Reason::CompletionWindowOver => {
            "Run the lines that are recorded as expired as a new job with a longer `spec.completionWindowSeconds`."
        }
        Reason::FinalizationFailed => {
            "Mend what the evidence names and apply the job again; it publishes without asking the provider."
        }
        other => other.help(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hindrance(reason: Reason) -> Hindrance {
        Hindrance { reason, evidence: "the provider says no".into() }
    }

    /// Evidence for one reason alone, as it is seen before the end or at it.
    fn for_one(reason: Reason) -> Evidence {
        let text = Some("something was seen".to_owned());
        let none = Evidence::default();
        match reason {
            Reason::Misconfigured => Evidence { misconfigured: text, ..none },
            Reason::Suspended => Evidence { suspended: Some(Suspension::Spec), ..none },
            Reason::TenantQuota => Evidence { tenant_quota: text, ..none },
            Reason::WaitingForTurn => Evidence { turn: Some(Turn { position: 2, of: 5 }), ..none },
            Reason::WaitingForPod => Evidence { pod_waits: text, ..none },
            other => Evidence { executor: Some(hindrance(other)), ..none },
        }
    }

    /// What either of two shows.
    fn together(one: Evidence, other: Evidence) -> Evidence {
        Evidence {
            misconfigured: one.misconfigured.or(other.misconfigured),
            suspended: one.suspended.or(other.suspended),
            tenant_quota: one.tenant_quota.or(other.tenant_quota),
            turn: one.turn.or(other.turn),
            pod_waits: one.pod_waits.or(other.pod_waits),
            executor: one.executor.or(other.executor),
            ended: one.ended.or(other.ended),
        }
    }

    #[test]
    fn each_reason_is_found_from_its_evidence_and_helps_in_the_words_of_a_manifest() {
        for reason in Reason::ALL {
            let found = explain(State::Running, &for_one(reason));
            assert_eq!(found.reason, Some(reason));
            assert!(found.evidence.ends_with('.') && found.help.ends_with('.'), "{found:?}");
            assert!(!found.help.contains("--"), "{reason}: a job in a cluster has no flags: {}", found.help);
        }
    }

    #[test]
    fn of_two_reasons_the_earlier_in_the_list_is_shown() {
        for (index, first) in Reason::ALL.into_iter().enumerate() {
            for second in &Reason::ALL[index + 1..] {
                let (earlier, later) = (for_one(first), for_one(*second));
                // An executor reports one of its own reasons, the first.
                if earlier.executor.is_none() || later.executor.is_none() {
                    let found = explain(State::Running, &together(later, earlier));
                    assert_eq!(found.reason, Some(first), "{first} and {second}");
                }
            }
        }
    }

    #[test]
    fn a_job_that_is_over_is_explained_by_its_end_alone() {
        let everything = Evidence {
            ended: Some(hindrance(Reason::InvalidInput)),
            ..together(for_one(Reason::Suspended), for_one(Reason::StorageSlow))
        };
        assert_eq!(explain(State::Failed, &everything).reason, Some(Reason::InvalidInput));
        let lingering = Evidence { ended: None, ..everything };
        for over in State::ALL.into_iter().filter(|state| state.is_over()) {
            let found = explain(over, &lingering);
            assert_eq!((found.reason, found.help, found.word(over)), (None, "", over.to_string()));
        }
    }

    #[test]
    fn with_nothing_in_the_way_the_word_is_the_state() {
        for state in State::ALL {
            let found = explain(state, &Evidence::default());
            assert_eq!(found.word(state), state.to_string());
            assert_eq!(found.message(), progress(state));
        }
    }

    #[test]
    fn evidence_is_a_sentence() {
        let found = explain(State::Queued, &for_one(Reason::WaitingForTurn));
        assert!(
            found.message().starts_with("It is number 2 of 5 that wait. Nothing to do"),
            "{}",
            found.message()
        );
        assert_eq!(sentence(" really? "), "Really?");
        assert_eq!(sentence(""), "");
    }
}
