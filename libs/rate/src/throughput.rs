//! How much a server yields with a number of requests in flight, and how sure that is.
//!
//! With `n` requests always in flight, tokens per second are `n × tokens / time in flight`, summed over the answers
//! (Little's law). While nothing queues, the time of an answer is nearly proportional to its length, so that a few
//! dozen answers of very different lengths tell the throughput within a percent; counting tokens per second takes
//! thousands.

use std::time::Duration;

/// Standard errors between the likely gain and its bounds, which hold in 98 of 100 cases.
const BOUND: f64 = 2.3;
/// The standard deviation of what a request has got when looked at, as a share of the root mean square of lengths.
const PROGRESS: f64 = 0.6;

/// Sums over the answers that came while a number of requests was in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    count: u32,
    tokens: f64,
    seconds: f64,
    tokens_squared: f64,
    seconds_squared: f64,
    product: f64,
}

/// What was measured with this many requests in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Throughput {
    pub(crate) in_flight: u32,
    /// Tokens per second.
    pub(crate) rate: f64,
    /// The standard error of the rate, as a share of it.
    error: f64,
}

/// By how much one throughput exceeds another, as a share of that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gain {
    pub(crate) least: f64,
    pub(crate) likely: f64,
    pub(crate) most: f64,
}

impl Answers {
    pub(crate) fn add(&mut self, tokens: u32, in_flight_for: Duration) {
        // Answers without output tokens, embeddings for instance, count as one each.
        let tokens = f64::from(tokens.max(1));
        let seconds = in_flight_for.as_secs_f64();
        self.count = self.count.saturating_add(1);
        self.tokens += tokens;
        self.seconds += seconds;
        self.tokens_squared += tokens * tokens;
        self.seconds_squared += seconds * seconds;
        self.product += tokens * seconds;
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// None as long as no time has passed.
    pub(crate) fn throughput(&self, in_flight: u32) -> Option<Throughput> {
        if self.seconds <= 0.0 {
            return None;
        }
        let in_flight_now = f64::from(in_flight);
        let each = self.tokens / self.seconds;
        // As if the answers scattered independently around the proportion.
        let scatter = self.tokens_squared - 2.0 * each * self.product + each * each * self.seconds_squared;
        // In a queue they do not: each waits as long as those before it take. There the work is even, and what is
        // uncertain is only how much of it is under way at the beginning and at the end.
        let squared_length = self.tokens_squared / f64::from(self.count);
        let under_way = PROGRESS * PROGRESS * 2.0 * in_flight_now * squared_length;
        let error = scatter.max(0.0).min(under_way).sqrt() / self.tokens;
        Some(Throughput { in_flight, rate: in_flight_now * each, error })
    }
}

impl Throughput {
    pub(crate) fn gain_over(&self, base: &Self) -> Gain {
        let ratio = self.rate / base.rate;
        let error = BOUND * ratio * self.error.hypot(base.error);
        Gain { least: ratio - 1.0 - error, likely: ratio - 1.0, most: ratio - 1.0 + error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [u32; 6] = [10, 2_000, 50, 300, 90, 700];

    /// Answers of these lengths, each of which waits and then streams this many tokens per second.
    fn measured(in_flight: u32, lengths: &[u32], waits: &[f64], speed: f64) -> Throughput {
        let mut answers = Answers::default();
        for (tokens, wait) in lengths.iter().zip(waits.iter().cycle()) {
            answers.add(*tokens, Duration::from_secs_f64(wait + f64::from(*tokens) / speed));
        }
        answers.throughput(in_flight).unwrap()
    }

    #[test]
    fn where_nothing_waits_a_few_answers_of_any_length_tell_the_gain_exactly() {
        let few = measured(8, &LENGTHS, &[0.0], 50.0);
        let more = measured(16, &[4_000, 600, 100], &[0.0], 40.0);
        assert!((few.rate - 400.0).abs() < 1e-6, "{few:?}");
        let gain = more.gain_over(&few);
        assert!((gain.likely - 0.6).abs() < 1e-6 && gain.most - gain.least < 1e-6, "{gain:?}");
    }

    #[test]
    fn twice_as_many_that_wait_as_long_as_they_run_gain_nothing() {
        let served = measured(8, &[500; 8], &[0.0], 50.0);
        let queued = measured(16, &[500; 8], &[10.0], 50.0);
        assert!(queued.gain_over(&served).likely.abs() < 1e-6);
    }

    #[test]
    fn what_varies_takes_more_answers_and_in_the_end_only_what_is_under_way_is_uncertain() {
        let base = measured(8, &LENGTHS, &[0.0], 50.0);
        let width = |rounds| {
            let gain = measured(8, &LENGTHS.repeat(rounds), &[0.0, 9.0, 3.0, 1.0], 50.0).gain_over(&base);
            gain.most - gain.least
        };
        let (few, many) = (width(2) / width(4), width(400) / width(800));
        assert!((1.2..1.7).contains(&few), "{few}");
        assert!((1.9..2.1).contains(&many), "{many}");
    }

    #[test]
    fn answers_without_tokens_count_and_answers_without_time_tell_nothing() {
        assert!((measured(10, &[0, 0], &[0.5], 1e9).rate - 20.0).abs() < 1e-3);
        let mut instant = Answers::default();
        instant.add(100, Duration::ZERO);
        assert_eq!(instant.throughput(8), None);
    }
}
