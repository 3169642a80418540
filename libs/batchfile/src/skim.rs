//! Finds its way in JSON that is known to be well-formed, without checking it again: what is not asked for is passed
//! over, strings at the speed of memory.
//!
//! Owns the second look at a text. On a text that is not well-formed it finds nothing or something, and never fails in
//! another way. Whoever has not seen the text checked reads it with `members`.

use std::ops::ControlFlow;

use memchr::memchr2;

use crate::json::{string_content, text_of};

/// The members with these names, each as its JSON text; the first where a name stands twice. `None`: no object. What stands
/// behind the last one asked for is not looked at.
pub fn members<'a, const N: usize>(object: &'a str, names: &[&str; N]) -> Option<[Option<&'a str>; N]> {
    let mut found = [None; N];
    let mut missing = N;
    each_member(object, |name, value| {
        if let Some(absent @ None) = place(names, name).map(|index| &mut found[index]) {
            *absent = Some(value);
            missing -= 1;
        }
        if missing > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Some(found)
}

/// Visits the members until the visitor has seen enough: name, in its quotes, and value. `None`: no object.
pub(crate) fn each_member<'a>(
    object: &'a str,
    mut visit: impl FnMut(&'a str, &'a str) -> ControlFlow<()>,
) -> Option<()> {
    let mut skim = Skim { text: object, at: 0 };
    skim.expect(b'{')?;
    while skim.another(b'}')? {
        let name = skim.value()?;
        skim.expect(b':')?;
        if visit(name, skim.value()?).is_break() {
            break;
        }
    }
    Some(())
}

/// Which of `names` a member has, whose name is given as it stands, in its quotes.
pub(crate) fn place(names: &[&str], name: &str) -> Option<usize> {
    let index_of = |name: &str| names.iter().position(|known| *known == name);
    let plain = string_content(name)?;
    let found = index_of(plain);
    if found.is_none() && plain.contains('\\') { index_of(&text_of(name)?) } else { found }
}

/// The elements of an array, each as its JSON text. They end at the first place that is none.
pub fn elements(array: &str) -> impl Iterator<Item = &str> {
    let mut skim = Skim { text: array, at: 0 };
    let mut is_open = skim.expect(b'[').is_some();
    std::iter::from_fn(move || {
        is_open = is_open && skim.another(b']').unwrap_or(false);
        if is_open { skim.value() } else { None }
    })
}

/// The next end of a string, or of a part of it without escapes, at `from` or behind it.
///
/// Most strings are names, which end within some words; beginning a search by vectors takes longer than that.
fn quote_or_backslash(bytes: &[u8], from: usize) -> Option<usize> {
    const WORDS: usize = 4;
    let mut at = from;
    for _ in 0..WORDS {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) else { break };
        let word = u64::from_le_bytes(*word);
        let found = zero_bytes(word ^ each_byte(b'"')) | zero_bytes(word ^ each_byte(b'\\'));
        if found != 0 {
            return Some(at + (found.trailing_zeros() / u8::BITS) as usize);
        }
        at += size_of::<u64>();
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|found| at + found)
}

pub(crate) const fn each_byte(byte: u8) -> u64 {
    u64::from_le_bytes([byte; size_of::<u64>()])
}

/// Has the highest bit of the first byte that is zero set, and no bit below it.
pub(crate) const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(each_byte(1)) & !word & each_byte(0x80)
}

/// Where the white space that may begin at `at` ends.
#[inline]
pub(crate) fn behind_blanks(text: &str, at: usize) -> usize {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let mut end = at;
    while text.as_bytes().get(end).is_some_and(is_blank) {
        end += 1;
    }
    end
}

/// A place in a text.
struct Skim<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Skim<'a> {
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.at = behind_blanks(self.text, self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// Whether one more member or element comes before the end, which is passed over as commas are.
    fn another(&mut self, end: u8) -> Option<bool> {
        let mut next = self.peek()?;
        if next == b',' {
            self.at += 1;
            next = self.peek()?;
        }
        Some(next != end)
    }

    /// Passes over a value and returns its text.
    fn value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let begin = self.at;
        match first {
            b'"' => {
                self.at += 1;
                self.string()?;
            }
            b'{' | b'[' => self.nested()?,
            _ => {
                let rest = &self.text.as_bytes()[begin..];
                let is_end =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\n' | b'\r');
                self.at += rest.iter().position(is_end).unwrap_or(rest.len());
            }
        }
        self.text.get(begin..self.at).filter(|value| !value.is_empty())
    }

    /// Passes over a string, from behind its opening quote.
    fn string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        loop {
            self.at = quote_or_backslash(bytes, self.at)?;
            let byte = bytes[self.at];
            self.at += 1;
            if byte == b'"' {
                return Some(());
            }
            self.at += 1;
        }
    }

    /// Passes over an object or an array, from its opening bracket.
    fn nested(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        loop {
            let byte = *bytes.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => self.string()?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;
    use crate::{Json, members::Members};

    #[test]
    fn members_are_found_in_any_order_and_kept_as_written() {
        let text = r#" {"x":[1, "]"],"body":{ "a" : 1e2 , "b":["\"}"]},"i\u0064":null , "body":7,"n":-1.5} "#;
        let found = members(text, &["id", "body", "n", "none"]).unwrap();
        assert_eq!(found, [Some("null"), Some(r#"{ "a" : 1e2 , "b":["\"}"]}"#), Some("-1.5"), None]);
        assert_eq!(members("{}", &["id"]), Some([None]));
    }

    #[test]
    fn elements_come_one_after_another() {
        let found: Vec<_> = elements(r#" [1, "a,]" , [2,[3]] ,{"x":[]},null ] "#).collect();
        assert_eq!(found, ["1", r#""a,]""#, "[2,[3]]", r#"{"x":[]}"#, "null"]);
        assert_eq!(elements("[]").count(), 0);
        assert_eq!(elements("{}").count(), 0);
    }

    #[test]
    fn deep_nesting_does_not_exhaust_the_stack() {
        let text = format!(r#"{{"x":{}{}}}"#, "[".repeat(500_000), "]".repeat(500_000));
        assert_eq!(members(&text, &["x"]).unwrap()[0].map(str::len), Some(1_000_000));
    }

    /// JSON of many shapes, with white space and escapes where they may stand.
    pub(crate) fn json() -> impl Strategy<Value = String> {
        let blank = "[ \t\n\r]{0,2}";
        let scalar = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            any::<f64>()
                .prop_filter("finite", |number| number.is_finite())
                .prop_map(|number| format!("{number:e}")),
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
            Just(r#""\u00e9\\\"{[""#.to_owned()),
        ];
        scalar.prop_recursive(4, 32, 5, move |inner| {
            let name = prop_oneof![Just("id".to_owned()), Just(r"i\u0064".to_owned()), "[a-d]{0,2}"];
            let member = (name, blank, inner.clone(), blank).prop_map(|(name, before, value, after)| {
                format!("{before}\"{name}\"{after}:{before}{value}{after}")
            });
            prop_oneof![
                prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
                (prop::collection::vec(inner, 0..5), blank).prop_map(|(elements, blank)| format!(
                    "[{}]",
                    elements.join(&format!("{blank},{blank}"))
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_well_formed_is_read_as_the_parser_reads_it(text in json()) {
            let parsed = Members::<3>::parse(&text, &["id", "a", "b"]).ok();
            let expected = parsed.map(|members| members.values.map(|value| value.map(Json::get)));
            prop_assert_eq!(members(&text, &["id", "a", "b"]), expected);
            let parsed: Vec<&RawValue> = serde_json::from_str(&text).unwrap_or_default();
            let expected: Vec<&str> = parsed.into_iter().map(RawValue::get).collect();
            prop_assert_eq!(elements(&text).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn a_string_ends_where_a_search_byte_by_byte_finds_it(
            bytes in prop::collection::vec(prop_oneof![20 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\')], 0..100),
            from in 0..100_usize,
        ) {
            let behind = bytes.get(from..).unwrap_or_default();
            let expected = behind.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(quote_or_backslash(&bytes, from), expected.map(|found| from + found));
        }

        #[test]
        fn no_text_is_a_reason_to_panic(text in r#"([\[\]{}:,"\\ a1é]|null){0,40}"#) {
            let _ = members(&text, &["a"]);
            prop_assert!(elements(&text).count() <= text.len());
        }
    }
}
