//! Whether a server saturates that was not expected to.

use std::time::Duration;

/// So many answers are looked at together, with at least as many in flight.
const TOGETHER: u32 = 64;
/// A server saturates that is so many times slower than at best. One that decodes 256 requests at once is slower by 3.7
/// than for one alone, and providers slow down and recover by 2 during a day.
const SATURATED: f64 = 4.0;
/// So many may be in flight before the first answer, and so many more for each answer: a start at full speed must not
/// fill the queue of a server that saturates before its answers tell.
const AHEAD: u32 = 256;
const AHEAD_EACH: u32 = 2;

/// How fast one request was answered at best, and how fast the latest ones are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    /// Answers so far.
    answers: u32,
    /// Tokens per second of one request, at best.
    fastest: f64,
    /// Whether the last answers were many times slower.
    slow: bool,
    latest: Latest,
}

/// The answers that are looked at together next.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    since: Duration,
    count: u32,
    tokens: f64,
    seconds: f64,
}

/// A server that saturates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Saturated {
    /// Requests that it works on, by Little's law: what it answers in the time that an answer takes without a queue.
    pub(super) at_work: u32,
    pub(super) slower: f64,
}

impl Watch {
    /// Requests that may be in flight.
    pub(super) fn most(&self) -> u32 {
        AHEAD.saturating_add(self.answers.saturating_mul(AHEAD_EACH))
    }

    /// An answer is complete. Says so if it makes clear that the server saturates.
    pub(super) fn succeeded(
        &mut self,
        now: Duration,
        sent_at: Duration,
        output_tokens: u32,
        in_flight: u32,
    ) -> Option<Saturated> {
        self.answers = self.answers.saturating_add(1);
        self.latest.count += 1;
        self.latest.tokens += f64::from(output_tokens.max(1));
        self.latest.seconds += now.saturating_sub(sent_at).as_secs_f64();
        if self.latest.count < TOGETHER {
            return None;
        }
        let Latest { since, tokens, seconds, .. } = self.latest;
        self.latest = Latest { since: now, ..Latest::default() };
        let speed = tokens / seconds;
        if !speed.is_finite() {
            return None;
        }
        let slower = self.fastest / speed;
        self.fastest = self.fastest.max(speed);
        let was_slow = self.slow;
        self.slow = slower > SATURATED && in_flight >= TOGETHER;
        let per_second = tokens / now.saturating_sub(since).as_secs_f64();
        (self.slow && was_slow).then(|| Saturated { at_work: rounded(per_second / self.fastest), slower })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn rounded(count: f64) -> u32 {
    count.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of 100 tokens, ten a second, each of which took so long, while so many were in flight.
    fn after(watch: &mut Watch, from: u64, answers: u64, took: u64, in_flight: u32) -> Option<Saturated> {
        let answered = |answer: u64| {
            let now = Duration::from_secs(from) + Duration::from_millis(100 * answer);
            watch.succeeded(now, now.saturating_sub(Duration::from_secs(took)), 100, in_flight)
        };
        (1..=answers).filter_map(answered).last()
    }

    #[test]
    fn answers_that_take_many_times_as_long_show_how_many_are_at_work() {
        let mut watch = Watch::default();
        assert_eq!(after(&mut watch, 100, 200, 5, 64), None);
        assert_eq!(after(&mut watch, 200, 600, 19, 300), None);
        let saturated = after(&mut watch, 300, 200, 25, 300).unwrap();
        assert_eq!(saturated.at_work, 50);
        assert!((saturated.slower - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_provider_that_is_slow_for_a_moment_or_with_few_in_flight_does_not_saturate() {
        let mut watch = Watch::default();
        assert_eq!(after(&mut watch, 100, 192, 5, 300), None);
        assert_eq!(after(&mut watch, 200, 64, 50, 300), None);
        assert_eq!(after(&mut watch, 300, 64, 5, 300), None);
        assert_eq!(after(&mut watch, 400, 600, 50, 63), None);
    }

    #[test]
    fn the_start_may_be_ahead_of_its_answers_only_so_far() {
        let mut watch = Watch::default();
        assert_eq!(watch.most(), 256);
        after(&mut watch, 100, 1_000, 5, 64);
        assert_eq!(watch.most(), 2_256);
    }
}
