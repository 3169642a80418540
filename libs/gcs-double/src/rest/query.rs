//! The parameters behind the `?` of a URL.

use std::str::FromStr;

use crate::bucket::{Generation, Preconditions, Refusal};

/// The parameters, of which the service passes over those that it does not know.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn read(text: &str) -> Self {
        Self(url::form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let read = |value: &str| value.parse().map_err(|_| Refusal::invalid(format!("{name} {value:?}")));
        self.get(name).map(read).transpose()
    }

    pub(super) fn generation(&self) -> Result<Option<Generation>, Refusal> {
        Ok(self.number("generation")?.map(Generation))
    }

    pub(super) fn preconditions(&self) -> Result<Preconditions, Refusal> {
        Ok(Preconditions {
            generation_match: self.number("ifGenerationMatch")?,
            generation_not_match: self.number("ifGenerationNotMatch")?,
            metageneration_match: self.number("ifMetagenerationMatch")?,
            metageneration_not_match: self.number("ifMetagenerationNotMatch")?,
        })
    }
}
