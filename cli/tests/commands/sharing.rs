//! Runs at the same time on one key: they find its limit together, share it, and leave what they found to the next one.

use std::{fs, path::PathBuf, time::Duration};

use penstock_simulator::{Distribution, Enforcement, Latency, LimitSettings, ProviderSettings, Quota};
use rustix::process::Signal;
use serde_json::Value;

use crate::world::{Running, World, start};

/// What the key allows, and nobody says.
const PER_MINUTE: u32 = 1_200;
/// Lines of each job: more than are answered here.
const LINES: usize = 5_000;

/// Starts a job of this name that shares what it learns.
fn begin(world: &World, name: &str) -> Running {
    let lines = (0..LINES).map(|id| format!("{{\"prompt_id\": {id}, \"prompt\": \"{name} {id}\"}}\n"));
    let input = world.write(&format!("{name}.jsonl"), &lines.collect::<String>());
    let url = world.server().base_url();
    let mut command =
        world.penstock(["run", "--provider", "simulated", "--base-url", &url, "--output", name]);
    command.args(["--rate", "adaptive", "--shared-state", "shared", "--share-every", "1s"]).arg(input);
    start(command)
}

/// The one document of this kind in shared state.
fn document(world: &World, kind: &str) -> Option<Value> {
    let mut files = fs::read_dir(world.path("shared").join(kind)).ok()?;
    let file: PathBuf = files.next()?.unwrap().path();
    assert!(files.next().is_none(), "one key has one document");
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// How many jobs say that they send.
fn sharers(world: &World) -> usize {
    let found = document(world, "sharing");
    let jobs = found.as_ref().and_then(|document| document["models"]["simulated"].as_object());
    jobs.map_or(0, serde_json::Map::len)
}

/// The rate that is left to later jobs, in requests a minute.
fn remembered(world: &World) -> f64 {
    let found = document(world, "remembered").expect("a job that ends leaves what it has found");
    found["models"]["simulated"]["requests"]["per_minute"].as_f64().unwrap()
}

#[test]
fn two_runs_on_one_key_share_its_limit_and_leave_what_they_found_to_a_third() {
    let world = World::with(ProviderSettings {
        limits: LimitSettings {
            requests: Some(Quota { per_minute: PER_MINUTE.into(), enforcement: Enforcement::SecondBucket }),
            ..LimitSettings::default()
        },
        latency: Latency { start_ms: Distribution::Constant(20.0), ..Latency::default() },
        ..ProviderSettings::default()
    });
    let mut first = begin(&world, "first");
    let mut second = begin(&world, "second");
    world.await_requests(500);
    world.await_that(|| sharers(&world) == 2);
    let log = world.asked();
    let refused = log.iter().filter(|entry| entry.status() == Some(429)).count();
    assert!(refused * 20 <= log.len(), "{refused} of {} refused", log.len());
    // By the second half the limit is known.
    let half = &log[log.len() / 2..];
    let admitted = half.iter().filter(|entry| entry.status() == Some(200));
    let of_job = |job: &str| admitted.clone().filter(|entry| entry.prompt.starts_with(job)).count();
    let parts = ["first", "second"].map(|job| u32::try_from(of_job(job)).unwrap());
    let took = Duration::from_millis(half[half.len() - 1].at_ms - half[0].at_ms);
    let together = parts[0] + parts[1];
    let most = took.as_secs_f64() / 60.0 * f64::from(PER_MINUTE);
    assert!(f64::from(together) >= 0.7 * most, "{parts:?} in {took:?}, in which {most:.0} may pass");
    assert!(parts.iter().all(|part| part * 10 >= together * 3), "{parts:?}");

    // One that is killed says nothing any more, so its part expires; one that is stopped takes its leave.
    first.signal(Signal::KILL);
    world.await_that(|| sharers(&world) == 1);
    second.signal(Signal::TERM);
    second.end().ended(75);
    assert_eq!(sharers(&world), 0);
    let found = remembered(&world);
    assert!((300.0..1_320.0).contains(&found), "{found} requests/min");

    let mut third = begin(&world, "third");
    // It hears of earlier jobs before it tells of itself.
    world.await_that(|| sharers(&world) == 1);
    third.signal(Signal::TERM);
    third.end().ended(75);
    let told = world.say(&["status", "third"]).ended(0).stdout.replace(',', "");
    let words = format!("an earlier job ran well with {found:.0} requests/min");
    assert!(told.contains(&words), "`{words}` is not in\n{told}");
}
