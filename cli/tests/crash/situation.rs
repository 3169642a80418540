//! Which job, brought how far, comes to a step: each step has its row, and a new one does not compile without it.

use penstock_job::Step;
use penstock_storage::{ErrorKind, ObjectName, Store};
use serde_json::{Value, json};

use crate::{
    site::Kind,
    witness::output,
    workplace::{Launch, Terms, Workplace, invalid, valid},
};

/// Requests in flight of the runs of a situation.
pub(crate) const IN_FLIGHT: usize = 8;
/// Lines of each job; four of them are rejected.
const LINES: usize = 60;

/// A job and what has happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Situation {
    /// Nothing yet.
    Fresh,
    /// Nothing yet, and answers take their time.
    Slow,
    /// An earlier epoch has left an unlisted part, and another one answers in scratch.
    Succession,
    /// The same, and `penstock cancel` is what comes next.
    Cancel,
    /// Nothing yet, and not every line is answered when the completion window is over.
    Deadline,
    /// A listed part is damaged.
    Damage,
    /// Two listed parts hold the same lines.
    Repetition,
    /// The parts are too many for one compose call.
    ManyParts,
}

/// The situations in which a run comes to `step`.
pub(crate) fn situations(step: Step) -> &'static [Situation] {
    use Situation as S;
    match step {
        Step::StoreRejected
        | Step::CommitValidation
        | Step::Look
        | Step::Send
        | Step::Append
        | Step::Upload
        | Step::List
        | Step::Reconcile => &[S::Fresh],
        Step::Claim => &[S::Fresh, S::Succession],
        Step::Adopt | Step::Seal | Step::Recover => &[S::Succession],
        Step::Checkpoint => &[S::Slow],
        Step::End | Step::RecordUndone => &[S::Cancel, S::Deadline],
        Step::Drain => &[S::Deadline],
        Step::Rewrite => &[S::Repetition],
        Step::Repair => &[S::Damage, S::Repetition],
        Step::Freeze | Step::ComposeFinal | Step::WriteReceipt | Step::ReadReceipt => &[S::Fresh, S::Cancel],
        Step::ComposeIntermediate | Step::Clean => &[S::ManyParts],
    }
}

/// At which time that a run comes to `step` something happens to it: where it comes there often, in the middle.
pub(crate) fn time(step: Step) -> u32 {
    match step {
        Step::StoreRejected | Step::Append | Step::ComposeIntermediate | Step::Clean => 2,
        Step::Send => 12,
        Step::RecordUndone => 3,
        Step::CommitValidation
        | Step::Look
        | Step::Claim
        | Step::Adopt
        | Step::Seal
        | Step::Recover
        | Step::Upload
        | Step::List
        | Step::Checkpoint
        | Step::End
        | Step::Drain
        | Step::Reconcile
        | Step::Rewrite
        | Step::Repair
        | Step::Freeze
        | Step::ComposeFinal
        | Step::WriteReceipt
        | Step::ReadReceipt => 1,
    }
}

impl Situation {
    /// Brings a job there.
    pub(crate) async fn arrange(self, kind: Kind) -> Workplace {
        let lines = (0..LINES).map(|line| if line % 15 == 7 { invalid(line) } else { valid(line) }).collect();
        let mut terms = Terms { in_flight: IN_FLIGHT, ..Terms::default() };
        match self {
            // Until there is a checkpoint, which comes after a second in a folder and two in a bucket.
            Self::Slow if kind == Kind::Bucket => terms.latency_ms = 600.0,
            Self::Slow => terms.latency_ms = 350.0,
            Self::Deadline if kind == Kind::Bucket => {
                (terms.latency_ms, terms.deadline_seconds) = (1_500.0, Some(4));
            }
            Self::Deadline => (terms.latency_ms, terms.deadline_seconds) = (450.0, Some(1)),
            Self::ManyParts => terms.compose_limit = Some(2),
            Self::Fresh | Self::Succession | Self::Cancel | Self::Damage | Self::Repetition => {}
        }
        let place = Workplace::of(kind, lines, &terms).await;
        let kills: &[&str] = match self {
            Self::Fresh | Self::Slow | Self::Deadline => &[],
            // The last of the lines in flight is sent when some answers are appended; these the next run stores first.
            Self::Succession | Self::Cancel => &["kill@send:12", "kill@send:12"],
            Self::Damage | Self::Repetition => &["kill@send:12", "kill@send:12", "kill@seal"],
            Self::ManyParts => &["kill@send:12", "kill@send:12", "kill@send:12"],
        };
        for kill in kills {
            place.run(&[]).inject(kill).start().is_killed().await;
        }
        match self {
            Self::Damage => damage(&place).await,
            Self::Repetition => repeat(&place).await,
            _ => {}
        }
        place
    }

    /// How many runs have been killed on the way there.
    pub(crate) fn kills(self) -> usize {
        match self {
            Self::Fresh | Self::Slow | Self::Deadline => 0,
            Self::Succession | Self::Cancel => 2,
            Self::Damage | Self::Repetition | Self::ManyParts => 3,
        }
    }

    /// What comes to the step.
    pub(crate) fn subject(self, place: &Workplace) -> Launch<'_> {
        if self == Self::Cancel { place.cancel() } else { place.run(&[]) }
    }

    /// How many requests storage has lost the answers of, so that they are sent again.
    pub(crate) fn lost(self) -> usize {
        if self == Self::Damage { LINES } else { 0 }
    }
}

/// Changes a byte of the first listed part.
async fn damage(place: &Workplace) {
    let state = place.document("state.json").unwrap();
    let name = state["parts"][0][0].as_str().unwrap();
    place.witness.expect_damage(name);
    let mut bytes = place.site.seen().now().read(name).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    place.site.overwrite(name, &bytes).await;
}

/// Lists the records of the first part as two parts, both of which hold its last record but one.
async fn repeat(place: &Workplace) {
    let store = place.site.store().await;
    let mut state = place.document("state.json").unwrap();
    let original = state["parts"][0][0].as_str().unwrap().to_owned();
    let content = place.site.seen().now().read(&original).unwrap();
    let records: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let count = records.len();
    let mut rows = Vec::new();
    for (sequence, records) in [(9_998, &records[..count - 1]), (9_999, &records[count - 2..])] {
        let name = format!("parts/{:08}-{sequence:08}-r.jsonl", output::epoch_of(&original));
        place.witness.expect_damage(&name);
        let content = records.concat();
        let checksum = format!("{:08x}", crc32c::crc32c(&content));
        let size = content.len();
        let made = store.create(&ObjectName::parse(name.clone()).unwrap(), content.into()).await.unwrap();
        rows.push(json!([name, made.generation.as_str(), records.len(), size, checksum]));
    }
    let parts = state["parts"].as_array_mut().unwrap();
    parts.splice(..1, rows);
    // That epoch may have made more than one part.
    parts.sort_by(|one, other| one[0].as_str().cmp(&other[0].as_str()));
    state["outcomes"]["succeeded"] = Value::from(state["outcomes"]["succeeded"].as_u64().unwrap() + 1);
    state["write"] = Value::from(state["write"].as_u64().unwrap() + 1);
    replace_state(&*store, &state).await;
}

/// Puts another state in the place of the one that is there, as soon as the storage takes it: a bucket takes one write of
/// a name in a second.
async fn replace_state(store: &dyn Store, state: &Value) {
    let name = ObjectName::from_static("state.json");
    let generation = store.head(&name).await.unwrap().unwrap().generation;
    loop {
        match store.replace(&name, state.to_string().into(), &generation).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => tokio::task::yield_now().await,
            replaced => {
                replaced.unwrap();
                return;
            }
        }
    }
}
