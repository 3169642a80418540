//! The words of an answer: what a helpful support agent might write.
//!
//! Owns the sentences and how many of them make an answer; ASCII only, so a token is four bytes.

use rand::{Rng, RngExt};

use crate::question::tokens;

/// Sentences in which `{}` stands for one of [`SUBJECTS`].
const SENTENCES: [&str; 28] = [
    "I checked {} and can see what went wrong.",
    "The customer reports a problem with {} that started after the last update.",
    "Please try once more to open {}; the change is already live.",
    "We have corrected {} and added a note to the account.",
    "I am sorry about the trouble with {}.",
    "Category: billing, because the message is mostly about {}.",
    "Category: technical, since {} does not behave as documented.",
    "Priority: high, as {} keeps the team from working.",
    "Priority: normal; there is a workaround for {}.",
    "The tone is calm, but the customer wrote about {} twice before.",
    "Our billing team will look at {} within one business day.",
    "You can find {} under Settings, in the section for your workspace.",
    "If {} looks wrong to you after an hour, reply to this message and we reopen the ticket.",
    "A refund for {} was approved and takes three to five days to arrive.",
    "To be safe we have reset the sessions that belong to {}.",
    "In short: {} is affected, nothing was lost, and a fix is on its way.",
    "The logs show that {} timed out four times this morning.",
    "Suggested next step: ask for a screenshot of {}.",
    "Nothing needs to be done on your side to keep {}.",
    "We hand this over to the team that looks after {}.",
    "This matches a known issue with {} that we are fixing this week.",
    "The contract allows {} until the end of the month.",
    "Could you tell us which browser you used to reach {}?",
    "I have sent the steps for {} to the address we have on file.",
    "Two other customers mentioned {} today, so this is not only you.",
    "The export of {} finished, and the link stays valid for seven days.",
    "Sentiment: frustrated about {}, satisfied with the first reply.",
    "Thank you for the details on {}, they made this easy to find.",
];

const SUBJECTS: [&str; 24] = [
    "the invoice for March",
    "your subscription",
    "the password reset",
    "the delivery address",
    "the mobile app",
    "the calendar sync",
    "the second charge",
    "the team workspace",
    "the API key",
    "the shipment",
    "the export",
    "the login page",
    "two-factor sign-in",
    "the discount code",
    "the annual plan",
    "the shared folder",
    "the webhook",
    "the payment method",
    "the booking",
    "the warranty claim",
    "the German translation",
    "the weekly report",
    "the replacement part",
    "the usage dashboard",
];

/// How a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Stop,
    /// At the most tokens that it may have.
    Length,
    /// Held back by the provider's content filter.
    Filtered,
    /// Held back because it repeats what others wrote.
    Recited,
}

/// What a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) end: End,
    /// Tokens spent on thinking, which is not shown.
    pub(crate) thought_tokens: u32,
}

impl Written {
    /// A text that was held back.
    pub(crate) fn nothing(end: End) -> Self {
        Self { text: String::new(), end, thought_tokens: 0 }
    }

    /// A text of about `tokens` tokens, never more than `most_tokens` with the thinking before it, and empty only
    /// where the thinking leaves nothing.
    pub(super) fn write(random: &mut impl Rng, tokens: u32, most_tokens: u32, thought_tokens: u32) -> Self {
        let most_tokens = most_tokens.max(1);
        if thought_tokens >= most_tokens {
            return Self { thought_tokens: most_tokens, ..Self::nothing(End::Length) };
        }
        let (text, end) = write(random, tokens, most_tokens - thought_tokens);
        Self { text, end, thought_tokens }
    }

    /// Tokens of what is shown.
    pub(crate) fn tokens(&self) -> u32 {
        tokens(self.text.len())
    }

    /// Tokens of the text and of the thinking before it.
    pub(crate) fn output_tokens(&self) -> u32 {
        self.tokens().saturating_add(self.thought_tokens)
    }
}

/// A text of about `tokens` tokens, never more than `most_tokens` (at least 1) and never empty.
fn write(random: &mut impl Rng, tokens: u32, most_tokens: u32) -> (String, End) {
    let bytes = |tokens: u32| tokens as usize * 4;
    let (wanted, most) = (bytes(tokens), bytes(most_tokens));
    let mut text = String::with_capacity(wanted.min(most) + 128);
    while text.len() < wanted.max(1) && text.len() <= most {
        if !text.is_empty() {
            text.push(' ');
        }
        let sentence = SENTENCES[random.random_range(0..SENTENCES.len())];
        let (before, after) =
            sentence.split_once("{}").expect("invariant: a sentence has one place for a subject");
        text.push_str(before);
        text.push_str(SUBJECTS[random.random_range(0..SUBJECTS.len())]);
        text.push_str(after);
    }
    if text.len() <= most {
        return (text, End::Stop);
    }
    text.truncate(most);
    (text, End::Length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn every_sentence_is_ascii_with_one_place_for_a_subject() {
        for sentence in SENTENCES {
            assert!(sentence.is_ascii() && sentence.matches("{}").count() == 1, "{sentence}");
        }
        assert!(SUBJECTS.iter().all(|subject| subject.is_ascii()));
    }

    proptest! {
        #[test]
        fn a_text_keeps_its_limit(seed: u64, tokens in 0..400_u32, most in 0..400_u32, thoughts in 0..400_u32) {
            let written = Written::write(&mut ChaCha8Rng::seed_from_u64(seed), tokens, most, thoughts);
            let most = most.max(1);
            prop_assert_eq!(written.text.is_empty(), thoughts >= most);
            match written.end {
                End::Length => prop_assert_eq!(written.output_tokens(), most),
                End::Stop => {
                    prop_assert!(written.output_tokens() <= most && written.text.len() >= 4 * tokens as usize);
                    prop_assert!(written.text.ends_with(['.', '?']));
                }
                End::Filtered | End::Recited => prop_assert!(false, "nothing held it back"),
            }
        }
    }
}
