//! Requests a second of `penstock run` against a bare loop over the same HTTP client, alternating in one run.

use std::{path::Path, process::Command};

use super::IN_FLIGHT;
use crate::{
    answering::Answering,
    error::BenchError,
    input::{self, Format},
    process::{Cores, Invocation, Used},
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number, ratios},
    workplace::Workplace,
};

/// How long `wrk` asks the server for its ceiling.
const CEILING_SECONDS: &str = "3s";

/// Who has which cores.
#[derive(Debug, Clone, Copy)]
struct Shape {
    name: &'static str,
    server: Cores,
    client: Cores,
}

const SHAPES: [Shape; 2] = [
    Shape { name: "one core each", server: Cores::First, client: Cores::Second },
    Shape { name: "two cores, shared with the server", server: Cores::Both, client: Cores::Both },
];

/// One client's round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// Requests a second, from the first to the last.
    pub(super) rate: f64,
    /// What the client used.
    pub(super) used: Used,
    /// Microseconds on a core that the client took for a request from the first to the last. Less than the rate does it
    /// depend on who else wants the cores.
    pub(super) core_time: f64,
    /// The server's share of a core from the client's start to its end.
    pub(super) server_share: f64,
}

impl Round {
    /// Cores that the client kept busy from its start to its end.
    pub(super) fn client_share(&self) -> f64 {
        self.used.busy.as_secs_f64() / self.used.wall.as_secs_f64()
    }
}

/// Runs one client to its end, which must send exactly `requests`.
pub(super) fn round(
    server: &mut Answering,
    client: &Invocation,
    said: &Path,
    requests: u64,
) -> Result<Round, BenchError> {
    server.reset()?;
    let busy_before = server.busy()?;
    let mut running = client.start(said)?;
    running.wait_for("the first request", || Ok(server.tally()?.requests > 0))?;
    let (first, client_before) = (server.tally()?.requests, running.busy()?);
    running.wait_for("the last answer", || Ok(server.tally()?.requests >= requests))?;
    let sending = running.busy()?.saturating_sub(client_before);
    let used = running.finish()?;
    let (tally, busy) = (server.tally()?, server.busy()?.saturating_sub(busy_before));
    if tally.requests != requests {
        return Err(BenchError::Requests { expected: requests, found: tally.requests });
    }
    Ok(Round {
        rate: tally.rate(),
        used,
        core_time: sending.as_secs_f64() * 1e6 / number(requests - first),
        server_share: busy.as_secs_f64() / used.wall.as_secs_f64(),
    })
}

/// One row for each shape and format.
pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for shape in SHAPES {
        for format in Format::ALL {
            rows.push(compare(place, shape, format)?);
        }
    }
    Ok(rows)
}

fn compare(place: &Workplace, shape: Shape, format: Format) -> Result<Row, BenchError> {
    let requests = place.sizes.requests;
    let input = place.input(format, requests)?;
    let mut server = Answering::start(&place.own, shape.server)?;
    let (count, in_flight) = (requests.to_string(), IN_FLIGHT.to_string());
    let url = format!("{}/v1/chat/completions", server.url);
    let bare = Invocation::new(shape.client, &place.own, ["loop", "--url", &url, "--requests", &count])
        .with(["--concurrency", &in_flight]);
    let (mut bares, mut runs, mut commands) = (Vec::new(), Vec::new(), vec![server.command().to_owned()]);
    for _ in 0..place.sizes.rounds {
        bares.push(round(&mut server, &bare, &place.said(), requests)?);
        let output = place.output("out")?;
        let run = place.penstock_run(shape.client, &input, &output, &server.url, IN_FLIGHT);
        runs.push(round(&mut server, &run, &place.said(), requests)?);
        if commands.len() == 1 {
            commands.extend([bare.to_string(), run.to_string()]);
        }
    }
    place.remove(&place.output("out")?)?;
    let figure = faster(&runs, &bares);
    let mut details = vec![told("penstock run", &runs), told("bare loop", &bares), by_core(&runs, &bares)];
    details.extend(ceiling(place, shape, &server.url, &mut commands));
    Ok(Row {
        measure: format!(
            "requests/s of `penstock run` over those of a bare `reqwest` loop, {}, {}",
            format.name(),
            shape.name
        ),
        floor: Bound::AtLeast(0.6),
        aim: Some(Bound::AtLeast(0.85)),
        unit: Unit::Share,
        figure,
        judged: figure.median,
        details,
        commands,
    })
}

/// How many times the other's rate a client has, round by round.
pub(super) fn faster(rounds: &[Round], others: &[Round]) -> Spread {
    let rates = |rounds: &[Round]| rounds.iter().map(|round| round.rate).collect::<Vec<_>>();
    ratios(&rates(rounds), &rates(others))
}

/// The same by what each request took of a core, which matters where the rates do not: others wanted the cores too.
pub(super) fn by_core(rounds: &[Round], others: &[Round]) -> String {
    let core_times = |rounds: &[Round]| rounds.iter().map(|round| round.core_time).collect::<Vec<_>>();
    format!("by core time: {:.2}", ratios(&core_times(others), &core_times(rounds)).median)
}

/// The medians of a client's rounds.
pub(super) fn told(name: &str, rounds: &[Round]) -> String {
    let median = |value: fn(&Round) -> f64| Spread::of(rounds.iter().map(value)).median;
    format!(
        "{name}: {} requests/s from the first to the last; {:.2} s in all, the client on {:.2} cores, the server on {:.2}; \
         {:.1} us of a core for a request while it sends",
        grouped(median(|round| round.rate)),
        median(|round| round.used.wall.as_secs_f64()),
        median(Round::client_share),
        median(|round| round.server_share),
        median(|round| round.core_time),
    )
}

/// What the server can do, asked by `wrk` where it is installed.
fn ceiling(place: &Workplace, shape: Shape, url: &str, commands: &mut Vec<String>) -> Option<String> {
    let request = place.folder().join("request.lua");
    let lua = format!(
        "wrk.method = \"POST\"\nwrk.headers[\"content-type\"] = \"application/json\"\nwrk.body = [[{}]]\n",
        input::body(0)
    );
    std::fs::write(&request, lua).ok()?;
    let (connections, request) = (format!("-c{IN_FLIGHT}"), request.display().to_string());
    let words = ["-t1", &connections, "-d", CEILING_SECONDS, "-s", &request, url];
    let invocation = Invocation::new(shape.client, Path::new("wrk"), words);
    let mut command: Command = invocation.command();
    let said = String::from_utf8(command.output().ok()?.stdout).ok()?;
    let rate = said.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"))?;
    let rate: f64 = rate.trim().parse().ok()?;
    commands.push(invocation.to_string());
    Some(format!("the server's ceiling: {} requests/s, asked by wrk", grouped(rate)))
}
