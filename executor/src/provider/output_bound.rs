//! How many tokens a request allows its answer, which is what most providers take from a token limit when it arrives.
//! Pure.

use memchr::memmem;

/// The fields that bound an answer in the bodies of all dialects, with the quotes around them.
const FIELDS: [&[u8]; 4] =
    [b"\"max_tokens\"", b"\"max_completion_tokens\"", b"\"max_output_tokens\"", b"\"maxOutputTokens\""];
/// What all of them end with, and hardly any other word of a body.
const ENDING: &[u8] = b"okens\"";

/// The bound in the body of a request, found without parsing it a second time. Within a JSON string a quote has a
/// backslash before it, so no text of a prompt is taken for a field.
pub(super) fn output_bound(body: &[u8]) -> Option<u32> {
    memmem::find_iter(body, ENDING).find_map(|at| {
        let (name, value) = body.split_at(at + ENDING.len());
        FIELDS.iter().any(|field| name.ends_with(field)).then(|| number(value)).flatten()
    })
}

/// The number behind a field's name.
fn number(value: &[u8]) -> Option<u32> {
    let value = value.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let end = value.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(value.len());
    str::from_utf8(&value[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_found_under_each_of_its_names() {
        for (body, bound) in [
            (r#"{"model":"m","max_tokens":512,"messages":[]}"#, Some(512)),
            (r#"{"max_completion_tokens" : 7}"#, Some(7)),
            (r#"{"max_output_tokens":7}"#, Some(7)),
            (r#"{"generationConfig":{"maxOutputTokens":9}}"#, Some(9)),
            (r#"{"other_tokens":3,"max_tokens":512}"#, Some(512)),
            (r#"{"max_tokens":null}"#, None),
            (r#"{"max_tokens":-1}"#, None),
            (r#"{"max_tokens":99999999999}"#, None),
            (r#"{"messages":[{"content":"\"max_tokens\":5"}]}"#, None),
            ("{}", None),
            (r#""max_tokens""#, None),
        ] {
            assert_eq!(output_bound(body.as_bytes()), bound, "{body}");
        }
    }
}
