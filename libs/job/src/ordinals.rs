//! A set of lines, named by their ordinals, and its form in `state.json`: base64 of portable Roaring.

use std::io::Cursor;

use base64::{Engine, engine::general_purpose::STANDARD};
use penstock_batchfile::Ordinal;
use roaring::RoaringBitmap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A set of ordinals. Memory is that of a Roaring bitmap: at most one bit per line plus a small constant per 65,536.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OrdinalSet(RoaringBitmap);

impl OrdinalSet {
    /// The set with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a line in; `false` when it was there already.
    pub fn insert(&mut self, ordinal: Ordinal) -> bool {
        self.0.insert(ordinal.get())
    }

    /// Takes a line out; `false` when it was not there.
    pub fn remove(&mut self, ordinal: Ordinal) -> bool {
        self.0.remove(ordinal.get())
    }

    /// Whether a line is in the set.
    pub fn contains(&self, ordinal: Ordinal) -> bool {
        self.0.contains(ordinal.get())
    }

    /// How many lines are in the set.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many lines of `start..end` are in the set.
    pub fn count_within(&self, start: Ordinal, end: Ordinal) -> u64 {
        if start < end { self.0.range_cardinality(start.get()..end.get()) } else { 0 }
    }

    /// Whether the two sets share no line.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.0.is_disjoint(&other.0)
    }

    /// Adds every line of `other`.
    pub fn unite(&mut self, other: &Self) {
        self.0 |= &other.0;
    }

    /// The ordinals in rising order.
    pub fn iter(&self) -> impl Iterator<Item = Ordinal> {
        self.0.iter().map(Ordinal::new)
    }

    /// The ordinals of `0..end` that are in neither set, in rising order.
    pub fn missing_from<'a>(&'a self, other: &'a Self, end: Ordinal) -> impl Iterator<Item = Ordinal> + 'a {
        (0..end.get())
            .map(Ordinal::new)
            .filter(|ordinal| !self.contains(*ordinal) && !other.contains(*ordinal))
    }

    /// Portable Roaring bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.serialized_size());
        self.0.serialize_into(&mut bytes).expect("writing into memory does not fail");
        bytes
    }

    /// Reads portable Roaring bytes; every byte must belong to the set.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, std::io::Error> {
        let mut cursor = Cursor::new(bytes);
        let set = RoaringBitmap::deserialize_from(&mut cursor)?;
        if cursor.position() == bytes.len() as u64 {
            Ok(Self(set))
        } else {
            Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "bytes follow the set"))
        }
    }
}

impl FromIterator<Ordinal> for OrdinalSet {
    fn from_iter<I: IntoIterator<Item = Ordinal>>(ordinals: I) -> Self {
        Self(ordinals.into_iter().map(Ordinal::get).collect())
    }
}

impl Serialize for OrdinalSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.to_bytes()))
    }
}

impl<'de> Deserialize<'de> for OrdinalSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)?;
        Self::from_bytes(&bytes).map_err(D::Error::custom)
    }
}

impl JsonSchema for OrdinalSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OrdinalSet".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "contentEncoding": "base64",
            "description": "a portable Roaring bitmap of ordinals"
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_survives_its_text_form(ordinals in prop::collection::btree_set(any::<u32>(), 0..300)) {
            let set: OrdinalSet = ordinals.iter().copied().map(Ordinal::new).collect();
            let text = serde_json::to_string(&set).unwrap();
            prop_assert_eq!(&serde_json::from_str::<OrdinalSet>(&text).unwrap(), &set);
            prop_assert_eq!(set.len(), ordinals.len() as u64);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_read_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(set) = OrdinalSet::from_bytes(&bytes) {
                prop_assert_eq!(OrdinalSet::from_bytes(&set.to_bytes()).unwrap(), set);
            }
        }
    }

    #[test]
    fn bytes_behind_the_set_are_refused() {
        let mut bytes = OrdinalSet::from_iter([Ordinal::new(3)]).to_bytes();
        bytes.push(0);
        assert!(OrdinalSet::from_bytes(&bytes).is_err());
    }

    #[test]
    fn missing_lines_are_those_in_neither_set() {
        let completed: OrdinalSet = [0, 2].map(Ordinal::new).into_iter().collect();
        let rejected: OrdinalSet = [3].map(Ordinal::new).into_iter().collect();
        let missing: Vec<_> = completed.missing_from(&rejected, Ordinal::new(5)).map(Ordinal::get).collect();
        assert_eq!(missing, [1, 4]);
        assert_eq!(completed.count_within(Ordinal::new(1), Ordinal::new(3)), 1);
    }
}
