//! The learner: one interface over all modes.
//!
//! Owns what every mode needs (the clock, requests in flight, recent answers, refusals, the journal) and hands the
//! question of the rate to the mode.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::{Cost, Dimension, RequestId, Verdict, Wait};
use crate::gauges::Gauges;
use crate::in_flight::{Flight, InFlight};
use crate::journal::{Decision, Journal};
use crate::knee::Saturation;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::percentile::RecentOutputs;
use crate::policy::Policy;
use crate::profile::Profile;
use crate::sharing::Shared;
use crate::snapshot::{Record, RestoreError, Snapshot};

/// Decides when requests to one provider, model and key may go.
///
/// The caller reports each request with [`sent`](Self::sent) and its fate with [`verdict`](Self::verdict), and asks
/// [`next`](Self::next) before sending another. Each call takes constant time; memory is about 60 kB, with
/// limits of tokens about 200 kB, and up to 80 bytes per request in flight.
#[derive(Clone, Debug)]
pub struct Learner {
    /// The newest clock reading.
    clock: Duration,
    /// The clock reading at which this run of the learner began.
    began: Duration,
    /// How long it had been at work before this run.
    former_age: Duration,
    in_flight: InFlight,
    outputs: RecentOutputs,
    refusals: u64,
    journal: Journal,
    policy: Policy,
}

impl Learner {
    /// A learner that knows nothing but the user's limits.
    pub fn new(mode: Mode, profile: Profile, limits: Limits, now: Duration) -> Self {
        let policy = Policy::new(mode, profile, limits, now);
        let mut journal = Journal::default();
        journal.record(Duration::ZERO, format!("started: {}", policy.explain()));
        Self {
            clock: now,
            began: now,
            former_age: Duration::ZERO,
            in_flight: InFlight::new(limits),
            outputs: RecentOutputs::default(),
            refusals: 0,
            journal,
            policy,
        }
    }

    /// A learner that goes on where another of the same mode stopped, within the limits of today and with nothing
    /// in flight. The time between the two runs does not count.
    pub fn restore(
        snapshot: &Snapshot,
        mode: Mode,
        profile: Profile,
        limits: Limits,
        now: Duration,
    ) -> Result<Self, RestoreError> {
        let record = snapshot.open(mode)?;
        let outputs = RecentOutputs::from_iter(record.output_tokens);
        let policy = Policy::restore(&record.policy, profile, limits, outputs.p95(), now);
        let mut journal = Journal::from(record.decisions);
        journal.record(record.age, format!("resumed: {}", policy.explain()));
        Ok(Self {
            clock: now,
            began: now,
            former_age: record.age,
            in_flight: InFlight::new(limits),
            outputs,
            refusals: record.refusals,
            journal,
            policy,
        })
    }

    /// What [`restore`](Self::restore) needs, as of the newest clock reading.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&Record {
            age: self.age(self.clock),
            refusals: self.refusals,
            output_tokens: self.outputs.arrivals().collect(),
            decisions: self.decisions().cloned().collect(),
            policy: self.policy.record(self.clock),
        })
    }

    /// The user's limits are lowered below those that the learner began with, or lifted again up to them. They hold at
    /// once, and what was learned before comes back with them.
    pub fn limit(&mut self, now: Duration, limits: Limits) {
        let now = self.advance(now);
        self.in_flight.limit(limits);
        self.policy.limit(now, limits);
        self.note(now, vec![format!("other limits are set: {}", self.policy.explain())]);
    }

    /// A request has gone out.
    pub fn sent(&mut self, now: Duration, id: RequestId, cost: Cost) {
        let now = self.advance(now);
        self.in_flight.insert(id, Flight { sent_at: now, cost });
        self.policy.sent(now, cost);
    }

    /// Something became of a request. A verdict on a request that is not in flight is ignored.
    pub fn verdict(&mut self, now: Duration, id: RequestId, verdict: Verdict) {
        let now = self.advance(now);
        let is_final = !matches!(verdict, Verdict::Admitted { .. });
        let flight = if is_final { self.in_flight.remove(id) } else { self.in_flight.get(id) };
        let Some(flight) = flight else { return };
        match verdict {
            Verdict::Succeeded { output_tokens, .. } => self.outputs.record(output_tokens),
            Verdict::Refused { .. } => self.refusals = self.refusals.saturating_add(1),
            Verdict::Admitted { .. }
            | Verdict::SlowDown { .. }
            | Verdict::Overloaded { .. }
            | Verdict::Lost => {}
        }
        let in_flight = self.in_flight.len();
        let words = self.policy.verdict(now, flight, verdict, self.outputs.p95(), in_flight);
        self.note(now, words);
    }

    /// What the jobs on the same key send to the same model, this one among them. Mode `adaptive` takes an equal part.
    pub fn shared(&mut self, now: Duration, shared: Shared) {
        let now = self.advance(now);
        let words = self.policy.adaptive().map(|adaptive| adaptive.shared(now, shared));
        self.note(now, words.unwrap_or_default());
    }

    /// What a server says of its queue. Mode `adaptive` keeps the queue short.
    pub fn saturation(&mut self, now: Duration, saturation: Saturation) {
        let now = self.advance(now);
        let in_flight = self.in_flight.len();
        let words = self.policy.adaptive().map(|adaptive| adaptive.saturation(now, saturation, in_flight));
        self.note(now, words.unwrap_or_default());
    }

    /// Earlier jobs on the same key and model ran well with so many requests, and tokens, per minute. Mode `adaptive`
    /// starts somewhat below.
    pub fn remembered(&mut self, now: Duration, found: &BTreeMap<Dimension, f64>) {
        let now = self.advance(now);
        let words = self.policy.adaptive().map(|adaptive| adaptive.remembered(now, found));
        self.note(now, words.unwrap_or_default());
    }

    /// Requests per minute that this job sends, for those that share its key: nothing as long as it has not heard of
    /// them. None in a mode that does not share.
    pub fn rate_rpm(&self) -> Option<f64> {
        match &self.policy {
            Policy::Fixed(_) | Policy::Aimd(_) => None,
            Policy::Adaptive(adaptive) => Some(adaptive.told_rpm()),
        }
    }

    /// What another job may start from, per minute: what all jobs on the key were found to be allowed together, of what
    /// was limited only.
    pub fn found(&self) -> BTreeMap<Dimension, f64> {
        match &self.policy {
            Policy::Fixed(_) | Policy::Aimd(_) => BTreeMap::new(),
            Policy::Adaptive(adaptive) => adaptive.found(),
        }
    }

    /// The 95th percentile of the output tokens of recent answers.
    pub fn p95_tokens(&self) -> Option<u32> {
        self.outputs.p95()
    }

    /// When a request of this cost may go. A request counts only once it was [`sent`](Self::sent).
    ///
    /// Every mode charges a request after it has gone, so its cost delays those behind it, not itself.
    pub fn next(&mut self, now: Duration, _cost: Cost) -> Wait {
        let now = self.advance(now);
        let most = self.policy.most_in_flight();
        if self.in_flight.is_full() || most.is_some_and(|most| self.in_flight.len() >= most) {
            return Wait::ForVerdict;
        }
        let free_at = self.policy.free_at(now);
        if free_at > now { Wait::Until(free_at) } else { Wait::Now }
    }

    /// When the rate will change by itself if nothing is reported until then. A caller that waits past this moment
    /// asks [`next`](Self::next) again then: it may be allowed to send earlier.
    pub fn changes_at(&self) -> Option<Duration> {
        self.policy.changes_at(self.clock)
    }

    /// The mode in which the rate is found.
    pub fn mode(&self) -> Mode {
        self.policy.mode()
    }

    /// The present state in numbers.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            p95_tokens: self.outputs.p95(),
            refusals: self.refusals,
            in_flight: self.in_flight.len(),
            ..self.policy.gauges(self.clock)
        }
    }

    /// The rate and why it is what it is, in one line for people.
    pub fn explain(&self) -> String {
        self.policy.explain()
    }

    /// The last 200 decisions, oldest first.
    pub fn decisions(&self) -> impl ExactSizeIterator<Item = &Decision> {
        self.journal.decisions()
    }

    /// Takes over a clock reading, makes every change that is due by then, and returns the newest reading.
    fn advance(&mut self, now: Duration) -> Duration {
        self.clock = self.clock.max(now);
        while let Some((at, words)) = self.policy.step(self.clock) {
            self.journal.record(self.age(at), words);
        }
        self.clock
    }

    fn note(&mut self, at: Duration, decisions: Vec<String>) {
        let age = self.age(at);
        for words in decisions {
            self.journal.record(age, words);
        }
    }

    /// How long the learner has been at work at this clock reading, earlier runs included.
    fn age(&self, at: Duration) -> Duration {
        self.former_age.saturating_add(at.saturating_sub(self.began))
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroU64};

    use super::*;
    use crate::event::{Hint, Hints};

    const NOTHING: Hint = Hint { limit: None, remaining: None, reset: None, period: None };
    const NO_HINTS: Hints =
        Hints { requests: NOTHING, tokens: NOTHING, input_tokens: NOTHING, output_tokens: NOTHING };
    const REFUSED: Verdict = Verdict::Refused { dimension: None, retry_after: None, hints: NO_HINTS };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Sends one request at this second and has it answered at once.
    fn exchange(learner: &mut Learner, second: u64, verdict: Verdict) {
        learner.sent(seconds(second), RequestId(second), Cost::default());
        learner.verdict(seconds(second), RequestId(second), verdict);
    }

    #[test]
    fn at_the_concurrency_cap_only_a_final_verdict_helps() {
        let limits = Limits { max_in_flight: NonZeroU32::new(1), ..Limits::default() };
        let mut learner = Learner::new(Mode::Fixed, Profile::Unknown, limits, Duration::ZERO);
        learner.sent(seconds(0), RequestId(1), Cost::default());
        assert_eq!(learner.next(seconds(0), Cost::default()), Wait::ForVerdict);

        learner.verdict(seconds(1), RequestId(1), Verdict::Admitted { hints: NO_HINTS });
        learner.verdict(seconds(1), RequestId(2), Verdict::Lost);
        assert_eq!(learner.next(seconds(1), Cost::default()), Wait::ForVerdict);

        learner.verdict(seconds(2), RequestId(1), Verdict::Lost);
        assert_eq!(learner.next(seconds(2), Cost::default()), Wait::Now);
    }

    #[test]
    fn a_verdict_on_an_unknown_request_teaches_nothing() {
        let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::ZERO);
        learner.verdict(seconds(1), RequestId(9), REFUSED);
        assert_eq!(learner.gauges().refusals, 0);
        assert_eq!(learner.gauges().rpm_target, Some(10));

        exchange(&mut learner, 2, REFUSED);
        learner.verdict(seconds(2), RequestId(2), REFUSED);
        assert_eq!(learner.gauges().refusals, 1);
    }

    #[test]
    fn in_mode_aimd_only_refusals_for_the_rate_change_it() {
        let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::ZERO);
        let retry_after = Some(seconds(7));
        let others = [Verdict::Lost, Verdict::SlowDown { retry_after }, Verdict::Overloaded { retry_after }];
        for (second, verdict) in (1..).zip(others) {
            exchange(&mut learner, second, verdict);
            assert_eq!((learner.gauges().rpm_target, learner.gauges().refusals), (Some(10), 0));
            assert_eq!((learner.gauges().p95_tokens, learner.gauges().in_flight), (None, 0));
        }
    }

    #[test]
    fn refusals_are_counted_in_mode_fixed_and_change_nothing_else() {
        let limits = Limits { rpm: NonZeroU32::new(60), ..Limits::default() };
        let mut learner = Learner::new(Mode::Fixed, Profile::Unknown, limits, Duration::ZERO);
        exchange(&mut learner, 1, REFUSED);
        assert_eq!(learner.gauges().refusals, 1);
        assert_eq!(learner.gauges().effective_rpm, Some(60.0));
        assert_eq!(learner.decisions().len(), 1);
    }

    #[test]
    fn the_journal_tells_the_story_with_its_times() {
        let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), seconds(100));
        exchange(&mut learner, 131, REFUSED);
        learner.next(seconds(250), Cost::default());
        let story: Vec<_> = learner.decisions().map(|entry| (entry.at_ms, entry.words.as_str())).collect();
        assert_eq!(
            story,
            [
                (0, "started: 10/min: the start, grows x1.5 every 30 s until the first refusal"),
                (30_000, "grew x1.5 from 10 to 15/min after 30 s without a refusal"),
                (31_000, "cut x0.75 from 15 to 11/min after a refusal, to be held for 60 s"),
                (91_000, "climbing from 11/min, the hold of 60 s is over"),
                (121_000, "climbed from 11 to 12/min, 1 per 30 s without a refusal"),
            ]
        );
    }

    #[test]
    fn a_restored_learner_keeps_what_it_knew_and_obeys_the_limits_of_today() {
        let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::ZERO);
        exchange(&mut learner, 150, Verdict::Succeeded { output_tokens: 100, input_tokens: 9 });
        exchange(&mut learner, 151, REFUSED);
        assert_eq!(learner.gauges().rpm_target, Some(54));

        let limits = Limits { rpm: NonZeroU32::new(40), tpm: NonZeroU64::new(3_000), max_in_flight: None };
        let restored =
            Learner::restore(&learner.snapshot(), Mode::Aimd, Profile::Unknown, limits, seconds(7)).unwrap();
        assert_eq!(
            restored.gauges(),
            Gauges {
                rpm_target: Some(40),
                effective_rpm: Some(30.0),
                p95_tokens: Some(100),
                refusals: 1,
                ..Gauges::default()
            }
        );
        assert_eq!(restored.changes_at(), Some(seconds(67)));
        assert_eq!(restored.decisions().len(), learner.decisions().len() + 1);
        assert_eq!(restored.decisions().last().unwrap().at_ms, 151_000);
    }
}
