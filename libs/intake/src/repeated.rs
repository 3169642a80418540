//! The second pass over an input: the lines whose ids may repeat, read again and compared by the ids themselves.
//!
//! Of the lines with one id the first keeps it; each later one is rejected and told the first's line number.

use std::{
    cmp::Ordering,
    io::{self, Read, Write},
};

use penstock_batchfile::{DecodedId, Ordinal, Position, Rejection};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    IntakeError,
    examine::Method,
    external_sort::{Record, Sorted},
    fault::{Fault, FaultSink},
    feed::Chunks,
    pass::FirstPass,
    rules::Checked,
    seen::Suspects,
    summary::listed_name,
};

/// A line whose id may repeat.
#[derive(Debug, Serialize, Deserialize)]
struct Suspect {
    position: Position,
    /// The id's token as it stands in the input.
    id: Box<RawValue>,
    /// The name that its model is counted under.
    model: String,
    bytes: u64,
}

/// A suspect with what it is sorted by.
#[derive(Debug, Serialize, Deserialize)]
struct Keyed<K> {
    key: K,
    line: Suspect,
}

/// Sorted by the id, in a form in which equal ids are equal, and then by place in the file.
type Claim = Keyed<(String, Ordinal)>;

/// A line whose id an earlier line has, sorted by place in the file; the second number is that of the earlier line.
type Repeat = Keyed<(Ordinal, u64)>;

/// Reads the input again, reports each line with a repeated id to `sink` and corrects the figures of the first pass.
pub(crate) fn second_pass(
    chunks: Chunks,
    method: &Method,
    found: &mut FirstPass,
    sink: &mut impl FaultSink,
) -> Result<(), IntakeError> {
    let claimed = claims(chunks, method, &found.suspects)?;
    for repeat in repeats(claimed, method)? {
        let Repeat { key: (ordinal, first_line_number), line } = repeat?;
        found.tally.repeated(ordinal, &line.model, line.bytes);
        sink.take(&Fault {
            position: line.position,
            id: Some((&*line.id).into()),
            rejection: &Rejection::duplicate_id(first_line_number),
        })?;
    }
    sink.end_of_series()
}

fn claims(chunks: Chunks, method: &Method, suspects: &Suspects) -> Result<Sorted<Claim>, IntakeError> {
    let rules = &method.rules;
    let mut claims = method.sort();
    chunks.each_line(rules.max_line_bytes, |line| {
        let Checked::Valid(valid) = rules.check(line) else {
            return Ok(());
        };
        let id = &valid.request.id;
        if !suspects.contains((method.key_of)(id.decoded())) {
            return Ok(());
        }
        claims.push(Claim {
            key: (comparable(id.decoded()), line.position.ordinal),
            line: Suspect {
                position: line.position,
                id: id.token().to_raw_value(),
                model: listed_name(rules.model_of(&valid)).to_owned(),
                bytes: valid.bytes,
            },
        })
    })?;
    claims.finish()
}

/// The claims on ids that an earlier line has.
fn repeats(claims: Sorted<Claim>, method: &Method) -> Result<Sorted<Repeat>, IntakeError> {
    let mut repeats = method.sort();
    let mut first: Option<(String, u64)> = None;
    for claim in claims {
        let Claim { key: (id, ordinal), line } = claim?;
        match &first {
            Some((taken, first_line_number)) if *taken == id => {
                repeats.push(Repeat { key: (ordinal, *first_line_number), line })?;
            }
            _ => first = Some((id, line.position.line_number)),
        }
    }
    repeats.finish()
}

fn comparable(id: &DecodedId<'_>) -> String {
    match id {
        DecodedId::Integer(integer) => integer.to_string(),
        DecodedId::Text(text) => text.clone().into_owned(),
    }
}

impl<K: Ord> Ord for Keyed<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<K: Ord> PartialOrd for Keyed<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> PartialEq for Keyed<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Ord> Eq for Keyed<K> {}

/// Stands on disk as the length of its JSON and the JSON.
impl<K: Ord + Serialize + DeserializeOwned> Record for Keyed<K> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        (json.len() as u64).write(out)?;
        out.write_all(&json)
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let length = u64::read(from)?;
        let mut json = Vec::new();
        from.take(length).read_to_end(&mut json)?;
        Ok(serde_json::from_slice(&json)?)
    }

    fn memory_bytes(&self) -> usize {
        // The key's text is about as long as the id's token.
        size_of::<Self>() + 2 * self.line.id.get().len() + self.line.model.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use penstock_batchfile::Format;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        fixtures::{Reported, examine_with},
        seen::key_of,
    };

    fn prompt(id: &str) -> String {
        format!("{{\"prompt_id\":{id},\"prompt\":\"p\"}}\n")
    }

    fn openai(id: &str) -> String {
        format!("{{\"custom_id\":{id},\"body\":{{}}}}\n")
    }

    /// Line numbers and messages of the repeated ids, by the definition.
    fn expected(ids: &[Option<String>], decode: impl Fn(&str) -> String) -> Vec<(u64, String)> {
        let mut first = HashMap::new();
        (1_u64..)
            .zip(ids)
            .filter_map(|(line_number, id)| {
                let owner = *first.entry(decode(id.as_ref()?)).or_insert(line_number);
                (owner != line_number).then(|| (line_number, Rejection::duplicate_id(owner).message))
            })
            .collect()
    }

    fn repeated(faults: Vec<Reported>) -> Vec<(u64, String)> {
        faults
            .into_iter()
            .filter(|(_, _, code, _)| code == "duplicate_id")
            .map(|(line_number, _, _, message)| (line_number, message))
            .collect()
    }

    /// A hash with eight values, so that most keys collide.
    fn weak(id: &DecodedId<'_>) -> u64 {
        key_of(id) % 8
    }

    /// Ids of which some are dense, some far apart, some negative; `None` is a line that is invalid anyway.
    fn integer_ids() -> impl Strategy<Value = Vec<Option<String>>> {
        let id = prop_oneof![
            8 => (-20_i128..20).prop_map(|id| Some(id.to_string())),
            1 => prop_oneof![Just(i128::from(i64::MIN)), Just(i128::from(u64::MAX)), Just(1 << 63), Just(5_000_000)]
                .prop_map(|id| Some(id.to_string())),
            1 => Just(Some("-0".to_owned())),
            1 => Just(None),
        ];
        prop::collection::vec(id, 0..120)
    }

    /// Tokens of which several are the same text.
    fn text_ids() -> impl Strategy<Value = Vec<Option<String>>> {
        let token = prop_oneof![
            4 => (0..30_u32).prop_map(|id| format!("\"{id}\"")),
            1 => Just(r#""\u0061""#.to_owned()),
            1 => Just(r#""a""#.to_owned()),
            1 => Just(r#""\/""#.to_owned()),
            1 => Just(r#""/""#.to_owned()),
            1 => Just("\"\u{e9}\"".to_owned()),
            1 => Just(r#""\u00E9""#.to_owned()),
        ];
        prop::collection::vec(prop::option::weighted(0.9, token), 0..120)
    }

    fn found(
        ids: &[Option<String>],
        format: Format,
        line: fn(&str) -> String,
        weakly: bool,
        sort_bytes: usize,
    ) -> Vec<(u64, String)> {
        let content: String =
            ids.iter().map(|id| id.as_deref().map_or_else(|| "invalid\n".to_owned(), line)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (summary, faults) = runtime.block_on(examine_with(content.as_bytes(), format, |method| {
            method.sort_bytes = sort_bytes;
            if weakly {
                method.key_of = weak;
            }
        }));
        assert_eq!(summary.rejected.len(), faults.len() as u64);
        repeated(faults)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn repeated_integers_are_those_of_the_definition(ids in integer_ids(), weakly: bool, sort_bytes in 1_usize..2000) {
            let model = expected(&ids, |id| id.parse::<i128>().unwrap().to_string());
            prop_assert_eq!(found(&ids, Format::Prompts, prompt, weakly, sort_bytes), model);
        }

        #[test]
        fn repeated_texts_are_those_of_the_definition(ids in text_ids(), weakly: bool, sort_bytes in 1_usize..2000) {
            let model = expected(&ids, |id| serde_json::from_str(id).unwrap());
            prop_assert_eq!(found(&ids, Format::OpenAi, openai, weakly, sort_bytes), model);
        }
    }

    #[tokio::test]
    async fn thousands_of_repeated_ids_on_disk_are_reported_in_the_order_of_the_file() {
        let line = |id: u64| openai(&format!("\"request-{}\"", id % 5000));
        let content: String = (0..15_000).map(line).collect();
        let (summary, faults) =
            examine_with(content.as_bytes(), Format::OpenAi, |method| method.sort_bytes = 10_000).await;
        assert_eq!(summary.rejected_codes, BTreeMap::from([("duplicate_id".to_owned(), 10_000)]));
        let line_numbers: Vec<_> = faults.iter().map(|(line_number, ..)| *line_number).collect();
        assert_eq!(line_numbers, (5001..=15_000).collect::<Vec<_>>());
        assert_eq!(faults[9_999].3, Rejection::duplicate_id(5000).message);
    }

    #[tokio::test]
    async fn an_invalid_line_does_not_take_the_id_away_from_a_valid_one() {
        let content = [r#"{"prompt_id":1}"#, "\n", &prompt("1"), "\n\n", &prompt("1")].concat();
        let (_, faults) = examine_with(content.as_bytes(), Format::Prompts, |_| ()).await;
        let message = Rejection::duplicate_id(2).message;
        assert_eq!(faults.len(), 2);
        assert_eq!(faults[1], (5, Some("1".to_owned()), "duplicate_id".to_owned(), message));
    }

    #[tokio::test]
    async fn the_figures_are_those_of_the_lines_that_stay() {
        let named =
            |id: u32, model: &str| format!("{{\"custom_id\":\"{id}\",\"body\":{{\"model\":\"{model}\"}}}}\n");
        let content = [named(1, "a"), named(1, "b"), named(2, "a"), named(2, "a")].concat();
        let (summary, _) = examine_with(content.as_bytes(), Format::OpenAi, |_| ()).await;
        let (kept, _) =
            examine_with([named(1, "a"), named(2, "a")].concat().as_bytes(), Format::OpenAi, |_| ()).await;
        assert_eq!(summary.models, BTreeMap::from([("a".to_owned(), 2)]));
        assert_eq!(summary.token_estimate, kept.token_estimate);
        assert_eq!(summary.lines, 4);
    }
}
