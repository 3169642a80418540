//! Checks that a text is a JSON object and finds members of it, in one pass.
//!
//! Owns the first look at a text that is mostly well-formed and must be both judged and read. It says no to what is nested
//! deeper than [`DEEPEST`] levels too, so whoever must know asks the parser after a no; a yes is the parser's yes. Its speed
//! beside the parser's, which needs a second look for the members, is in `benches/throughput.rs`.

use crate::skim::{behind_blanks, each_byte, place, zero_bytes};

/// How many objects and arrays may stand inside of one another in a member's value.
const DEEPEST: u32 = u64::BITS - 1;

/// The object that is all of `text` but for white space around it, and its members with these names, each as its text; the
/// first where a name stands twice.
pub(crate) fn object<'a, const N: usize>(
    text: &'a str,
    names: &[&str; N],
) -> Option<(&'a str, [Option<&'a str>; N])> {
    let mut found = [None; N];
    let object = each_member(text, |name, value| {
        if let Some(absent @ None) = place(names, name).map(|index| &mut found[index]) {
            *absent = Some(value);
        }
        Some(())
    })?;
    Some((object, found))
}

/// The object that is all of `text` but for white space around it, after `visit` has seen the members: name, in its quotes,
/// and value. When it returns `None` nothing more is looked at.
pub(crate) fn each_member<'a>(
    text: &'a str,
    mut visit: impl FnMut(&'a str, &'a str) -> Option<()>,
) -> Option<&'a str> {
    let mut scan = Scan { text, at: 0 };
    scan.expect(b'{')?;
    let begin = scan.at - 1;
    let mut is_open = scan.peek()? != b'}';
    while is_open {
        let name = scan.name()?;
        scan.peek()?;
        let start = scan.at;
        scan.value()?;
        visit(name, text.get(start..scan.at)?)?;
        is_open = match scan.peek()? {
            b',' => true,
            b'}' => false,
            _ => return None,
        };
        scan.at += usize::from(is_open);
    }
    scan.at += 1;
    let object = text.get(begin..scan.at)?;
    scan.peek().is_none().then_some(object)
}

/// A place in a text, behind which everything was checked.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

/// What encloses a value: a bit for each object (1) and array (0) around it, the innermost lowest, under a bit that ends
/// them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Enclosing(u64);

impl Enclosing {
    const NOTHING: Self = Self(1);

    fn within(self, is_object: bool) -> Option<Self> {
        (self.0 >> DEEPEST == 0).then_some(Self(self.0 << 1 | u64::from(is_object)))
    }

    fn is_object(self) -> bool {
        self.0 & 1 == 1
    }

    fn outer(self) -> Self {
        Self(self.0 >> 1)
    }
}

impl<'a> Scan<'a> {
    /// The next byte that is not white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        self.at = behind_blanks(self.text, self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// Passes over a member's name and its colon; the name as it stands, in its quotes.
    fn name(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let begin = self.at - 1;
        self.string()?;
        let name = self.text.get(begin..self.at);
        self.expect(b':')?;
        name
    }

    /// Passes over a value with all that is inside of it.
    fn value(&mut self) -> Option<()> {
        let mut around = Enclosing::NOTHING;
        loop {
            let first = self.peek()?;
            self.at += 1;
            match first {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    let is_object = first == b'{';
                    // The closing bracket is two behind the opening one.
                    if self.peek()? != first + 2 {
                        around = around.within(is_object)?;
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                    self.at += 1;
                }
                b't' => self.rest("rue")?,
                b'f' => self.rest("alse")?,
                b'n' => self.rest("ull")?,
                b'-' | b'0'..=b'9' => self.number(first)?,
                _ => return None,
            }
            loop {
                if around == Enclosing::NOTHING {
                    return Some(());
                }
                let next = self.peek()?;
                self.at += 1;
                match (next, around.is_object()) {
                    (b',', true) => {
                        self.name()?;
                        break;
                    }
                    (b',', false) => break,
                    (b'}', true) | (b']', false) => around = around.outer(),
                    _ => return None,
                }
            }
        }
    }

    /// Passes over a string, from behind its opening quote.
    fn string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        loop {
            self.at = plain_end(bytes, self.at)?;
            let special = bytes[self.at];
            self.at += 1;
            match special {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    /// Passes over an escape, from behind its backslash.
    fn escape(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let length = match *bytes.get(self.at)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 1,
            b'u' if bytes.get(self.at + 1..self.at + 5)?.iter().all(u8::is_ascii_hexdigit) => 5,
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    /// Passes over the rest of a number that begins with `first`.
    fn number(&mut self, first: u8) -> Option<()> {
        let first = if first == b'-' { self.take()? } else { first };
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.is_at(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if self.is_at(b'e') || self.is_at(b'E') {
            self.at += 1;
            if self.is_at(b'+') || self.is_at(b'-') {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Some(())
    }

    fn digits(&mut self) {
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Option<()> {
        self.take().filter(u8::is_ascii_digit)?;
        self.digits();
        Some(())
    }

    fn is_at(&self, byte: u8) -> bool {
        self.text.as_bytes().get(self.at) == Some(&byte)
    }

    fn take(&mut self) -> Option<u8> {
        let byte = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Passes over what a word must go on with.
    fn rest(&mut self, word: &str) -> Option<()> {
        self.text.as_bytes().get(self.at..)?.starts_with(word.as_bytes()).then(|| self.at += word.len())
    }
}

/// The next byte at `from` or behind it that does not stand for itself in a string: its end, a backslash, or one that no
/// string may have.
///
/// Names and words end soon, texts do not: first word by word, then by blocks that the compiler makes vectors of.
fn plain_end(bytes: &[u8], from: usize) -> Option<usize> {
    const WORDS: usize = 4;
    const BLOCK: usize = 32;
    let mut at = from;
    for _ in 0..WORDS {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) else { break };
        let word = u64::from_le_bytes(*word);
        let below_space = word.wrapping_sub(each_byte(b' ')) & !word & each_byte(0x80);
        let found = below_space | zero_bytes(word ^ each_byte(b'"')) | zero_bytes(word ^ each_byte(b'\\'));
        if found != 0 {
            return Some(at + (found.trailing_zeros() / u8::BITS) as usize);
        }
        at += size_of::<u64>();
    }
    let is_special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        if block.iter().fold(false, |found, byte| found | is_special(byte)) {
            break;
        }
        at += BLOCK;
    }
    bytes.get(at..)?.iter().position(is_special).map(|found| at + found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Json, members::Members, skim::tests::json};

    const NAMES: &[&str; 3] = &["id", "a", "b"];

    /// What the parser makes of the same.
    fn parsed(text: &str) -> Option<(&str, [Option<&str>; 3])> {
        let members = Members::<3>::parse(text, NAMES).ok()?;
        Some((text.trim_matches([' ', '\t', '\n', '\r']), members.values.map(|value| value.map(Json::get))))
    }

    #[test]
    fn an_object_is_read_and_kept_as_written() {
        let text =
            "\n {\"x\":[1, \"]\"],\"b\":{ \"a\" : 1e2 , \"b\":[\"\\\"}\"]},\"i\\u0064\":null , \"b\":7} ";
        let (object, [id, a, b]) = object(text, NAMES).unwrap();
        assert_eq!(object, text.trim());
        assert_eq!([id, a, b], [Some("null"), None, Some("{ \"a\" : 1e2 , \"b\":[\"\\\"}\"]}")]);
    }

    #[test]
    fn what_is_no_object_or_damaged_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[]",
            "1",
            "null",
            "\"a\"",
            "{}x",
            "{} {}",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "{\"a\":[1,]}",
            "{\"a\":[1 2]}",
            "{\"a\":[}",
            "{\"a\":[1}}",
            "{\"a\":{\"b\":1]}",
            "{\"a\":tru}",
            "{\"a\":nul",
            "{\"a\":01}",
            "{\"a\":-}",
            "{\"a\":1.}",
            "{\"a\":.5}",
            "{\"a\":1e}",
            "{\"a\":1e+}",
            "{\"a\":+1}",
            "{\"a\":\"\n\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\u12g4\"}",
            "{\"a\":\"\\u123",
            "{\"a\":\"",
            "{\"a\":\"\\",
            "{\"a\":'b'}",
            "{\"\u{1}\":1}",
        ] {
            assert!(Members::<3>::parse(text, NAMES).is_err(), "{text}");
            assert_eq!(object(text, NAMES), None, "{text}");
        }
    }

    #[test]
    fn nesting_is_followed_as_deep_as_it_says() {
        for brackets in [["[", "]"], ["{\"a\":", "}"]] {
            let nested = |levels: u32| {
                let levels = levels as usize;
                let [open, close] = brackets;
                format!("{{\"a\":{}1{}}}", open.repeat(levels), close.repeat(levels))
            };
            assert!(object(&nested(DEEPEST), NAMES).is_some());
            assert!(object(&nested(DEEPEST + 1), NAMES).is_none());
        }
    }

    proptest! {
        #[test]
        fn what_is_well_formed_is_read_as_the_parser_reads_it(text in json()) {
            prop_assert_eq!(object(&text, NAMES), parsed(&text));
        }

        #[test]
        fn what_somebody_damaged_is_accepted_only_if_the_parser_accepts_it(
            text in json(),
            at in any::<prop::sample::Index>(),
            put in r#"[\[\]{}:,"\\ a1é.eE+0-]|\x00|\n|null|"#,
            drop in 0..3_usize,
        ) {
            let start = text.floor_char_boundary(at.index(text.len() + 1));
            let end = text.ceil_char_boundary((start + drop).min(text.len()));
            let damaged = format!("{}{put}{}", &text[..start], &text[end..]);
            prop_assert_eq!(object(&damaged, NAMES), parsed(&damaged));
        }

        #[test]
        fn a_plain_run_ends_where_a_search_byte_by_byte_finds_it(
            bytes in prop::collection::vec(prop_oneof![40 => b' '.., 1 => any::<u8>()], 0..200),
            from in 0..200_usize,
        ) {
            let behind = bytes.get(from..).unwrap_or_default();
            let expected = behind.iter().position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(plain_end(&bytes, from), expected.map(|found| from + found));
        }
    }
}
