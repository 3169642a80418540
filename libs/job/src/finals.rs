//! Which published files a manifest becomes, and the decision that fixes them.
//!
//! Pure arithmetic over sizes and checksums: reconciliation, the freeze, every finaliser and `verify` use this same code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    checksum::Crc32c,
    identity::{Identity, canonical_json, hex},
    layout::Kind,
    state::{EndingReason, Outcomes, Part},
    validation::RejectedFile,
};

/// Largest published file: object stores and tools handle 4 GiB well, and S3 copies at most 5 GB in one call.
pub const FINAL_SIZE_LIMIT: u64 = 4 << 30;

/// One published file: the concatenation of its sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Final {
    /// Its name below the output.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Index in the manifest of its first part; 0 when it has none.
    pub first_part: usize,
    /// How many parts of its kind follow from there.
    pub parts: usize,
    /// How many files of rejected records stand before the parts (errors only), continuing where the file before ended.
    pub rejected_files: usize,
    /// How many records it holds.
    pub lines: u64,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC32C, combined from those of its sources.
    pub crc32c: Crc32c,
    /// Hex SHA-256; empty until reconciliation has read the sources.
    pub sha256: String,
}

/// One source of a published file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// Its name below the output, as far as it is not a part's.
    pub name: SourceName<'a>,
    /// The generation to read.
    pub generation: &'a str,
    /// How many records it holds.
    pub lines: u64,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC32C.
    pub crc32c: Crc32c,
}

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceName<'a> {
    /// A file of rejected records.
    Rejected(&'a str),
    /// A row of the manifest, by its index.
    Part(usize, crate::layout::PartName),
}

impl Source<'_> {
    /// The source's name below the output.
    pub fn object_name(&self) -> String {
        match self.name {
            SourceName::Rejected(name) => name.to_owned(),
            SourceName::Part(_, name) => name.to_string(),
        }
    }
}

/// Every source of one kind in the order in which it is published: rejected files first, then parts as listed.
pub fn sources<'a>(
    kind: Kind,
    rejected: &'a [RejectedFile],
    parts: &'a [Part],
) -> impl Iterator<Item = Source<'a>> {
    let rejected = if kind == Kind::Errors { rejected } else { &[] };
    let rejected = rejected.iter().map(|file| Source {
        name: SourceName::Rejected(&file.name),
        generation: &file.generation,
        lines: file.lines,
        size_bytes: file.size_bytes,
        crc32c: file.crc32c,
    });
    let parts =
        parts.iter().enumerate().filter(move |(_, part)| part.name.kind == kind).map(|(index, part)| {
            Source {
                name: SourceName::Part(index, part.name),
                generation: &part.generation,
                lines: u64::from(part.lines),
                size_bytes: part.size_bytes,
                crc32c: part.crc32c,
            }
        });
    rejected.chain(parts)
}

/// The published files that a manifest becomes, results first, each at most `limit` bytes and cut between sources.
/// A kind without records has no file. `sha256` is left empty.
pub fn plan(rejected: &[RejectedFile], parts: &[Part], limit: u64) -> Vec<Final> {
    Kind::ALL.into_iter().flat_map(|kind| plan_kind(kind, rejected, parts, limit)).collect()
}

/// Whether a source stands first in a published file: there is none yet, or with it the last one, which has
/// `last_bytes` so far, would have more than `limit`.
pub fn begins_file(last_bytes: Option<u64>, source_bytes: u64, limit: u64) -> bool {
    last_bytes.is_none_or(|last_bytes| last_bytes.saturating_add(source_bytes) > limit)
}

fn plan_kind(kind: Kind, rejected: &[RejectedFile], parts: &[Part], limit: u64) -> Vec<Final> {
    let mut finals: Vec<Final> = Vec::new();
    for source in sources(kind, rejected, parts) {
        if begins_file(finals.last().map(|last| last.size_bytes), source.size_bytes, limit) {
            finals.push(Final {
                name: String::new(),
                kind,
                first_part: 0,
                parts: 0,
                rejected_files: 0,
                lines: 0,
                size_bytes: 0,
                crc32c: Crc32c::EMPTY,
                sha256: String::new(),
            });
        }
        let last = finals.last_mut().expect("one was pushed if there was none");
        match source.name {
            SourceName::Rejected(_) => last.rejected_files += 1,
            SourceName::Part(index, _) => {
                if last.parts == 0 {
                    last.first_part = index;
                }
                last.parts += 1;
            }
        }
        last.lines = last.lines.saturating_add(source.lines);
        last.crc32c = last.crc32c.followed_by(source.crc32c, source.size_bytes);
        last.size_bytes += source.size_bytes;
    }
    let count = finals.len();
    for (index, planned) in finals.iter_mut().enumerate() {
        planned.name = kind.final_name(index, count);
    }
    finals
}

/// The sources of each published file, in the order of `finals`.
pub fn sources_of<'a>(
    finals: &[Final],
    rejected: &'a [RejectedFile],
    parts: &'a [Part],
) -> Vec<Vec<Source<'a>>> {
    let mut result = Vec::with_capacity(finals.len());
    for kind in Kind::ALL {
        let mut remaining = sources(kind, rejected, parts);
        for one in finals.iter().filter(|one| one.kind == kind) {
            result.push(remaining.by_ref().take(one.rejected_files + one.parts).collect());
        }
    }
    result
}

/// Hex SHA-256 of what is decided: identity, ending, outcomes and the published files without their source ranges.
pub fn decision(
    identity: &Identity,
    ending: Option<EndingReason>,
    outcomes: &Outcomes,
    finals: &[Final],
) -> String {
    let finals: Vec<_> = finals
        .iter()
        .map(|one| {
            json!({
                "name": one.name,
                "kind": one.kind,
                "lines": one.lines,
                "size_bytes": one.size_bytes,
                "crc32c": one.crc32c,
                "sha256": one.sha256,
            })
        })
        .collect();
    let decided = json!({ "identity": identity, "ending": ending, "outcomes": outcomes, "finals": finals });
    hex(&Sha256::digest(canonical_json(&decided)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{incarnation::Epoch, layout::PartName};

    fn part(sequence: u32, kind: Kind, content: &[u8]) -> Part {
        Part {
            name: PartName { epoch: Epoch(1), sequence, kind },
            generation: "1".into(),
            lines: u32::try_from(content.len()).unwrap(),
            size_bytes: content.len() as u64,
            crc32c: Crc32c(crc32c::crc32c(content)),
        }
    }

    fn rejected(index: usize, content: &[u8]) -> RejectedFile {
        RejectedFile {
            name: format!("intake/a/rejected-{index:05}.jsonl"),
            generation: "1".to_owned(),
            lines: content.len() as u64,
            size_bytes: content.len() as u64,
            crc32c: Crc32c(crc32c::crc32c(content)),
        }
    }

    #[test]
    fn a_kind_without_records_has_no_file() {
        let finals = plan(&[], &[part(1, Kind::Results, b"aa")], FINAL_SIZE_LIMIT);
        assert_eq!(finals.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["results_final.jsonl"]);
        assert!(plan(&[], &[], FINAL_SIZE_LIMIT).is_empty());
    }

    proptest! {
        #[test]
        fn the_files_are_the_sources_in_order_cut_between_them(
            contents in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 1..20)), 0..30),
            refused in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..5),
            limit in 1u64..60,
        ) {
            let parts: Vec<_> = contents.iter().enumerate().map(|(index, (results, content))| {
                part(u32::try_from(index).unwrap(), if *results { Kind::Results } else { Kind::Errors }, content)
            }).collect();
            let files: Vec<_> = refused.iter().enumerate().map(|(index, content)| rejected(index, content)).collect();
            let finals = plan(&files, &parts, limit);
            let mut whole = [Vec::new(), Vec::new()];
            for (one, sources) in finals.iter().zip(sources_of(&finals, &files, &parts)) {
                let mut bytes = Vec::new();
                for source in &sources {
                    match source.name {
                        SourceName::Part(index, _) => bytes.extend_from_slice(&contents[index].1),
                        SourceName::Rejected(name) => {
                            let index = files.iter().position(|file| file.name == name).unwrap();
                            bytes.extend_from_slice(&refused[index]);
                        }
                    }
                }
                prop_assert_eq!(one.size_bytes, bytes.len() as u64);
                prop_assert_eq!(one.lines, bytes.len() as u64);
                prop_assert_eq!(one.crc32c, Crc32c(crc32c::crc32c(&bytes)));
                prop_assert!(one.size_bytes <= limit || sources.len() == 1);
                whole[usize::from(one.kind == Kind::Errors)].extend(bytes);
            }
            let results: Vec<u8> = contents.iter().filter(|(results, _)| *results).flat_map(|(_, content)| content.clone()).collect();
            let errors: Vec<u8> = refused.iter().cloned().chain(contents.iter().filter(|(results, _)| !results).map(|(_, content)| content.clone())).flatten().collect();
            prop_assert_eq!(&whole[0], &results);
            prop_assert_eq!(&whole[1], &errors);
        }
    }

    #[test]
    fn sizes_that_no_part_has_do_not_add_up_to_a_small_file() {
        let huge = Part { size_bytes: u64::MAX, ..part(1, Kind::Results, b"a") };
        let finals = plan(&[], &[huge, part(2, Kind::Results, b"bb")], FINAL_SIZE_LIMIT);
        assert_eq!(finals.iter().map(|one| one.size_bytes).collect::<Vec<_>>(), [u64::MAX, 2]);
    }

    #[test]
    fn the_decision_does_not_depend_on_how_the_sources_were_cut() {
        let identity = Identity::of(&crate::spec::tests::canonical());
        let outcomes = Outcomes { succeeded: 4, ..Outcomes::default() };
        let one = plan(&[], &[part(1, Kind::Results, b"aabb")], FINAL_SIZE_LIMIT);
        let two =
            plan(&[], &[part(1, Kind::Results, b"aa"), part(2, Kind::Results, b"bb")], FINAL_SIZE_LIMIT);
        assert_ne!(one, two);
        assert_eq!(decision(&identity, None, &outcomes, &one), decision(&identity, None, &outcomes, &two));
        let cancelled = decision(&identity, Some(EndingReason::Cancelled), &outcomes, &one);
        assert_ne!(cancelled, decision(&identity, None, &outcomes, &one));
    }
}
