//! Patterns of names: text in which `*` stands for any bytes.

use serde::{Deserialize, Serialize};

/// A pattern such as `out/*/parts/*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Any text is a pattern.
    pub fn parse(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Whether a name fits it.
    pub fn fits(&self, name: &str) -> bool {
        let Some((start, rest)) = self.0.split_once('*') else { return self.0 == name };
        let Some(mut name) = name.strip_prefix(start) else { return false };
        let mut parts: Vec<_> = rest.split('*').collect();
        let end = parts.pop().unwrap_or_default();
        for part in parts {
            let Some(found) = name.find(part) else { return false };
            name = &name[found + part.len()..];
        }
        name.ends_with(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_bytes() {
        for (pattern, name, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "a/b", true),
            ("*.json", "a/b.json", true),
            ("a*a", "a", false),
            ("a*b*c", "a/b/b/c", true),
            ("a*b*c", "a/c", false),
            ("*/parts/*", "out/parts/1", true),
        ] {
            assert_eq!(Pattern::parse(pattern).fits(name), fits, "{pattern} {name}");
        }
    }
}
