//! The lines of a round: both formats, with ids as odd as they may be, invalid lines of several kinds, and blank ones.

use fastrand::Rng;
use penstock_batchfile::Format;
use serde_json::{Value, json};

use crate::witness::Line;

/// What the double logs of a prompt at most.
const LOGGED_BYTES: usize = 200;

/// An input file and what the witness must know of it.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) text: Vec<u8>,
    /// The lines that are not blank.
    pub(crate) lines: Vec<Line>,
}

/// Draws a file of so many lines that are not blank. The first one is valid, since it decides format and endpoint.
pub(crate) fn draw(random: &mut Rng, format: Format, count: usize) -> Input {
    let invalid_in_100 = random.usize(0..15);
    let mut input = Input { text: Vec::new(), lines: Vec::with_capacity(count) };
    if random.u8(0..8) == 0 {
        input.text.extend("\u{feff}".as_bytes());
    }
    for ordinal in 0..count {
        while random.u8(0..30) == 0 {
            input.text.extend(random.choice([&b"\n"[..], b"\r\n", b"  \t\n"]).unwrap());
        }
        let (text, line) = if ordinal > 0 && random.usize(0..100) < invalid_in_100 {
            invalid(random, format, ordinal, &input.lines[0])
        } else {
            valid(random, format, ordinal)
        };
        input.text.extend(text);
        input.lines.push(line);
        let is_last = ordinal + 1 == count;
        if !is_last || random.bool() {
            input.text.extend(if random.u8(0..20) == 0 { &b"\r\n"[..] } else { b"\n" });
        }
    }
    input
}

fn valid(random: &mut Rng, format: Format, ordinal: usize) -> (Vec<u8>, Line) {
    let token = id(random, format, ordinal);
    let prompt = prompt(random, ordinal);
    let text = match format {
        Format::Prompts => format!(r#"{{"prompt_id":{token},"prompt":{}}}"#, json!(prompt)),
        Format::OpenAi => {
            let model = random.choice([r#""model":"one","#, r#""model":"two","#, ""]).unwrap();
            let messages = json!([{ "role": "user", "content": prompt }]);
            format!(r#"{{"custom_id":{token},"body":{{{model}"messages":{messages}}}}}"#)
        }
    };
    let logged = prompt.floor_char_boundary(LOGGED_BYTES);
    let id = serde_json::from_str(&token).unwrap();
    (text.into_bytes(), Line { id, prompt: prompt[..logged].to_owned(), rejected: false })
}

fn invalid(random: &mut Rng, format: Format, ordinal: usize, first: &Line) -> (Vec<u8>, Line) {
    let name = match format {
        Format::Prompts => "prompt_id",
        Format::OpenAi => "custom_id",
    };
    let token = id(random, format, ordinal);
    let own: Value = serde_json::from_str(&token).unwrap();
    let (text, id) = match random.u8(0..6) {
        0 => (b"this is no JSON".to_vec(), Value::Null),
        1 => (format!(r#"{{"{name}":{token},"prompt":"cut o"#).into_bytes(), Value::Null),
        2 => (b"{\"prompt\":\"\xff\xfe\"}".to_vec(), Value::Null),
        3 => (format!(r#"{{"{name}":{token}}}"#).into_bytes(), own),
        4 => (format!(r#"{{"{name}":[7],"prompt":"a"}}"#).into_bytes(), Value::Null),
        _ => {
            // The same id as the first line's.
            let (text, line) = valid(random, format, ordinal);
            let text = String::from_utf8(text).unwrap();
            let theirs = first.id.to_string();
            let text = text.replacen(&token_of(&text, name), &theirs, 1);
            return (text.into_bytes(), Line { id: first.id.clone(), rejected: true, ..line });
        }
    };
    (text, Line { id, prompt: String::new(), rejected: true })
}

/// The token of the id, with which each valid line begins.
fn token_of(text: &str, name: &str) -> String {
    let rest = &text[name.len() + 4..];
    let mut tokens = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    tokens.next().unwrap().unwrap();
    rest[..tokens.byte_offset()].to_owned()
}

/// An id that no other ordinal gets, as a JSON token.
fn id(random: &mut Rng, format: Format, ordinal: usize) -> String {
    let number = u32::try_from(ordinal).unwrap();
    match (format, random.u8(0..6)) {
        (Format::Prompts, 0) => (i64::MIN + i64::from(number)).to_string(),
        (Format::Prompts, 1) => (u64::MAX - u64::from(number)).to_string(),
        (Format::Prompts, 2) => (-1 - i64::from(number)).to_string(),
        (Format::Prompts, _) => number.to_string(),
        (Format::OpenAi, 0) => format!(r#""Größe 水 🦀-{ordinal}""#),
        (Format::OpenAi, 1) => format!(r#""\u0061\"\\\/\n\u65e5-{ordinal}""#),
        (Format::OpenAi, 2) => format!(r#""{}-{ordinal}""#, "long".repeat(random.usize(50..500))),
        (Format::OpenAi, 3) => format!(r#"" {{}},[] -{ordinal}""#),
        (Format::OpenAi, _) => format!(r#""line-{ordinal}""#),
    }
}

/// A prompt that begins like no other.
fn prompt(random: &mut Rng, ordinal: usize) -> String {
    match random.u8(0..20) {
        0 => format!("question {ordinal}: \"Wie\tgroß\nist 水?\" \\ 🦀"),
        1 => format!("question {ordinal}: {}", "many words ".repeat(random.usize(20..6_000))),
        _ => format!("question {ordinal}"),
    }
}
