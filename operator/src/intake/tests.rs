//! Intakes over folders: what an output holds already, and what is found in an input.

use penstock_job::{
    JobSpec,
    spec::{KeySource, ProviderKind},
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;

const LINES: &str = "{\"prompt_id\": 1, \"prompt\": \"a\"}\nnonsense\n";

struct Place {
    root: TempDir,
    spec: JobSpec,
}

impl Place {
    fn with(text: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut spec = JobSpec::default();
        spec.provider.kind = ProviderKind::Simulated;
        spec.provider.api_key = None::<KeySource>;
        spec.input = Some(root.path().join("in.jsonl").display().to_string());
        spec.output = Some(root.path().join("out").display().to_string());
        let place = Self { root, spec };
        place.write(text);
        place
    }

    fn write(&self, text: &str) {
        std::fs::write(self.root.path().join("in.jsonl"), text).unwrap();
    }

    async fn look(&self, largest: Option<u64>) -> Word {
        intake(&self.spec, self.root.path(), largest, &CancellationToken::new()).await
    }
}

#[tokio::test]
async fn an_input_is_validated_once_and_the_verdict_found_again() {
    let place = Place::with(LINES);
    let Word::Accepted(first) = place.look(None).await else { panic!("refused") };
    assert_eq!((first.lines, first.rejected), (2, 1));
    assert_eq!(place.look(None).await, Word::Accepted(first.clone()));
    assert_eq!(place.look(Some(1)).await, Word::Accepted(first), "what was validated is not too large");
}

#[tokio::test]
async fn an_input_that_is_too_large_for_here_is_not_read() {
    let place = Place::with(LINES);
    let size_bytes = LINES.len() as u64;
    assert_eq!(place.look(Some(size_bytes - 1)).await, Word::TooLarge { size_bytes });
    assert!(matches!(place.look(Some(size_bytes)).await, Word::Accepted(_)));
}

#[tokio::test]
async fn an_input_that_is_not_there_may_still_come() {
    let place = Place::with(LINES);
    std::fs::remove_file(place.root.path().join("in.jsonl")).unwrap();
    assert!(matches!(place.look(None).await, Word::Absent { .. }));
    place.write(LINES);
    assert!(matches!(place.look(None).await, Word::Accepted(_)));
}

#[tokio::test]
async fn inputs_that_cannot_be_run_are_refused_by_their_reason() {
    for (text, expected) in
        [("", Reason::EmptyInput), ("\n\n", Reason::EmptyInput), ("nonsense\n", Reason::InvalidInput)]
    {
        let place = Place::with(text);
        match place.look(None).await {
            Word::Refused { reason, .. } => assert_eq!(reason, expected, "{text:?}"),
            word => panic!("{text:?}: {word:?}"),
        }
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_a_matter_of_configuration() {
    let mut place = Place::with(LINES);
    place.spec.output = Some("gs://".to_owned());
    assert!(matches!(place.look(None).await, Word::Misconfigured { .. }));
}
