//! Ends, pauses or misleads a run at a step that the environment names: the inside of the crash tests of the real
//! binaries. Compiled only with the feature `fault-injection`, which no shipped binary has.
//!
//! | variable | holds |
//! |---|---|
//! | `PENSTOCK_INJECT` | rules `ACTION@STEP:N`, separated by commas: the action at the Nth time that a process comes to the step, counted from 1 |
//! | `PENSTOCK_INJECT_KEPT` | the folder for writes that are to land later ([`land`]) |
//! | `PENSTOCK_INJECT_SEED` | `SEED/ONE_IN`: one storage call in so many goes wrong, in a way that the seed decides |
//! | `PENSTOCK_INJECT_COMPOSE_LIMIT` | how many sources one compose call takes at most; a folder has no such limit |
//! | `PENSTOCK_INJECT_WINDOW_LINES` | how many lines one window of the input has at most |
//! | `PENSTOCK_INJECT_CLOCK` | a file with a number of milliseconds that the wall clock is off |
//!
//! | action | does |
//! |---|---|
//! | `kill-before`, `kill` | SIGKILL before the step, or after it |
//! | `stop-before`, `stop` | SIGSTOP before the step, or after it |
//! | `lose` | the step's write is not applied and reported as failed |
//! | `doubt` | the step's write is applied and reported as failed |
//! | `late` | the step's write is reported as failed and kept, to land later |

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use penstock_job::{Step, layout};
use penstock_storage::{
    Generation, ObjectName, Store,
    faults::{Call, Fault, FaultyStore, Write, seeded},
};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use crate::steps::{At, Moment, Probe, Steps};

/// What happens at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Signal(Signal, Moment),
    Mislead(Fault),
}

/// One action at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    act: Act,
    step: Step,
    /// At which time that the step comes, from 1.
    time: u32,
}

/// What is to happen to one process.
#[derive(Debug, Default)]
pub struct Injection {
    rules: Vec<Rule>,
    kept: Option<PathBuf>,
    seed: Option<(u64, u64)>,
    compose_limit: Option<usize>,
    seen: Mutex<Seen>,
}

/// Where the process has been.
#[derive(Debug, Default)]
struct Seen {
    times: BTreeMap<(Step, Moment), u32>,
    /// The fault that the next write of an object is to meet.
    armed: BTreeMap<String, Fault>,
    /// A write of validation whose end is told by the call that follows it.
    validating: Option<Step>,
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not ACTION@STEP:N");
        let (act, rest) = text.split_once('@').ok_or_else(wrong)?;
        let (step, time) = rest.split_once(':').unwrap_or((rest, "1"));
        let act = match act {
            "kill-before" => Act::Signal(Signal::KILL, Moment::Before),
            "kill" => Act::Signal(Signal::KILL, Moment::After),
            "stop-before" => Act::Signal(Signal::STOP, Moment::Before),
            "stop" => Act::Signal(Signal::STOP, Moment::After),
            "lose" => Act::Mislead(Fault::Before),
            "doubt" => Act::Mislead(Fault::After),
            "late" => Act::Mislead(Fault::Kept),
            _ => return Err(wrong()),
        };
        let step: Step = step.parse().map_err(|_| wrong())?;
        if matches!(act, Act::Mislead(_)) && !step.writes() {
            return Err(format!("`{text}` misleads a step that writes nothing"));
        }
        Ok(Self { act, step, time: time.parse().map_err(|_| wrong())? })
    }
}

impl Injection {
    /// What the environment says.
    ///
    /// # Panics
    /// If a variable cannot be read: a test that injects nothing by mistake would pass.
    pub fn from_environment() -> Self {
        let rules = env::var("PENSTOCK_INJECT").unwrap_or_default();
        let rules = rules.split(',').filter(|rule| !rule.is_empty());
        let seed = env::var("PENSTOCK_INJECT_SEED").ok().map(|text| {
            let (seed, one_in) = text.split_once('/').expect("PENSTOCK_INJECT_SEED is SEED/ONE_IN");
            let number = |text: &str| text.parse().expect("PENSTOCK_INJECT_SEED holds numbers");
            (number(seed), number(one_in))
        });
        Self {
            rules: rules
                .map(|rule| rule.parse().unwrap_or_else(|problem: String| panic!("{problem}")))
                .collect(),
            kept: env::var_os("PENSTOCK_INJECT_KEPT").map(PathBuf::from),
            seed,
            compose_limit: env::var("PENSTOCK_INJECT_COMPOSE_LIMIT")
                .ok()
                .map(|text| text.parse().expect("PENSTOCK_INJECT_COMPOSE_LIMIT is a number")),
            seen: Mutex::default(),
        }
    }

    /// The store and the announcements of a run that this happens to.
    pub fn watch<S: Store + 'static>(self, store: S) -> (Arc<dyn Store>, Steps) {
        let injection = Arc::new(self);
        let (planner, keeper) = (Arc::clone(&injection), Arc::clone(&injection));
        let noise = injection.seed.map(|(seed, one_in)| seeded(seed, one_in));
        let plan = move |call: &Call<'_>| planner.fault(call).or_else(|| noise.as_ref()?(call));
        let mut store = FaultyStore::new(store, plan).keeping(move |write| keeper.keep(&write));
        if let Some(limit) = injection.compose_limit {
            store = store.composing_at_most(limit);
        }
        (Arc::new(store), Steps::seen_by(injection))
    }

    /// The process has come to `step`.
    fn reach(&self, step: Step, moment: Moment, object: Option<&str>) {
        let signal = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let time = seen.times.entry((step, moment)).or_default();
            *time += 1;
            let time = *time;
            let mut signal = None;
            for rule in self.rules.iter().filter(|rule| rule.step == step && rule.time == time) {
                match rule.act {
                    Act::Signal(which, at) if at == moment => signal = Some(which),
                    Act::Mislead(fault) if moment == Moment::Before => {
                        let object = object.expect("a step that writes names its object");
                        seen.armed.insert(object.to_owned(), fault);
                    }
                    Act::Signal(..) | Act::Mislead(_) => {}
                }
            }
            signal
        };
        if let Some(signal) = signal {
            kill_process(getpid(), signal).expect("a process may signal itself");
        }
    }

    /// What a storage call is to meet. Validation announces no steps of its own: its writes tell them.
    fn fault(&self, call: &Call<'_>) -> Option<Fault> {
        let before = self.seen.lock().unwrap_or_else(PoisonError::into_inner).validating.take();
        if let Some(step) = before {
            self.reach(step, Moment::After, None);
        }
        if let Some(step) = validating(call) {
            self.reach(step, Moment::Before, Some(call.object));
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).validating = Some(step);
        }
        let fault = self.seen.lock().unwrap_or_else(PoisonError::into_inner).armed.remove(call.object);
        if fault.is_some() {
            // A test that misleads nothing by mistake would pass.
            tracing::warn!(object = call.object, ?fault, "misled");
        }
        fault
    }

    fn keep(&self, write: &Write) {
        let folder = self.kept.as_deref().expect("`late` needs PENSTOCK_INJECT_KEPT");
        keep(folder, write).expect("a kept write can be stored");
    }
}

impl Probe for Injection {
    fn at(&self, at: At<'_>) -> Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> {
        self.reach(at.step, at.moment, at.object.map(ObjectName::as_str));
        None
    }
}

/// The step of validation that a call is, if it is one.
fn validating(call: &Call<'_>) -> Option<Step> {
    use penstock_storage::Action;
    if !matches!(call.action, Action::Create | Action::Replace) {
        None
    } else if call.object == layout::VALIDATION {
        Some(Step::CommitValidation)
    } else if call.object.starts_with(layout::INTAKE) {
        Some(Step::StoreRejected)
    } else {
        None
    }
}

/// A kept write but for its content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kept {
    Create { name: String },
    Replace { name: String, generation: String },
    Compose { name: String, sources: Vec<(String, String)> },
    Delete { name: String, generation: String },
}

fn keep(folder: &Path, write: &Write) -> io::Result<()> {
    let (kept, content) = match write {
        Write::Create(name, content) => (Kept::Create { name: name.to_string() }, content.clone()),
        Write::Replace(name, content, generation) => {
            let generation = generation.as_str().to_owned();
            (Kept::Replace { name: name.to_string(), generation }, content.clone())
        }
        Write::Compose(name, sources) => {
            let sources = sources
                .iter()
                .map(|(source, generation)| (source.to_string(), generation.as_str().to_owned()))
                .collect();
            (Kept::Compose { name: name.to_string(), sources }, Bytes::new())
        }
        Write::Delete(name, generation) => {
            let generation = generation.as_str().to_owned();
            (Kept::Delete { name: name.to_string(), generation }, Bytes::new())
        }
    };
    fs::create_dir_all(folder)?;
    fs::write(folder.join("content"), content)?;
    // The description comes last: whoever sees it finds the content whole.
    fs::write(folder.join("write.json"), serde_json::to_vec(&kept)?)
}

/// Lets the write that a process has kept in `folder` land, under its own precondition; whether it was applied.
///
/// # Panics
/// If nothing was kept there: a test that lands nothing by mistake would pass.
pub async fn land(folder: &Path, store: &dyn Store) -> bool {
    let kept = fs::read(folder.join("write.json")).expect("a write was kept");
    let kept: Kept = serde_json::from_slice(&kept).expect("a kept write can be read");
    let content = Bytes::from(fs::read(folder.join("content")).expect("a kept write has a content"));
    let object = |name: &str| ObjectName::parse(name).expect("a kept write names an object");
    let write = match kept {
        Kept::Create { name } => Write::Create(object(&name), content),
        Kept::Replace { name, generation } => {
            Write::Replace(object(&name), content, Generation::new(&*generation))
        }
        Kept::Compose { name, sources } => {
            let sources =
                sources.iter().map(|(name, generation)| (object(name), Generation::new(&**generation)));
            Write::Compose(object(&name), sources.collect())
        }
        Kept::Delete { name, generation } => Write::Delete(object(&name), Generation::new(&*generation)),
    };
    write.apply(store).await.is_ok()
}

/// How many lines a window has at most, if a test says so.
///
/// # Panics
/// If it is no number: a test with one large window by mistake would pass.
pub(crate) fn window_lines() -> Option<u32> {
    let text = env::var("PENSTOCK_INJECT_WINDOW_LINES").ok()?;
    Some(text.parse().expect("PENSTOCK_INJECT_WINDOW_LINES is a number"))
}

/// How many milliseconds the wall clock is off.
pub(crate) fn clock_offset_ms() -> i64 {
    let offset = || fs::read_to_string(env::var_os("PENSTOCK_INJECT_CLOCK")?).ok()?.trim().parse().ok();
    offset().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_action_step_and_time() {
        let rule = |text: &str| text.parse::<Rule>();
        let claim = Rule { act: Act::Signal(Signal::KILL, Moment::After), step: Step::Claim, time: 1 };
        assert_eq!(rule("kill@claim"), Ok(claim));
        let upload = Rule { act: Act::Mislead(Fault::Kept), step: Step::Upload, time: 3 };
        assert_eq!(rule("late@upload:3"), Ok(upload));
        for wrong in ["kill", "kill@leap", "kill@claim:x", "hug@claim", "doubt@send"] {
            assert!(rule(wrong).is_err(), "{wrong}");
        }
    }
}
