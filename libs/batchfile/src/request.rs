//! One input line: what it asks for, or why it is refused.
//!
//! Borrows everything from the line. Faults that need other lines (duplicate ids) are found elsewhere.

use std::borrow::Cow;

use crate::{
    Endpoint, Format, Json, RawId, Rejection,
    json::{kind_of, text_of},
    members::Members,
    skim,
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
    Prompt(&'a str),
    /// The JSON object of a request body, from `{` to `}`.
    OpenAi(&'a str),
}

/// Reads one line, without its terminator.
pub fn parse<'a>(line: &'a [u8], rules: &Rules) -> Result<Request<'a>, Rejection> {
    let text = str::from_utf8(line).map_err(|error| Rejection::invalid_utf8(error.valid_up_to()))?;
    match rules.format {
        Format::Prompts => parse_prompts(text, *rules),
        Format::OpenAi => parse_openai(text, *rules),
    }
}

/// Reads a line again that [`parse`] has let through under the same rules, and tells the same of it without judging it:
/// a line of a kilobyte in half the time, a longer one in a third (`cargo bench -p penstock-batchfile`). `None`: this is
/// no such line, and [`parse`] says why.
pub fn parse_validated<'a>(line: &'a [u8], rules: &Rules) -> Option<Request<'a>> {
    let text = str::from_utf8(line).ok()?;
    let id_of = |token: &'a str| RawId::new(Json::parse(token)?, rules.format).ok();
    let is = |kind: char| move |token: &&str| token.starts_with(kind);
    let (id, model, body) = match rules.format {
        Format::Prompts => {
            let [id, prompt] = skim::members(text, &["prompt_id", "prompt"])?;
            (id, None, Body::Prompt(prompt.filter(is('"'))?))
        }
        Format::OpenAi => {
            let [id, body] = skim::members(text, &["custom_id", "body"])?;
            let body = body.filter(is('{'))?;
            let [model] = skim::members(body, &["model"])?;
            let model = model.map(|model| text_of(model).filter(|name| !name.is_empty()));
            (id, model, Body::OpenAi(body))
        }
    };
    let model = match model {
        None if rules.has_model => None,
        own => Some(own??),
    };
    Some(Request { id: id_of(id?)?, model, endpoint: rules.endpoint, body })
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
    Ok(Request { id, model: None, endpoint: rules.endpoint, body: Body::Prompt(prompt.get()) })
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
    Ok(Request { id, model, endpoint: rules.endpoint, body: Body::OpenAi(body.get()) })
}

/// The members of a line, after the checks that both formats share.
fn line_members<'a, const N: usize>(
    text: &'a str,
    names: &'static [&'static str; N],
    strict: bool,
) -> Result<[Option<Json<'a>>; N], Rejection> {
    let members = Members::read(text, names).map_err(|error| Rejection::unreadable(&error))?;
    if let Some(name) = members.duplicate {
        return Err(Rejection::duplicate_key(name));
    }
    match members.unknown {
        Some(name) if strict => Err(Rejection::unknown_field(&name, names)),
        _ => Ok(members.values),
    }
}

fn expect_kind(value: Json<'_>, name: &str, kind: &str) -> Result<(), Rejection> {
    match kind_of(value) {
        found if found == kind => Ok(()),
        found => Err(Rejection::invalid_type(name, kind, found)),
    }
}

/// `null` counts as absent, for the method as for the url.
fn check_method(method: Option<Json<'_>>) -> Result<(), Rejection> {
    let Some(method) = method.filter(|method| method.get() != "null") else {
        return Ok(());
    };
    expect_kind(method, "method", "a string")?;
    match method.text() {
        Some(text) if text == "POST" => Ok(()),
        text => Err(Rejection::invalid_method(text.as_deref().unwrap_or(method.get()))),
    }
}

fn check_url(url: Option<Json<'_>>, expected: Endpoint) -> Result<(), Rejection> {
    let Some(url) = url.filter(|url| url.get() != "null") else {
        return Ok(());
    };
    expect_kind(url, "url", "a string")?;
    let text = url.text().unwrap_or(Cow::Borrowed(url.get()));
    match text.parse::<Endpoint>() {
        Ok(found) if found == expected => Ok(()),
        Ok(found) => Err(Rejection::url_mismatch(found, expected)),
        Err(_) if text.starts_with("/v1/") => Err(Rejection::unsupported_endpoint(&text)),
        Err(_) => Err(Rejection::invalid_url(&text)),
    }
}

/// Checks the members of a body that Penstock itself must understand, and returns the model.
fn check_body(body: Json<'_>, rules: Rules) -> Result<Option<Cow<'_, str>>, Rejection> {
    let names = &["model", "stream"];
    let members = match Members::of(body, names) {
        Some(members) => members,
        None => Members::parse(body.get(), names).map_err(|error| Rejection::unreadable(&error))?,
    };
    let [model, stream] = members.values;
    if let Some(name) = members.duplicate {
        return Err(Rejection::duplicate_key(&format!("body.{name}")));
    }
    // Some providers read 1 or "true" as true, so nothing but a plain false passes.
    match stream.map(Json::get) {
        None | Some("false" | "null") => {}
        Some("true") => return Err(Rejection::stream_not_supported()),
        Some(_) => expect_kind(stream.expect("invariant: matched as present"), "body.stream", "a boolean")?,
    }
    let Some(model) = model else {
        return if rules.has_model { Ok(None) } else { Err(Rejection::missing_model()) };
    };
    expect_kind(model, "body.model", "a string")?;
    let name = model.text().filter(|name| !name.is_empty());
    name.map(Some).ok_or_else(Rejection::invalid_model)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{RejectionCode, RejectionCode as Code};

    const PROMPTS: Rules = Rules {
        format: Format::Prompts,
        endpoint: Endpoint::ChatCompletions,
        has_model: true,
        strict: false,
    };
    const OPENAI: Rules = Rules { format: Format::OpenAi, ..PROMPTS };

    fn code(line: &str, rules: Rules) -> RejectionCode {
        parse(line.as_bytes(), &rules).expect_err(line).code
    }

    #[test]
    fn a_prompt_passes_through_as_written() {
        let line = r#" { "prompt" : "Say \u00e9\n \ud83d", "prompt_id" : 7, "note": [] } "#;
        let request = parse(line.as_bytes(), &PROMPTS).unwrap();
        assert_eq!(request.id.raw(), "7");
        assert_eq!(request.model, None);
        let Body::Prompt(prompt) = request.body else { panic!("a prompt") };
        assert_eq!(prompt, r#""Say \u00e9\n \ud83d""#);
    }

    #[test]
    fn a_body_passes_through_as_written() {
        let body = r#"{ "model":"m\u0061",  "n": 1.50e0, "messages":[ ]  , "stream":false}"#;
        let line =
            format!(r#"{{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body": {body} }}"#);
        let request = parse(line.as_bytes(), &OPENAI).unwrap();
        assert_eq!(request.id.raw(), "\"a\"");
        assert_eq!(request.model.as_deref(), Some("ma"));
        assert_eq!(request.endpoint, Endpoint::ChatCompletions);
        let Body::OpenAi(found) = request.body else { panic!("an OpenAI body") };
        assert_eq!(found, body);
    }

    #[test]
    fn a_validated_line_reads_as_it_did_at_first() {
        let lines = [
            (PROMPTS, r#" { "prompt" : "Say \u00e9\n \ud83d", "prompt_id" : 7, "note": [{"prompt":1}] } "#),
            (
                OPENAI,
                r#"{"custom_id":"\u0061","body":{"messages":[{"model":"x"}],"model":"m\u0061"},"url":null}"#,
            ),
            (OPENAI, r#"{"b\u006fdy": { } , "custom_id":"a"}"#),
        ];
        for (rules, line) in lines {
            let (first, again) = (parse(line.as_bytes(), &rules), parse_validated(line.as_bytes(), &rules));
            assert_eq!(format!("{:?}", again.unwrap()), format!("{:?}", first.unwrap()), "{line}");
        }
    }

    #[test]
    fn a_line_that_cannot_have_been_let_through_is_not_read_again() {
        let no_model = Rules { has_model: false, ..OPENAI };
        for (rules, line) in [
            (PROMPTS, r#"{"prompt_id":7}"#),
            (PROMPTS, r#"{"prompt_id":7.5,"prompt":"a"}"#),
            (PROMPTS, r#"{"prompt_id":7,"prompt":"a"#),
            (OPENAI, r#"{"custom_id":"a","body":[]}"#),
            (OPENAI, r#"{"custom_id":"a","body":{"model":""}}"#),
            (no_model, r#"{"custom_id":"a","body":{}}"#),
        ] {
            assert!(parse_validated(line.as_bytes(), &rules).is_none(), "{line}");
        }
    }

    #[test]
    fn method_and_url_may_be_absent() {
        for line in [
            r#"{"custom_id":"a","body":{}}"#,
            r#"{"custom_id":"a","method":null,"url":null,"body":{}}"#,
            r#"{"custom_id":"a","url":"chat/completions","body":{"stream":null}}"#,
        ] {
            assert!(parse(line.as_bytes(), &OPENAI).is_ok(), "{line}");
        }
    }

    #[test]
    fn each_fault_of_any_line_has_its_code() {
        assert_eq!(
            parse(b"{\"prompt_id\":7,\"prompt\":\"\xff\"}", &PROMPTS).unwrap_err().code,
            Code::InvalidUtf8
        );
        assert_eq!(code(r#"{"prompt_id":7,"prompt":"a""#, PROMPTS), Code::InvalidJsonLine);
        assert_eq!(code(r#"{"prompt_id":7,"prompt":"a"} {}"#, PROMPTS), Code::InvalidJsonLine);
        assert_eq!(code(r#"["prompt_id"]"#, PROMPTS), Code::NotAnObject);
        assert_eq!(code(r#"{"prompt_id":7,"prompt":"a","prompt":"b"}"#, PROMPTS), Code::DuplicateKey);
        let strict = Rules { strict: true, ..PROMPTS };
        assert_eq!(code(r#"{"prompt_id":7,"prompt":"a","note":1}"#, strict), Code::UnknownField);
    }

    #[test]
    fn each_fault_of_a_prompts_line_has_its_code() {
        assert_eq!(code(r#"{"prompt":"a"}"#, PROMPTS), Code::MissingRequiredParameter);
        assert_eq!(code(r#"{"prompt_id":7}"#, PROMPTS), Code::MissingRequiredParameter);
        assert_eq!(code(r#"{"prompt_id":"7","prompt":"a"}"#, PROMPTS), Code::InvalidType);
        assert_eq!(code(r#"{"prompt_id":7,"prompt":["a"]}"#, PROMPTS), Code::InvalidType);
        assert_eq!(code(r#"{"prompt_id":7,"prompt":null}"#, PROMPTS), Code::InvalidType);
        let without_model = Rules { has_model: false, ..PROMPTS };
        assert_eq!(code(r#"{"prompt_id":7,"prompt":"a"}"#, without_model), Code::MissingModel);
    }

    #[test]
    fn each_fault_of_an_openai_line_has_its_code() {
        for (line, expected) in [
            (r#"{"body":{}}"#, Code::MissingRequiredParameter),
            (r#"{"custom_id":"a"}"#, Code::MissingRequiredParameter),
            (r#"{"custom_id":"","body":{}}"#, Code::InvalidId),
            (r#"{"custom_id":7,"body":{}}"#, Code::InvalidType),
            (r#"{"custom_id":"a","body":"{}"}"#, Code::InvalidType),
            (r#"{"custom_id":"a","body":null}"#, Code::InvalidType),
            (r#"{"custom_id":"a","method":"GET","body":{}}"#, Code::InvalidMethod),
            (r#"{"custom_id":"a","method":1,"body":{}}"#, Code::InvalidType),
            (r#"{"custom_id":"a","url":"/v1/embeddings","body":{}}"#, Code::UrlMismatch),
            (r#"{"custom_id":"a","url":"/v1/images/generations","body":{}}"#, Code::UnsupportedEndpoint),
            (r#"{"custom_id":"a","url":"https://api.openai.com/v1/responses","body":{}}"#, Code::InvalidUrl),
            (r#"{"custom_id":"a","url":7,"body":{}}"#, Code::InvalidType),
            (r#"{"custom_id":"a","body":{"stream":true}}"#, Code::StreamNotSupported),
            (r#"{"custom_id":"a","body":{"stream":1}}"#, Code::InvalidType),
            (r#"{"custom_id":"a","body":{"str\u0065am":"true"}}"#, Code::InvalidType),
            (r#"{"custom_id":"a","body":{"model":""}}"#, Code::InvalidModel),
            (r#"{"custom_id":"a","body":{"model":"\udc00"}}"#, Code::InvalidModel),
            (r#"{"custom_id":"a","body":{"model":null}}"#, Code::InvalidType),
            (r#"{"custom_id":"a","body":{"model":"a","model":"b"}}"#, Code::DuplicateKey),
        ] {
            assert_eq!(code(line, OPENAI), expected, "{line}");
        }
        let without_model = Rules { has_model: false, ..OPENAI };
        assert_eq!(code(r#"{"custom_id":"a","body":{}}"#, without_model), Code::MissingModel);
        assert!(parse(br#"{"custom_id":"a","body":{"model":"m"}}"#, &without_model).is_ok());
    }

    #[test]
    fn a_syntax_error_is_located() {
        let rejection = parse(br#"{"prompt_id":7,}"#, &PROMPTS).unwrap_err();
        assert_eq!(
            rejection.message,
            "This line is not parseable as valid JSON: trailing comma at byte 16. Write one JSON object, whole, on \
             each line."
        );
    }

    /// Lines that are nearly right, so that the checks behind the syntax are reached.
    fn nearly_a_line() -> impl Strategy<Value = Vec<u8>> {
        const NAMES: &[&str] =
            &["prompt_id", "prompt", "custom_id", "method", "url", "body", "model", "stream", "x"];
        const VALUES: &[&str] = &[
            "7",
            "-0",
            "1e9",
            "\"\"",
            "\"a\"",
            "\"\\ud800\"",
            "null",
            "true",
            "[]",
            "{}",
            "{\"model\":1}",
            "{",
        ];
        let member = (prop::sample::select(NAMES), prop::sample::select(VALUES))
            .prop_map(|(name, value)| format!("\"{name}\":{value}"));
        prop::collection::vec(member, 0..6)
            .prop_map(|members| format!("{{{}}}", members.join(",")).into_bytes())
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_a_rejection_that_says_why(
            line in prop_oneof![prop::collection::vec(any::<u8>(), 0..60), nearly_a_line()],
            openai: bool, has_model: bool, strict: bool,
        ) {
            let format = if openai { Format::OpenAi } else { Format::Prompts };
            let rules = Rules { format, endpoint: Endpoint::Responses, has_model, strict };
            match parse(&line, &rules) {
                Ok(request) => {
                    prop_assert!(request.model.is_some() || has_model);
                    let found = RawId::find(&line, format).map(|id| id.raw().to_owned());
                    prop_assert_eq!(found.as_deref(), Some(request.id.raw()));
                }
                Err(rejection) => prop_assert!(!rejection.message.is_empty()),
            }
        }
    }
}
