//! Peak resident memory of a large job, and how much more it is than that of a small one.

use crate::{
    answering::Answering,
    error::BenchError,
    input::Format,
    process::Cores,
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number},
    workplace::Workplace,
};

/// Lines of the small job.
const SMALL: u64 = 10_000;

/// Requests in flight: the fewest that `penstock run` takes by itself.
const IN_FLIGHT: u32 = 200;

const MEBIBYTE: f64 = 1_048_576.0;

/// What one run of a size came to.
struct Peak {
    mebibytes: f64,
    seconds: f64,
    command: String,
}

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for format in Format::ALL {
        let small = peak(place, format, SMALL)?;
        let large = peak(place, format, place.sizes.memory_lines)?;
        let (name, lines) = (format.name(), grouped(number(place.sizes.memory_lines)));
        rows.push(Row {
            measure: format!("peak resident memory, {lines} lines, {name}, duplicate check included"),
            floor: Bound::AtMost(128.0),
            aim: Some(Bound::AtMost(64.0)),
            unit: Unit::Mebibytes,
            figure: Spread::of([large.mebibytes]),
            judged: large.mebibytes,
            details: vec![format!("{:.0} s in all, {IN_FLIGHT} requests in flight", large.seconds)],
            commands: vec![large.command.clone()],
        });
        let more = (large.mebibytes - small.mebibytes).abs();
        rows.push(Row {
            measure: format!("peak memory at {lines} lines beyond that at 10,000, {name}"),
            floor: Bound::AtMost(16.0),
            aim: None,
            unit: Unit::Mebibytes,
            figure: Spread::of([more]),
            judged: more,
            details: vec![format!(
                "{:.1} MiB at 10,000 lines, {:.1} MiB at {lines}",
                small.mebibytes, large.mebibytes
            )],
            commands: vec![small.command, large.command],
        });
    }
    Ok(rows)
}

fn peak(place: &Workplace, format: Format, lines: u64) -> Result<Peak, BenchError> {
    let input = place.input(format, lines)?;
    let output = place.output("out")?;
    let server = Answering::start(&place.own, Cores::Both)?;
    let run = place.penstock_run(Cores::Both, &input, &output, &server.url, IN_FLIGHT);
    let used = run.run(&place.said())?;
    place.remove(&output)?;
    // It may have gigabytes.
    place.remove(&input)?;
    Ok(Peak {
        mebibytes: number(used.peak_bytes) / MEBIBYTE,
        seconds: used.wall.as_secs_f64(),
        command: run.to_string(),
    })
}
