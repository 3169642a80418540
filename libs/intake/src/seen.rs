//! Finds out, exactly but for false alarms and in bounded memory, which ids may stand on more than one line.
//!
//! Integers that lie densely are bits of a bitmap. Everything else becomes a key of 64 bits; sorted, equal keys lie
//! side by side. No id that repeats is missed; whether a suspect really repeats is decided by `repeated`, which compares
//! the ids themselves.

use std::hash::{DefaultHasher, Hash, Hasher};

use penstock_batchfile::DecodedId;
use roaring::{RoaringBitmap, RoaringTreemap};

use crate::{IntakeError, external_sort::ExternalSort};

/// Integers lie densely while there is one among so many values of their range: a bitmap then takes no more than two
/// bytes for each of them.
const DENSITY: u128 = 32;

/// The range is compared with at least so many ids, so that the first few of an input decide nothing.
const LEAST_COUNT: u128 = 1 << 16;

/// Makes the key of an id. Equal ids have equal keys; different ids rarely.
pub(crate) type KeyOf = fn(&DecodedId<'_>) -> u64;

/// The key of an id: an integer itself, modulo 2^64, or the hash of a text.
pub(crate) fn key_of(id: &DecodedId<'_>) -> u64 {
    match id {
        DecodedId::Integer(integer) => low_bits(*integer),
        DecodedId::Text(text) => {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low 64 bits are wanted")]
const fn low_bits(integer: i128) -> u64 {
    integer as u64
}

/// The keys of ids that may repeat. Memory is at most two bytes a key plus a constant of a few megabytes.
#[derive(Debug, Default)]
pub(crate) struct Suspects(RoaringBitmap);

impl Suspects {
    #[expect(clippy::cast_possible_truncation, reason = "half of the key suffices for a suspicion")]
    const fn place(key: u64) -> u32 {
        key as u32
    }

    fn insert(&mut self, key: u64) {
        self.0.insert(Self::place(key));
    }

    /// Whether an id with this key may repeat.
    pub(crate) fn contains(&self, key: u64) -> bool {
        self.0.contains(Self::place(key))
    }

    /// Whether all ids are different.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The ids of all lines so far.
#[derive(Debug)]
pub(crate) struct Seen {
    key_of: KeyOf,
    dense: Option<DenseIntegers>,
    keys: ExternalSort<u64>,
    suspects: Suspects,
}

impl Seen {
    /// No ids yet; `keys` sorts those that are no dense integers.
    pub(crate) fn new(key_of: KeyOf, keys: ExternalSort<u64>) -> Self {
        Self { key_of, dense: Some(DenseIntegers::default()), keys, suspects: Suspects::default() }
    }

    /// Takes the id of the next line.
    pub(crate) fn insert(&mut self, id: &DecodedId<'_>) -> Result<(), IntakeError> {
        let key = (self.key_of)(id);
        if let (Some(dense), DecodedId::Integer(integer)) = (&mut self.dense, id)
            && dense.admits(*integer)
        {
            if !dense.insert(*integer) {
                self.suspects.insert(key);
            }
            return Ok(());
        }
        for integer in self.dense.take().into_iter().flat_map(DenseIntegers::into_integers) {
            self.keys.push((self.key_of)(&DecodedId::Integer(integer)))?;
        }
        self.keys.push(key)
    }

    /// The ids that may repeat.
    pub(crate) fn finish(self) -> Result<Suspects, IntakeError> {
        let mut suspects = self.suspects;
        let mut previous = None;
        for key in self.keys.finish()? {
            let key = key?;
            if previous == Some(key) {
                suspects.insert(key);
            }
            previous = Some(key);
        }
        Ok(suspects)
    }
}

/// A set of integers whose range is bounded by their number, so that their low 64 bits tell them apart.
#[derive(Debug, Default)]
struct DenseIntegers {
    bits: RoaringTreemap,
    range: Option<(i128, i128)>,
    count: u128,
}

impl DenseIntegers {
    /// Counts one more, and tells whether the integers would still lie densely with it.
    fn admits(&mut self, integer: i128) -> bool {
        let (least, greatest) = self.range.unwrap_or((integer, integer));
        let (least, greatest) = (least.min(integer), greatest.max(integer));
        self.count += 1;
        let dense = greatest.abs_diff(least) < DENSITY * self.count.max(LEAST_COUNT);
        if dense {
            self.range = Some((least, greatest));
        }
        dense
    }

    fn insert(&mut self, integer: i128) -> bool {
        self.bits.insert(low_bits(integer))
    }

    fn into_integers(self) -> impl Iterator<Item = i128> {
        let least = self.range.map_or(0, |(least, _)| least);
        self.bits.into_iter().map(move |bits| least + i128::from(bits.wrapping_sub(low_bits(least))))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn suspects<'a>(ids: impl IntoIterator<Item = DecodedId<'a>>) -> (Suspects, bool) {
        let scratch = tempfile::tempdir().unwrap();
        let mut seen = Seen::new(key_of, ExternalSort::new(scratch.path(), 1 << 16));
        for id in ids {
            seen.insert(&id).unwrap();
        }
        let dense = seen.dense.is_some();
        (seen.finish().unwrap(), dense)
    }

    #[test]
    fn dense_integers_need_no_sort_and_different_ones_are_no_suspects() {
        let ids = (-30_000..30_000_i128).rev().map(|id| DecodedId::Integer(id * 30));
        let (suspects, dense) = suspects(ids);
        assert!(dense && suspects.is_empty());
    }

    #[test]
    fn integers_that_turn_out_to_lie_far_apart_are_still_compared_with_those_before() {
        let far = i128::from(u64::MAX);
        let ids = (0..100).chain([far, 7, far]).map(DecodedId::Integer);
        let (suspects, dense) = suspects(ids);
        assert!(!dense);
        assert!(suspects.contains(7) && suspects.contains(u64::MAX));
        assert!(!suspects.contains(8));
    }

    #[test]
    fn a_repeat_that_was_seen_while_integers_lay_densely_is_not_forgotten() {
        let ids = [-5, -5, i128::from(i64::MAX)].map(DecodedId::Integer);
        assert!(suspects(ids).0.contains(low_bits(-5)));
    }

    #[test]
    fn dense_integers_come_back_out_of_the_bitmap_as_they_went_in() {
        let middle = i128::from(i64::MAX);
        let mut dense = DenseIntegers::default();
        for integer in [middle, middle - 3, middle + 9] {
            assert!(dense.admits(integer) && dense.insert(integer));
        }
        let mut integers: Vec<_> = dense.into_integers().collect();
        integers.sort_unstable();
        assert_eq!(integers, [middle - 3, middle, middle + 9]);
    }

    #[test]
    fn equal_texts_are_suspects_and_others_are_not() {
        let text = |text| DecodedId::Text(Cow::Borrowed(text));
        let (suspects, _) = suspects([text("a"), text("b"), text("a")]);
        assert!(suspects.contains(key_of(&text("a"))) && !suspects.contains(key_of(&text("b"))));
    }
}
