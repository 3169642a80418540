//! From the start of a resumed job, half of which is done, to the arrival of its first new request.

use super::IN_FLIGHT;
use crate::{
    answering::Answering,
    error::BenchError,
    input::Format,
    patience::wait_for,
    process::Cores,
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number},
    workplace::Workplace,
};

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let lines = place.sizes.job_lines;
    let input = place.input(Format::Prompts, lines)?;
    let output = place.output("out")?;
    let mut server = Answering::start(&place.own, Cores::Both)?;
    let run = place.penstock_run(Cores::Both, &input, &output, &server.url, IN_FLIGHT);
    let mut running = run.start(&place.said())?;
    running.wait_for("half of the job", || Ok(server.tally()?.requests >= lines / 2))?;
    running.kill()?;
    let mut seconds = Vec::new();
    for _ in 0..place.sizes.rounds {
        // What a killed process had written may still arrive.
        wait_for("the end of all connections", || Ok(server.tally()?.open == 0))?;
        server.reset()?;
        let mut running = run.start(&place.said())?;
        let begun = running.begun_at;
        running.wait_for("the first request of a resumed job", || Ok(server.tally()?.requests > 0))?;
        seconds.push(server.tally()?.first.saturating_sub(begun).as_secs_f64());
        running.kill()?;
    }
    place.remove(&output)?;
    let figure = Spread::of(seconds);
    Ok(vec![Row {
        measure: format!(
            "start of a resumed job ({} lines, half done) to its first new request",
            grouped(number(lines))
        ),
        floor: Bound::AtMost(2.0),
        aim: Some(Bound::AtMost(0.3)),
        unit: Unit::Seconds,
        figure,
        judged: figure.median,
        details: vec!["each round was killed (`kill -9`) soon after its first request".to_owned()],
        commands: vec![run.to_string()],
    }])
}
