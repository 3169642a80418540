//! The state against a table of what the real service does, and against a model of a few lines.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::checksum::{Checksums, Crc32c, ExpectedChecksums, Md5};

fn bucket() -> BucketName {
    BucketName::parse("bucket").unwrap()
}

fn name(text: &str) -> ObjectName {
    ObjectName::parse(text).unwrap()
}

fn at(seconds: u64) -> Moment {
    Moment::from_micros(seconds * 1_000_000)
}

fn new(content: &[u8]) -> NewObject {
    NewObject {
        content: Bytes::copy_from_slice(content).into(),
        checksums: Checksums {
            crc32c: Crc32c(crc32c::crc32c(content)),
            md5: Some(Md5(md5::compute(content).0)),
        },
        expected: ExpectedChecksums::default(),
        metadata: Metadata::default(),
        component_count: None,
    }
}

fn source(text: &str) -> Source {
    Source { name: name(text), generation: None, generation_match: None }
}

fn composition(sources: Vec<Source>) -> Composition {
    Composition { sources, metadata: Metadata::default(), expected: ExpectedChecksums::default() }
}

fn buckets(interval: Duration) -> Buckets {
    with(Rules { mutation_interval: interval, ..Rules::default() })
}

fn with(rules: Rules) -> Buckets {
    let mut buckets = Buckets::new(rules);
    buckets.create(bucket(), at(0)).unwrap();
    buckets
}

fn generation_match(generation: i64) -> Preconditions {
    Preconditions { generation_match: Some(generation), ..Preconditions::default() }
}

/// The kind of a refusal.
fn kind<T>(result: Result<T, Refusal>) -> Option<Kind> {
    result.err().map(|refusal| refusal.kind())
}

#[test]
fn preconditions_hold_or_not_as_the_service_documents_them() {
    let mut buckets = buckets(Duration::ZERO);
    let any = Preconditions::default();
    let object = buckets.put(&bucket(), &name("a"), new(b"1"), &any, at(1)).unwrap();
    let live = object.generation.0;
    assert_eq!((live, object.metageneration), (1_000_000, 1));
    let not_match = |generation| Preconditions { generation_not_match: Some(generation), ..any };
    let meta = |metageneration| Preconditions { metageneration_match: Some(metageneration), ..any };
    let meta_not = |metageneration| Preconditions { metageneration_not_match: Some(metageneration), ..any };
    let failed = Some(Kind::ConditionNotMet);
    // Each with what a read and a write of the live object say, and of one that is not there.
    for (conditions, read, write, write_absent) in [
        (any, None, None, None),
        (generation_match(live), None, None, failed),
        (generation_match(live + 1), failed, failed, failed),
        (generation_match(0), failed, failed, None),
        (not_match(live), Some(Kind::NotModified), failed, failed),
        (not_match(live + 1), None, None, failed),
        (not_match(0), None, None, failed),
        (meta(1), None, None, failed),
        (meta(2), failed, failed, failed),
        (meta_not(1), Some(Kind::NotModified), failed, None),
        (meta_not(2), None, None, None),
    ] {
        assert_eq!(kind(buckets.get(&bucket(), &name("a"), None, &conditions)), read, "{conditions:?}");
        assert_eq!(kind(buckets.check(&bucket(), &name("a"), &conditions)), write, "{conditions:?}");
        assert_eq!(kind(buckets.check(&bucket(), &name("b"), &conditions)), write_absent, "{conditions:?}");
    }
}

#[test]
fn a_generation_that_is_not_live_is_not_found() {
    let mut buckets = buckets(Duration::ZERO);
    let any = Preconditions::default();
    let first = buckets.put(&bucket(), &name("a"), new(b"1"), &any, at(1)).unwrap().generation;
    // The clock may stand still or go back; generations do not.
    let second = buckets.put(&bucket(), &name("a"), new(b"2"), &any, at(0)).unwrap().generation;
    assert!(first < second);
    let found = |buckets: &Buckets, generation| kind(buckets.get(&bucket(), &name("a"), generation, &any));
    assert_eq!(found(&buckets, Some(first)), Some(Kind::NotFound));
    assert_eq!(found(&buckets, Some(second)), None);
    assert_eq!(kind(buckets.delete(&bucket(), &name("a"), Some(first), &any, at(2))), Some(Kind::NotFound));
    buckets.delete(&bucket(), &name("a"), Some(second), &any, at(2)).unwrap();
    assert_eq!(found(&buckets, None), Some(Kind::NotFound));
    let nowhere = BucketName::parse("nowhere").unwrap();
    assert_eq!(kind(buckets.put(&nowhere, &name("a"), new(b""), &any, at(3))), Some(Kind::NotFound));
    assert_eq!(kind(buckets.create(bucket(), at(3))), Some(Kind::Conflict));
}

#[test]
fn what_is_retained_is_neither_deleted_nor_overwritten_before_its_time() {
    let mut buckets = with(Rules { retention: Duration::from_secs(10), ..Rules::default() });
    let any = Preconditions::default();
    let moment = |seconds: u64| Moment::from_micros(seconds * 1_000_000);
    buckets.put(&bucket(), &name("a"), new(b"1"), &any, moment(5)).unwrap();
    let put = |buckets: &mut Buckets, seconds| {
        kind(buckets.put(&bucket(), &name("a"), new(b"2"), &any, moment(seconds)))
    };
    assert_eq!(put(&mut buckets, 14), Some(Kind::Retained));
    let refused = buckets.delete(&bucket(), &name("a"), None, &any, moment(14)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Object 'bucket/a' is subject to bucket's retention policy or object retention and cannot be deleted or \
         overwritten until 1970-01-01T00:00:15Z"
    );
    assert_eq!(put(&mut buckets, 15), None);
    // The new generation has a time of its own.
    assert_eq!(put(&mut buckets, 24), Some(Kind::Retained));
    buckets.delete(&bucket(), &name("a"), None, &any, moment(25)).unwrap();
}

#[test]
fn a_name_changes_once_a_second_and_a_change_that_was_refused_does_not_count() {
    let mut buckets = buckets(Duration::from_secs(1));
    let any = Preconditions::default();
    let moment = |millis: u64| Moment::from_micros(millis * 1_000);
    let put = |buckets: &mut Buckets, text: &str, conditions: &Preconditions, millis| {
        kind(buckets.put(&bucket(), &name(text), new(b""), conditions, moment(millis)))
    };
    assert_eq!(put(&mut buckets, "a", &any, 0), None);
    assert_eq!(put(&mut buckets, "b", &any, 0), None);
    assert_eq!(put(&mut buckets, "a", &any, 999), Some(Kind::RateLimited));
    assert_eq!(put(&mut buckets, "a", &generation_match(0), 999), Some(Kind::ConditionNotMet));
    assert_eq!(put(&mut buckets, "a", &any, 1_000), None);
    let delete = |buckets: &mut Buckets, millis| {
        kind(buckets.delete(&bucket(), &name("a"), None, &any, moment(millis)))
    };
    assert_eq!(delete(&mut buckets, 1_500), Some(Kind::RateLimited));
    assert_eq!(delete(&mut buckets, 2_000), None);
    assert_eq!(put(&mut buckets, "a", &any, 2_500), Some(Kind::RateLimited));
    assert_eq!(put(&mut buckets, "a", &any, 3_000), None);
}

#[test]
fn composing_is_refused_as_the_service_refuses_it() {
    let mut buckets = buckets(Duration::ZERO);
    let any = Preconditions::default();
    let live = buckets.put(&bucket(), &name("a"), new(b"a"), &any, at(1)).unwrap().generation;
    let mut compose = |sources, conditions: &Preconditions| {
        kind(buckets.compose(&bucket(), &name("z"), composition(sources), conditions, at(2)))
    };
    assert_eq!(compose(vec![], &any), Some(Kind::Required));
    assert_eq!(compose(vec![source("a"); 33], &any), Some(Kind::Invalid));
    assert_eq!(compose(vec![source("a"), source("b")], &any), Some(Kind::NotFound));
    let other = Some(Generation(live.0 + 1));
    assert_eq!(compose(vec![Source { generation: other, ..source("a") }], &any), Some(Kind::NotFound));
    let wrong = Source { generation_match: Some(live.0 + 1), ..source("a") };
    assert_eq!(compose(vec![wrong], &any), Some(Kind::ConditionNotMet));
    assert_eq!(compose(vec![source("a"); 32], &generation_match(0)), None);
    assert_eq!(compose(vec![source("a")], &generation_match(0)), Some(Kind::ConditionNotMet));
    let composed = buckets.get(&bucket(), &name("z"), None, &any).unwrap();
    assert_eq!((composed.component_count, composed.checksums.md5), (Some(32), None));
    let nested = composition(vec![source("z"), source("a")]);
    let nested = buckets.compose(&bucket(), &name("y"), nested, &any, at(3)).unwrap();
    assert_eq!(nested.component_count, Some(33));
    let expected = ExpectedChecksums { crc32c: Some(Crc32c(1)), md5: None };
    let mismatch = Composition { expected, ..composition(vec![source("a")]) };
    let mismatch = buckets.compose(&bucket(), &name("x"), mismatch, &any, at(4));
    assert_eq!(kind(mismatch), Some(Kind::Invalid));
}

#[test]
fn a_patch_makes_a_metageneration_and_leaves_the_content() {
    let mut buckets = buckets(Duration::ZERO);
    let any = Preconditions::default();
    let object = buckets.put(&bucket(), &name("a"), new(b"1"), &any, at(1)).unwrap();
    let keys = [("k".to_owned(), Edit::Set("v".to_owned())), ("l".to_owned(), Edit::Remove)];
    let change = Change {
        content_type: Edit::Set("text/plain".to_owned()),
        custom: CustomChange::Merge(keys.into()),
        ..Change::default()
    };
    let conditions = Preconditions { metageneration_match: Some(1), ..any };
    let mut patch = || buckets.patch(&bucket(), &name("a"), None, change.clone(), &conditions, at(2));
    let patched = patch().unwrap();
    assert_eq!((patched.generation, patched.metageneration), (object.generation, 2));
    assert_eq!(patched.metadata.custom, BTreeMap::from([("k".to_owned(), "v".to_owned())]));
    assert_eq!(kind(patch()), Some(Kind::ConditionNotMet));
}

/// What clients do in the property test.
#[derive(Debug, Clone)]
enum Step {
    Put(&'static str, Vec<u8>, Option<bool>),
    Delete(&'static str, Option<bool>),
    Compose(&'static str, Vec<&'static str>),
}

const NAMES: [&str; 5] = ["a", "a/", "a/1", "a/2", "b"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // A condition is none, one that holds, or one that does not.
    let condition = || prop::option::of(any::<bool>());
    let step = prop_oneof![
        (select(&NAMES[..]), vec(any::<u8>(), 0..4), condition())
            .prop_map(|(name, content, holds)| Step::Put(name, content, holds)),
        (select(&NAMES[..]), condition()).prop_map(|(name, holds)| Step::Delete(name, holds)),
        (select(&NAMES[..]), vec(select(&NAMES[..]), 1..4))
            .prop_map(|(name, sources)| Step::Compose(name, sources)),
    ];
    vec(step, 0..30)
}

proptest! {
    #[test]
    fn the_state_is_that_of_a_map_of_bytes(steps in steps(), page_size in 1..4_usize) {
        let mut buckets = buckets(Duration::ZERO);
        let mut model: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        for step in steps {
            let conditions = |buckets: &Buckets, text: &str, holds: Option<bool>| {
                let live = buckets.get(&bucket(), &name(text), None, &Preconditions::default());
                let live = live.map_or(0, |object| object.generation.0);
                holds.map_or_else(Preconditions::default, |holds| generation_match(live + i64::from(!holds)))
            };
            match step {
                Step::Put(text, content, holds) => {
                    let conditions = conditions(&buckets, text, holds);
                    let put = buckets.put(&bucket(), &name(text), new(&content), &conditions, at(1));
                    prop_assert_eq!(put.is_ok(), holds != Some(false));
                    if put.is_ok() {
                        model.insert(text, content);
                    }
                }
                Step::Delete(text, holds) => {
                    let conditions = conditions(&buckets, text, holds);
                    let deleted = buckets.delete(&bucket(), &name(text), None, &conditions, at(1));
                    prop_assert_eq!(deleted.is_ok(), model.contains_key(text) && holds != Some(false));
                    if deleted.is_ok() {
                        model.remove(text);
                    }
                }
                Step::Compose(text, sources) => {
                    let composition = composition(sources.iter().map(|text| source(text)).collect());
                    let any = Preconditions::default();
                    let composed = buckets.compose(&bucket(), &name(text), composition, &any, at(1));
                    let joined: Option<Vec<_>> = sources.iter().map(|text| model.get(text)).collect();
                    prop_assert_eq!(composed.is_ok(), joined.is_some());
                    if let Some(joined) = joined {
                        model.insert(text, joined.into_iter().flatten().copied().collect());
                    }
                }
            }
        }
        // Page by page, with a delimiter and without, the listing is what the model holds.
        for delimiter in [None, Some("/")] {
            let (mut objects, mut prefixes, mut token) = (Vec::new(), Vec::new(), None);
            loop {
                let delimiter = delimiter.map(str::to_owned);
                let request = ListRequest { delimiter, token, page_size, ..ListRequest::default() };
                let page = buckets.list(&bucket(), &request).unwrap();
                prop_assert!(page.objects.len() + page.prefixes.len() <= page_size);
                objects.extend(page.objects);
                prefixes.extend(page.prefixes);
                token = page.next;
                if token.is_none() {
                    break;
                }
            }
            let listed: Vec<_> = objects
                .iter()
                .map(|object| (object.name.as_str(), object.content.length(), object.checksums.crc32c.0))
                .collect();
            let single = |text: &&str| delimiter.is_none_or(|delimiter| !text.contains(delimiter));
            let expected: Vec<_> = model
                .iter()
                .filter(|(text, _)| single(text))
                .map(|(text, content)| (*text, content.len() as u64, crc32c::crc32c(content)))
                .collect();
            prop_assert_eq!(listed, expected);
            let grouped = model.keys().any(|text| !single(text));
            prop_assert_eq!(prefixes, if grouped { vec!["a/".to_owned()] } else { Vec::new() });
        }
    }
}

#[test]
fn a_listing_keeps_to_its_bounds() {
    let mut buckets = buckets(Duration::ZERO);
    for text in ["a", "b/", "b/1", "b/2/x", "c", "é"] {
        buckets.put(&bucket(), &name(text), new(b""), &Preconditions::default(), at(1)).unwrap();
    }
    let list = |request: ListRequest| {
        let page = buckets.list(&bucket(), &ListRequest { page_size: 10, ..request }).unwrap();
        let names = page.objects.iter().map(|object| object.name.to_string());
        (names.collect::<Vec<_>>(), page.prefixes)
    };
    let text = str::to_owned;
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let bounds = ListRequest { start: text("b/1"), end: Some(text("c")), ..ListRequest::default() };
    assert_eq!(list(bounds), (strings(&["b/1", "b/2/x"]), vec![]));
    let folder = ListRequest { prefix: text("b/"), delimiter: Some(text("/")), ..ListRequest::default() };
    assert_eq!(list(folder.clone()), (strings(&["b/", "b/1"]), strings(&["b/2/"])));
    let above = ListRequest { prefix: text("b"), include_trailing_delimiter: true, ..folder };
    assert_eq!(list(above), (strings(&["b/"]), strings(&["b/"])));
    let invalid = ListRequest { token: Some(text("?")), page_size: 1, ..ListRequest::default() };
    assert_eq!(kind(buckets.list(&bucket(), &invalid)), Some(Kind::Invalid));
}
