//! What the body of a refusal says, in the envelopes that are met: OpenAI's, Azure's, Anthropic's, Google's, old and
//! new vLLM's, `FastAPI`'s, a bare string. Pure; what follows from it is decided by the dialects.

use std::time::{Duration, SystemTime};

use penstock_rate::{Dimension, Hint, Period};
use serde_json::{Map, Value};

use super::retry_after;

/// A refusal's body longer than this explains nothing.
const LONGEST: usize = 256 * 1024;

/// How much of a provider's message is kept, in characters.
const KEPT: usize = 1_000;

/// The facts of an error body; each may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ErrorBody {
    /// The provider's own word for the error. Numbers, which only repeat a status, are none.
    pub(super) code: Option<String>,
    /// OpenAI's `type`: a class of errors, or the limit that was exceeded.
    pub(super) kind: Option<String>,
    /// For people.
    pub(super) message: Option<String>,
    /// A status that stands in the body.
    pub(super) status: Option<u16>,
    /// The wait that it asks for, or that its headers ask for.
    pub(super) wait: Option<Duration>,
    /// Google's word for the status, such as `RESOURCE_EXHAUSTED`.
    pub(super) word: Option<String>,
    /// What Google and Anthropic add for programs.
    pub(super) details: Value,
    /// When the exceeded limit is renewed, as `OpenRouter` says it.
    pub(super) renewed: Option<SystemTime>,
}

/// Words for a server with too much to do: of OpenAI, Azure and Gemini; of vLLM where `--max-num-queued-reqs` or
/// `-tokens` are reached (vllm-project/vllm#49445); of other servers that have a queue with an end.
const OVERLOADED: [&str; 8] = [
    "overloaded",
    "high demand",
    "at capacity",
    "queue is full",
    "queue full",
    "queue reached",
    "server is busy",
    "server_busy",
];

/// One limit, as the text of a refusal states it: `Limit 10000, Used 8554, Requested 3082`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StatedLimit {
    pub(super) limit: Option<u64>,
    pub(super) used: Option<u64>,
    pub(super) requested: Option<u64>,
}

impl ErrorBody {
    /// Reads a body; one that is no JSON says nothing.
    pub(super) fn parse(body: &[u8]) -> Self {
        if body.len() > LONGEST {
            return Self::default();
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(root)) => Self::of(&root),
            // Google's gateways wrap the object into an array.
            Ok(Value::Array(items)) => {
                items.first().and_then(Value::as_object).map(Self::of).unwrap_or_default()
            }
            _ => Self::default(),
        }
    }

    fn of(root: &Map<String, Value>) -> Self {
        match root.get("error") {
            Some(Value::Object(error)) => Self::of_members(error),
            Some(Value::String(message)) => {
                let wait = retry_after::from_text(message);
                Self { message: Some(shortened(message)), wait, ..Self::of_members(root) }
            }
            _ => Self::of_members(root),
        }
    }

    fn of_members(members: &Map<String, Value>) -> Self {
        let text = |name| members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let code = members.get("code");
        let number = match code {
            Some(Value::String(text)) => text.parse().ok(),
            Some(Value::Number(number)) => number.as_u64(),
            _ => None,
        };
        let message = text("message").map(shortened).or_else(|| match members.get("detail") {
            Some(Value::String(detail)) => Some(shortened(detail)),
            Some(detail @ (Value::Array(_) | Value::Object(_))) => Some(shortened(&detail.to_string())),
            _ => None,
        });
        Self {
            code: text("code").filter(|_| number.is_none()).map(shortened),
            kind: text("type").map(shortened),
            wait: message.as_deref().and_then(retry_after::from_text),
            message,
            status: number.and_then(|number| u16::try_from(number).ok()),
            word: text("status").map(shortened),
            details: members.get("details").cloned().unwrap_or_default(),
            renewed: members.get("metadata").and_then(renewed),
        }
    }

    /// The message in lower case, empty where there is none.
    pub(super) fn lower_message(&self) -> String {
        self.message.as_deref().unwrap_or_default().to_ascii_lowercase()
    }

    /// Whether the code or the type is one of `words`.
    pub(super) fn is_any(&self, words: &[&str]) -> bool {
        [&self.code, &self.kind].into_iter().flatten().any(|word| words.contains(&word.as_str()))
    }

    /// Which limit was exceeded.
    pub(super) fn dimension(&self) -> Option<Dimension> {
        match self.kind.as_deref() {
            Some("tokens") => return Some(Dimension::Tokens),
            Some("requests") => return Some(Dimension::Requests),
            _ => {}
        }
        let message = self.lower_message();
        let has_any = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if has_any(&["input tokens per"]) {
            Some(Dimension::InputTokens)
        } else if has_any(&["output tokens per"]) {
            Some(Dimension::OutputTokens)
        } else if has_any(&["(tpm)", "(tpd)", "tokens per", "token rate limit", "token count"]) {
            Some(Dimension::Tokens)
        } else if has_any(&["(rpm)", "(rpd)", "requests per", "call rate limit", "request rate"]) {
            Some(Dimension::Requests)
        } else {
            None
        }
    }

    /// The period of the limit that was exceeded.
    pub(super) fn period(&self) -> Option<Period> {
        let message = self.lower_message();
        [
            ("per sec", Period::Second),
            ("per min", Period::Minute),
            ("per hour", Period::Hour),
            ("per day", Period::Day),
        ]
        .into_iter()
        .find_map(|(words, period)| message.contains(words).then_some(period))
    }

    /// Whether it says that the server has too much to do.
    pub(super) fn says_overloaded(&self) -> bool {
        let texts = [&self.message, &self.code, &self.kind].into_iter().flatten();
        texts
            .map(|text| text.to_ascii_lowercase())
            .any(|text| OVERLOADED.iter().any(|words| text.contains(words)))
    }

    /// Whether it asks to come back: it names a time, says so, or speaks of a queue, which empties by itself.
    pub(super) fn asks_to_come_back(&self) -> bool {
        let message = self.lower_message();
        self.wait.is_some() || ["try again", "retry", "queue"].iter().any(|words| message.contains(words))
    }

    /// The numbers in the message.
    pub(super) fn stated_limit(&self) -> StatedLimit {
        let message = self.lower_message();
        StatedLimit {
            limit: number_behind(&message, "limit"),
            used: number_behind(&message, "used"),
            requested: number_behind(&message, "requested"),
        }
    }
}

impl StatedLimit {
    /// The same as a header would say it that names its period.
    pub(super) fn hint(self, period: Option<Period>) -> Hint {
        let remaining = self.limit.zip(self.used).map(|(limit, used)| limit.saturating_sub(used));
        Hint { limit: self.limit, remaining, reset: None, period }
    }
}

/// `headers.X-RateLimit-Reset` in milliseconds since the epoch
/// (<https://openrouter.ai/docs/api-reference/limits>).
fn renewed(metadata: &Value) -> Option<SystemTime> {
    let reset = metadata.get("headers")?.get("X-RateLimit-Reset")?;
    let milliseconds = reset.as_u64().or_else(|| reset.as_str()?.parse().ok())?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
}

/// The number directly behind `word`, as in `limit 30000` or `limit: 30000`.
fn number_behind(text: &str, word: &str) -> Option<u64> {
    text.match_indices(word).find_map(|(start, _)| {
        let rest = text[start + word.len()..].trim_start_matches(':').strip_prefix(' ')?;
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(KEPT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> (Option<String>, Option<String>, Option<u16>) {
        let ErrorBody { code, message, status, .. } = ErrorBody::parse(body.as_bytes());
        (code, message, status)
    }

    fn said(
        code: Option<&str>,
        message: &str,
        status: Option<u16>,
    ) -> (Option<String>, Option<String>, Option<u16>) {
        (code.map(str::to_owned), Some(message.to_owned()), status)
    }

    #[test]
    fn each_dialect_is_read() {
        for (body, expected) in [
            (r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#, said(Some("c"), "m", None)),
            (r#"{"error":{"code":"429","message":"m"}}"#, said(None, "m", Some(429))),
            (
                r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
                said(None, "m", Some(400)),
            ),
            (r#"{"error":"m","error_type":"overloaded"}"#, said(None, "m", None)),
            (r#"{"detail":"Not Found"}"#, said(None, "Not Found", None)),
            (r#"{"detail":[{"loc":["body"]}]}"#, said(None, r#"[{"loc":["body"]}]"#, None)),
            (
                r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#,
                said(None, "m", Some(429)),
            ),
        ] {
            assert_eq!(parse(body), expected, "{body}");
        }
        for body in
            ["", "<html>", "null", "[]", "7", r#"{"error":{}}"#, r#"{"error":{"message":7,"code":null}}"#]
        {
            assert_eq!(parse(body), (None, None, None), "{body}");
        }
    }

    #[test]
    fn the_numbers_of_a_refusal_are_read_as_a_header_would_be() {
        let body = ErrorBody::parse(
            br#"{"error":"Rate limit reached for gpt-4 in organization org-x on tokens per min (TPM): Limit 10000, Used 8554, Requested 3082. Please try again in 9.816s."}"#,
        );
        let stated = body.stated_limit();
        assert_eq!(stated, StatedLimit { limit: Some(10_000), used: Some(8_554), requested: Some(3_082) });
        let minute = Some(Period::Minute);
        assert_eq!(body.period(), minute);
        let hint = Hint { limit: Some(10_000), remaining: Some(1_446), reset: None, period: minute };
        assert_eq!(stated.hint(minute), hint);
        assert_eq!(body.dimension(), Some(Dimension::Tokens));
        assert_eq!(body.wait, Some(Duration::from_millis(9_816)));
    }

    #[test]
    fn a_message_is_kept_short() {
        let body = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(10_000));
        assert_eq!(parse(&body).1.unwrap().chars().count(), KEPT);
    }
}
