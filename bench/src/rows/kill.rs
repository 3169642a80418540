//! Lines that are sent again after `kill -9`, counted in the provider double's log.

use std::path::Path;

use super::IN_FLIGHT;
use crate::{
    error::BenchError,
    input::Format,
    process::{Cores, Invocation, since_epoch},
    row::{Bound, Row, Unit},
    simulated::Simulated,
    spread::{Spread, number},
    workplace::Workplace,
};

/// One way to die.
struct Death {
    measure: &'static str,
    floor: f64,
    aim: f64,
    /// Milliseconds until the double answers.
    latency_ms: u32,
    /// Requests a minute; 0: no limit.
    rpm: u32,
    /// New requests between two kills, at least.
    between: usize,
    /// Whether the scratch folder goes with the process.
    loses_scratch: bool,
}

const DEATHS: [Death; 2] = [
    Death {
        measure: "lines sent twice for one `kill -9`, 100 in flight",
        floor: 100.0,
        aim: 60.0,
        latency_ms: 50,
        rpm: 0,
        between: 4_000,
        loses_scratch: false,
    },
    Death {
        measure: "lines sent twice for one `kill -9` with the scratch folder lost, 100 requests/s of 0.3 s",
        floor: 300.0,
        aim: 200.0,
        latency_ms: 300,
        rpm: 6_000,
        between: 700,
        loses_scratch: true,
    },
];

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    DEATHS.iter().map(|death| die(place, death)).collect()
}

fn die(place: &Workplace, death: &Death) -> Result<Row, BenchError> {
    let kills = place.sizes.kills;
    // The last run ends by itself, soon after it has sent again what it had to.
    let lines = (kills + 1) * 3 * death.between / 2;
    let input = place.input(Format::Prompts, u64::try_from(lines).unwrap_or(u64::MAX))?;
    let output = place.output("out")?;
    let mut provider = Simulated::start(&place.penstock, place.folder(), death.latency_ms)?;
    let rpm = death.rpm.to_string();
    let mut run = place.penstock_run(Cores::Both, &input, &output, &provider.url, IN_FLIGHT);
    if death.rpm > 0 {
        run = run.with(["--rpm", &rpm]);
    }
    // The moments differ from kill to kill, and are the same in every measurement.
    let mut random = fastrand::Rng::with_seed(4);
    let mut killed_at = Vec::new();
    for _ in 0..kills {
        let enough = provider.received()? + death.between + random.usize(..death.between / 2);
        kill_after(place, &run, &mut provider, enough)?;
        killed_at.push(u64::try_from(since_epoch().as_millis()).unwrap_or(u64::MAX));
        if death.loses_scratch {
            place.remove(&output.join(SCRATCH))?;
        }
    }
    run.run(&place.said())?;
    let again = sent_again(&provider, &killed_at)?;
    place.remove(&output)?;
    let figure = Spread::of(again.iter().map(|count| number(*count)));
    let mut commands = vec![provider.command.clone(), run.to_string()];
    if death.loses_scratch {
        commands.push(format!("rm -r {}", shown(&output.join(SCRATCH))));
    }
    Ok(Row {
        measure: death.measure.to_owned(),
        floor: Bound::AtMost(death.floor),
        aim: Some(Bound::AtMost(death.aim)),
        unit: Unit::Lines,
        judged: figure.most,
        figure,
        details: vec![format!("after each kill: {again:?}; the worst is held against the floor")],
        commands,
    })
}

/// The scratch folder below an output.
const SCRATCH: &str = ".penstock/scratch";

fn kill_after(
    place: &Workplace,
    run: &Invocation,
    provider: &mut Simulated,
    enough: usize,
) -> Result<(), BenchError> {
    let mut running = run.start(&place.said())?;
    running.wait_for("requests at the provider double", || Ok(provider.received()? >= enough))?;
    running.kill()
}

/// Per kill, the requests that came after it, and before the next, for lines that had been asked before.
fn sent_again(provider: &Simulated, killed_at: &[u64]) -> Result<Vec<u64>, BenchError> {
    let mut counts = vec![0; killed_at.len()];
    for entry in provider.log()?.iter().filter(|entry| entry.times_seen > 0) {
        let kill = killed_at.partition_point(|at| *at <= entry.at_ms);
        counts[kill.saturating_sub(1)] += 1;
    }
    Ok(counts)
}

fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}
