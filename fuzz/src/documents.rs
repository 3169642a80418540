//! The stored documents: whoever reads one and writes it again has written the same.

use std::fmt::Debug;

use penstock_job::{
    Identity, OrdinalSet, Receipt, State, Validation,
    document::{self, Document},
    finals::{self, FINAL_SIZE_LIMIT, plan},
};

use crate::bounded;

/// More than the largest document of the corpus.
const LONGEST: usize = 64 << 10;

/// `state.json`.
pub fn state(data: &[u8]) {
    let Some(state) = reads_back::<State>(data) else { return };
    let outcomes = state.outcomes.with_rejected(state.input.rejected);
    assert!(outcomes.total() >= state.outcomes.total());
    let finals = plan(&[], &state.parts, FINAL_SIZE_LIMIT);
    let sources = finals::sources_of(&finals, &[], &state.parts);
    assert_eq!(sources.iter().map(Vec::len).sum::<usize>(), state.parts.len(), "each part is published once");
    for (one, sources) in finals.iter().zip(sources) {
        assert!(one.size_bytes <= FINAL_SIZE_LIMIT || sources.len() == 1);
    }
    for part in &state.parts {
        assert_eq!(part.name.to_string().parse().ok(), Some(part.name));
    }
}

/// `receipt.json`.
pub fn receipt(data: &[u8]) {
    let Some(receipt) = reads_back::<Receipt>(data) else { return };
    assert!(receipt.outcomes.total() >= receipt.outcomes.rejected);
    assert_eq!(receipt.ending, receipt.ending.reason().into());
}

/// `validation.json`.
pub fn validation(data: &[u8]) {
    let Some(validation) = reads_back::<Validation>(data) else { return };
    let text = serde_json::to_string(&validation.spec).expect("a spec is JSON");
    let spec = serde_json::from_str(&text).expect("what was written reads back");
    assert_eq!(Identity::of(&spec), Identity::of(&validation.spec), "a stored spec keeps its identity");
}

/// A set of ordinals in the portable format of Roaring bitmaps.
pub fn ordinal_set(data: &[u8]) {
    let Ok(set) = OrdinalSet::from_bytes(bounded(data, 4096)) else { return };
    let written = set.to_bytes();
    let again = OrdinalSet::from_bytes(&written).expect("what was written reads back");
    assert_eq!((&again, again.len()), (&set, set.len()));
    assert_eq!(again.to_bytes(), written);
    // A set of a few bytes may hold millions; its beginning shows whether it is in order.
    let first: Vec<_> = set.iter().take(5_000).collect();
    assert!(first.is_sorted_by(|left, right| left < right));
    assert!(first.iter().all(|ordinal| set.contains(*ordinal)));
    assert!(first.len() as u64 == set.len().min(5_000));
}

fn reads_back<D: Document + PartialEq + Debug>(data: &[u8]) -> Option<D> {
    let document: D = match document::read(bounded(data, LONGEST)) {
        Ok(document) => document,
        Err(error) => {
            assert!(error.to_string().contains(D::NAME), "{error}");
            return None;
        }
    };
    let written = document::write(&document);
    assert_eq!(written.iter().position(|byte| *byte == b'\n'), Some(written.len() - 1), "one line");
    let again: D = document::read(&written).expect("what was written reads back");
    assert_eq!(again, document);
    assert_eq!(document::write(&again), written);
    Some(document)
}
