//! Requests a second of `penstock run` against a Python script that does the same for one process.

use super::{
    IN_FLIGHT,
    requests::{by_core, faster, round, told},
};
use crate::{
    answering::Answering,
    error::BenchError,
    input::Format,
    process::{Cores, Invocation},
    row::{Bound, Row, Unit},
    workplace::Workplace,
};

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let requests = place.sizes.script_requests;
    let input = place.input(Format::OpenAi, requests)?;
    let mut server = Answering::start(&place.own, Cores::First)?;
    let (source, connections) = (input.display().to_string(), IN_FLIGHT.to_string());
    let script_path = place.script.display().to_string();
    let (mut scripts, mut runs, mut commands) = (Vec::new(), Vec::new(), vec![server.command().to_owned()]);
    for _ in 0..place.sizes.rounds {
        let results = place.output("script.jsonl")?.display().to_string();
        let script = Invocation::new(Cores::Second, &place.python, [script_path.as_str(), &source, &results])
            .with(["--url", &server.url, "--connections", &connections]);
        scripts.push(round(&mut server, &script, &place.said(), requests)?);
        let output = place.output("out")?;
        let run = place.penstock_run(Cores::Second, &input, &output, &server.url, IN_FLIGHT);
        runs.push(round(&mut server, &run, &place.said(), requests)?);
        if commands.len() == 1 {
            commands.extend([script.to_string(), run.to_string()]);
        }
    }
    place.remove(&place.output("out")?)?;
    let figure = faster(&runs, &scripts);
    Ok(vec![Row {
        measure: "requests/s of `penstock run` over those of a Python `aiohttp` script, one core each"
            .to_owned(),
        floor: Bound::AtLeast(5.0),
        aim: Some(Bound::AtLeast(8.0)),
        unit: Unit::Times,
        figure,
        judged: figure.median,
        details: vec![
            told("penstock run", &runs),
            told("aiohttp script", &scripts),
            by_core(&runs, &scripts),
        ],
        commands,
    }])
}
