//! Preconditions: the versions that an object must have for a request to be carried out.

use super::{Object, Refusal};

/// The conditions of one request; all must hold.
#[expect(clippy::struct_field_names, reason = "the names are those of the API")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Preconditions {
    /// The generation that is live; 0 says that there is none.
    pub(crate) generation_match: Option<i64>,
    /// A generation that is not live; 0 says that there is one.
    pub(crate) generation_not_match: Option<i64>,
    /// The metageneration of the live generation.
    pub(crate) metageneration_match: Option<i64>,
    /// Not the metageneration of the live generation.
    pub(crate) metageneration_not_match: Option<i64>,
}

impl Preconditions {
    /// Whether they hold for what is live.
    pub(super) fn check(&self, live: Option<&Object>) -> Result<(), Refusal> {
        let generation = live.map_or(0, |object| object.generation.0);
        let metageneration = live.map_or(0, |object| object.metageneration);
        let differs = |wanted: Option<i64>, actual| wanted.is_some_and(|wanted| wanted != actual);
        let equals = |unwanted: Option<i64>, actual| unwanted == Some(actual);
        if differs(self.generation_match, generation) || differs(self.metageneration_match, metageneration) {
            return Err(Refusal::ConditionNotMet);
        }
        let none_live = live.is_none() && self.generation_not_match.is_some();
        let unchanged = equals(self.generation_not_match, generation)
            || equals(self.metageneration_not_match, metageneration);
        if none_live || unchanged {
            return Err(Refusal::NotModified);
        }
        Ok(())
    }
}
