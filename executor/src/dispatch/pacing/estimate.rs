//! What a line will take of a token limit, before its body is looked at. Pure.

use penstock_rate::Cost;

/// Bytes of a line that make one token, as a rule of thumb.
const BYTES_PER_TOKEN: u32 = 4;
/// The part of one request in the mean: the lines of a window are alike, and those of the next may differ.
const WEIGHT: f64 = 0.05;

/// The answers that a model's requests ask for: the mean of their own bounds (`max_tokens`), which is what most providers
/// take from a token limit when a request arrives.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnswerBound {
    mean: Option<f64>,
}

impl AnswerBound {
    /// A request allows its answer so many tokens.
    pub(super) fn record(&mut self, tokens: u32) {
        let tokens = f64::from(tokens);
        self.mean = Some(self.mean.map_or(tokens, |mean| mean + WEIGHT * (tokens - mean)));
    }

    /// Whether any request has set a bound.
    pub(super) fn is_known(self) -> bool {
        self.mean.is_some()
    }

    /// What a line of `length` bytes is expected to take. Where requests set no bound, nearly all answers stay within
    /// `p95` tokens, those of the model so far; before the first, an answer counts as long as its prompt.
    pub(super) fn cost(self, length: u32, p95: Option<u32>) -> Cost {
        let input_tokens = length / BYTES_PER_TOKEN;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of u32")]
        let bound = self.mean.map(|mean| mean.round() as u32);
        Cost { input_tokens, output_tokens: bound.or(p95).unwrap_or(input_tokens) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_as_long_as_requests_allow_else_as_answers_were_else_as_the_prompt() {
        let mut bound = AnswerBound::default();
        assert_eq!(bound.cost(400, None), Cost { input_tokens: 100, output_tokens: 100 });
        assert_eq!(bound.cost(400, Some(7)).output_tokens, 7);
        bound.record(1_000);
        assert_eq!(bound.cost(400, Some(7)).output_tokens, 1_000);
        (0..200).for_each(|_| bound.record(200));
        assert_eq!(bound.cost(400, Some(7)).output_tokens, 200);
    }
}
