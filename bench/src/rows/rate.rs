//! What a job makes of a limit that nobody states: the part that it uses after the first minute, and the part of its
//! requests that are refused. In real time, with the whole binary.

use std::{
    fs,
    time::{Duration, Instant},
};

use penstock_simulator::LogEntry;

use crate::{
    error::BenchError,
    input::{Format, MODEL},
    process::{Cores, Invocation},
    row::{Bound, Row, Unit, grouped},
    simulated::Simulated,
    spread::{Spread, number},
    workplace::Workplace,
};

/// The hidden limits, in requests a minute.
const LIMITS: [u64; 2] = [600, 6_000];
/// What is not looked at: the limit is being found.
const FIRST: Duration = Duration::from_mins(1);
/// Requests in flight that may be: more than any of these limits needs.
const IN_FLIGHT: &str = "1000";

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for limit in LIMITS {
        rows.extend(ride(place, limit)?);
    }
    Ok(rows)
}

/// Lets a job with more lines than it can send run for a while at a limit.
fn ride(place: &Workplace, per_minute: u64) -> Result<[Row; 2], BenchError> {
    let time = place.sizes.rate_time;
    let lines = per_minute * (time.as_secs() / 60 + 3);
    let input = place.input(Format::Prompts, lines)?;
    let output = place.output("out")?;
    let settings = place.folder().join("limited.json");
    let text = format!(
        r#"{{"limits":{{"requests":{{"per_minute":{per_minute},"enforcement":"minute_bucket"}}}},"latency":{{"start_ms":{{"log_normal":{{"median":500,"sigma":0.5}}}}}}}}"#
    );
    fs::write(&settings, text).map_err(|source| BenchError::File { path: settings.clone(), source })?;
    let mut server = Simulated::with_settings(&place.penstock, place.folder(), &settings)?;
    let (source, target) = (input.display().to_string(), output.display().to_string());
    let run = Invocation::new(Cores::Both, &place.penstock, ["run", &source, "--output", &target])
        .with(["--provider", "openai", "--base-url", &server.url, "--model", MODEL])
        .with(["--shared-state", "none", "--max-in-flight", IN_FLIGHT])
        .variable("OPENAI_API_KEY", "bench");
    let mut running = run.start(&place.said())?;
    running.wait_for("the first request", || Ok(server.received()? > 0))?;
    let begun = Instant::now();
    running.wait_for("the end of the time", || Ok(begun.elapsed() >= time))?;
    running.kill()?;
    let log = server.log()?;
    place.remove(&output)?;
    Ok(rows(&log, per_minute, time, &[server.command, run.to_string()]))
}

fn rows(log: &[LogEntry], per_minute: u64, time: Duration, commands: &[String]) -> [Row; 2] {
    let first = log.first().map_or(0, |entry| entry.at_ms);
    let since = |entry: &LogEntry| Duration::from_millis(entry.at_ms.saturating_sub(first));
    let count = |status: u16, from: Duration| {
        let counted =
            |entry: &&LogEntry| entry.status() == Some(status) && (from..time).contains(&since(entry));
        number(log.iter().filter(counted).count() as u64)
    };
    let (admitted, all_admitted) = (count(200, FIRST), count(200, Duration::ZERO));
    let refused = count(429, Duration::ZERO);
    let allowed = number(per_minute) * time.saturating_sub(FIRST).as_secs_f64() / 60.0;
    let used = 100.0 * admitted / allowed;
    let share = 100.0 * refused / (refused + all_admitted);
    let place = format!(
        "hidden limit of {} requests a minute, {} min",
        grouped(number(per_minute)),
        time.as_secs() / 60
    );
    let row = |measure: &str, figure, floor, aim, detail| Row {
        measure: format!("{measure}, {place}"),
        floor,
        aim: Some(aim),
        unit: Unit::Percent,
        figure: Spread::of([figure]),
        judged: figure,
        details: vec![detail],
        commands: commands.to_vec(),
    };
    [
        row(
            "part of the limit that is used after the first minute",
            used,
            Bound::AtLeast(96.0),
            Bound::AtLeast(99.0),
            format!("{} of {} requests let in", grouped(admitted), grouped(allowed)),
        ),
        row(
            "part of all requests that were refused",
            share,
            Bound::AtMost(1.0),
            Bound::AtMost(0.5),
            format!("{} refused, {} let in", grouped(refused), grouped(all_admitted)),
        ),
    ]
}
