//! A request that is larger than a whole limit, at a provider that words this like any refusal for the rate, as Gemini
//! and Anthropic do. Pure.
//!
//! Nothing in such a refusal tells, so it takes three things together: the body names the limit on tokens, the request
//! is text that by rule of thumb has more of them, and it has come back in vain several times in a row. Sent for ever
//! instead, it would hold the job until its completion window is over, and lower the rate of all others on its way.

use memchr::memmem;
use penstock_rate::{Dimension, Verdict};

use super::{classify::Cause, request::BYTES_PER_TOKEN};

/// Refusals in a row before a request counts as too large. Others of the job are refused one time in two hundred, so
/// this is no coincidence.
const REFUSALS: u32 = 5;

/// What stands in bodies with pictures, sound and files, whose bytes say nothing about their tokens.
const MEDIA: [&[u8]; 4] = [b"base64", b"input_audio", b"inlineData", b"inline_data"];

/// Why a request with this body that was refused so many times in a row is not sent again, if that is so.
pub fn never_fits(body: &[u8], verdict: &Verdict, refusals: u32) -> Option<Cause> {
    let Verdict::Refused { dimension: Some(dimension), hints, .. } = verdict else {
        return None;
    };
    if refusals < REFUSALS || !matches!(dimension, Dimension::Tokens | Dimension::InputTokens) {
        return None;
    }
    // Headers may be about another limit; what names its period is what this refusal is about.
    let hint = hints.of(*dimension);
    let limit = hint.period.and(hint.limit)?;
    let tokens = tokens_of_text(body)?;
    (tokens > limit).then(|| {
        Cause::new(
            "request_too_large",
            format!(
                "the provider refused this line {refusals} times for a limit of {limit} tokens, and it has about \
                 {tokens}; shorten it, or ask the provider for a higher limit"
            ),
        )
    })
}

/// About as many tokens as a body has that is all text; an escape such as `\u00e9` is one character of two bytes.
fn tokens_of_text(body: &[u8]) -> Option<u64> {
    const LONGER_ESCAPED: usize = 4;
    if MEDIA.iter().any(|words| memmem::find(body, words).is_some()) {
        return None;
    }
    let escapes = memmem::find_iter(body, b"\\u").count();
    u64::try_from(body.len().saturating_sub(escapes * LONGER_ESCAPED) / BYTES_PER_TOKEN).ok()
}

#[cfg(test)]
mod tests {
    use penstock_rate::{Hint, Hints, Period};

    use super::*;

    fn refused(dimension: Option<Dimension>, hint: Hint) -> Verdict {
        let hints = dimension.map_or_else(Hints::default, |dimension| Hints::default().with(dimension, hint));
        Verdict::Refused { dimension, retry_after: None, hints }
    }

    fn a_minute(limit: u64) -> Hint {
        Hint { limit: Some(limit), period: Some(Period::Minute), ..Hint::default() }
    }

    #[test]
    fn text_that_is_refused_again_and_again_for_a_limit_it_is_larger_than_never_fits() {
        let text = "word ".repeat(10_000);
        let verdict = refused(Some(Dimension::InputTokens), a_minute(10_000));
        assert_eq!(never_fits(text.as_bytes(), &verdict, REFUSALS - 1), None, "it may be a coincidence");
        let cause = never_fits(text.as_bytes(), &verdict, REFUSALS).unwrap();
        assert_eq!(cause.code, "request_too_large");
        assert!(cause.message.contains("5 times for a limit of 10000 tokens"), "{}", cause.message);
        assert!(cause.message.contains("about 12500;"), "{}", cause.message);
    }

    #[test]
    fn what_may_fit_is_sent_however_often_it_was_refused() {
        let text = "word ".repeat(10_000);
        let picture = format!(r#"{{"url":"data:image/png;base64,{text}"}}"#);
        let header = Hint { limit: Some(10), ..Hint::default() };
        for (body, verdict) in [
            (&text, refused(Some(Dimension::InputTokens), a_minute(12_500))),
            (&text, refused(Some(Dimension::Requests), a_minute(10))),
            (&text, refused(Some(Dimension::OutputTokens), a_minute(10))),
            (&text, refused(Some(Dimension::Tokens), header)),
            (&text, refused(None, a_minute(10))),
            (&text, Verdict::Overloaded { retry_after: None }),
            (&picture, refused(Some(Dimension::Tokens), a_minute(10))),
        ] {
            assert_eq!(never_fits(body.as_bytes(), &verdict, 1_000), None, "{verdict:?}");
        }
    }

    #[test]
    fn escapes_count_as_the_characters_that_they_stand_for() {
        assert_eq!(tokens_of_text("\\u0436".repeat(100).as_bytes()), Some(50));
    }
}
