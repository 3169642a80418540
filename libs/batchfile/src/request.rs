//! One input line: what it asks for, or why it is refused.
//!
//! Borrows everything from the line. Faults that need other lines (duplicate ids) are found elsewhere.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{
    Endpoint, Format, RawId, Rejection,
    json::{kind_of, text_of},
    members::Members,
};

/// What the job says about its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How lines are written.
    pub format: Format,
    /// The job's endpoint. A line that names an endpoint must name this one.
    pub endpoint: Endpoint,
    /// Whether the job names a model, for lines that name none.
    pub has_model: bool,
    /// Whether fields that the format does not know reject a line. Bodies are the provider's to judge.
    pub strict: bool,
}

/// A valid line.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The user's name for the line.
    pub id: RawId<'a>,
    /// The line's own model, never empty; `None` leaves it to the job's, which then exists.
    pub model: Option<Cow<'a, str>>,
    /// Which endpoint is to answer.
    pub endpoint: Endpoint,
    /// What is asked.
    pub body: Body<'a>,
}

/// What a line asks, byte for byte as it was written.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// The JSON string token of a prompt, quotes and escapes as written. It may be the empty string.
    Prompt(&'a RawValue),
    /// The JSON object of a request body, from `{` to `}`.
    OpenAi(&'a RawValue),
}

/// Reads one line, without its terminator.
pub fn parse<'a>(line: &'a [u8], rules: &Rules) -> Result<Request<'a>, Rejection> {
    let text = str::from_utf8(line).map_err(|error| Rejection::invalid_utf8(error.valid_up_to()))?;
    match rules.format {
        Format::Prompts => parse_prompts(text, *rules),
        Format::OpenAi => parse_openai(text, *rules),
    }
}

fn parse_prompts(text: &str, rules: Rules) -> Result<Request<'_>, Rejection> {
    let [id, prompt] = line_members(text, &["prompt_id", "prompt"], rules.strict)?;
    let id = id.ok_or_else(|| Rejection::missing("prompt_id", r#""prompt_id": 7"#))?;
    let id = RawId::new(id, Format::Prompts)?;
    let prompt = prompt.ok_or_else(|| Rejection::missing("prompt", r#""prompt": "What is a penstock?""#))?;
    expect_kind(prompt, "prompt", "a string")?;
    if !rules.has_model {
        return Err(Rejection::missing_model());
    }
    Ok(Request {
        id,
        model: None,
        endpoint: rules.endpoint,
        body: Body::Prompt(prompt),
    })
}

fn parse_openai(text: &str, rules: Rules) -> Result<Request<'_>, Rejection> {
    let [id, method, url, body] = line_members(text, &["custom_id", "method", "url", "body"], rules.strict)?;
    let id = id.ok_or_else(|| Rejection::missing("custom_id", r#""custom_id": "request-1""#))?;
    let id = RawId::new(id, Format::OpenAi)?;
    check_method(method)?;
    check_url(url, rules.endpoint)?;
    let body = body.ok_or_else(|| Rejection::missing("body", r#""body": {"messages": [...]}"#))?;
    expect_kind(body, "body", "an object")?;
    let model = check_body(body, rules)?;
    Ok(Request {
        id,
        model,
        endpoint: rules.endpoint,
        body: Body::OpenAi(body),
    })
}

/// The members of a line, after the checks that both formats share.
fn line_members<'a, const N: usize>(
    text: &'a str,
    names: &'static [&'static str; N],
    strict: bool,
) -> Result<[Option<&'a RawValue>; N], Rejection> {
    let members = Members::read(text, names).map_err(|error| Rejection::unreadable(&error))?;
    if let Some(name) = members.duplicate {
        return Err(Rejection::duplicate_key(name));
    }
    match members.unknown {
        Some(name) if strict => Err(Rejection::unknown_field(&name, names)),
        _ => Ok(members.values),
    }
}

fn expect_kind(value: &RawValue, name: &str, kind: &str) -> Result<(), Rejection> {
    match kind_of(value) {
        found if found == kind => Ok(()),
        found => Err(Rejection::invalid_type(name, kind, found)),
    }
}

/// `null` counts as absent, for the method as for the url.
fn check_method(method: Option<&RawValue>) -> Result<(), Rejection> {
    let Some(method) = method.filter(|method| method.get() != "null") else {
        return Ok(());
    };
    expect_kind(method, "method", "a string")?;
    match text_of(method) {
        Some(text) if text == "POST" => Ok(()),
        text => Err(Rejection::invalid_method(text.as_deref().unwrap_or(method.get()))),
    }
}

fn check_url(url: Option<&RawValue>, expected: Endpoint) -> Result<(), Rejection> {
    let Some(url) = url.filter(|url| url.get() != "null") else {
        return Ok(());
    };
    expect_kind(url, "url", "a string")?;
    let text = text_of(url).unwrap_or(Cow::Borrowed(url.get()));
    match text.parse::<Endpoint>() {
        Ok(found) if found == expected => Ok(()),
        Ok(found) => Err(Rejection::url_mismatch(found, expected)),
        Err(_) if text.starts_with("/v1/") => Err(Rejection::unsupported_endpoint(&text)),
        Err(_) => Err(Rejection::invalid_url(&text)),
    }
}

/// Checks the members of a body that Penstock itself must understand, and returns the model.
fn check_body(body: &RawValue, rules: Rules) -> Result<Option<Cow<'_, str>>, Rejection> {
    let members =
        Members::read(body.get(), &["model", "stream"]).map_err(|error| Rejection::unreadable(&error))?;
    if let Some(name) = members.duplicate {
        return Err(Rejection::duplicate_key(&format!("body.{name}")));
    }
    let [model, stream] = members.values;
    // Some providers read 1 or "true" as true, so nothing but a plain false passes.
    match stream.map(RawValue::get) {
        None | Some("false" | "null") => {}
        Some("true") => return Err(Rejection::stream_not_supported()),
        Some(_) => expect_kind(
            stream.expect("invariant: matched as present"),
            "body.stream",
            "a boolean",
        )?,
    }
    let Some(model) = model else {
        return if rules.has_model {
            Ok(None)
        } else {
            Err(Rejection::missing_model())
        };
    };
    expect_kind(model, "body.model", "a string")?;
    text_of(model)
        .filter(|name| !name.is_empty())
        .map(Some)
        .ok_or_else(Rejection::invalid_model)
}
