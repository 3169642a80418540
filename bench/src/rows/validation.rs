//! Megabytes a second that `penstock validate` reads and checks on one core.

use std::fs;

use crate::{
    error::BenchError,
    input::{Format, MODEL},
    process::{Cores, Invocation},
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number},
    workplace::Workplace,
};

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    Format::ALL.into_iter().map(|format| validate(place, format)).collect()
}

fn validate(place: &Workplace, format: Format) -> Result<Row, BenchError> {
    let lines = place.sizes.validated_lines;
    let input = place.input(format, lines)?;
    let source = input.display().to_string();
    let invocation = Invocation::new(Cores::Second, &place.penstock, ["validate", &source, "--model", MODEL]);
    // The first pass brings the file into the page cache and is not counted.
    invocation.run(&place.said())?;
    let in_file = |source| BenchError::File { path: input.clone(), source };
    let megabytes = number(fs::metadata(&input).map_err(in_file)?.len()) / 1e6;
    let (mut rates, mut core_rates) = (Vec::new(), Vec::new());
    for _ in 0..place.sizes.rounds {
        let used = invocation.run(&place.said())?;
        rates.push(megabytes / used.wall.as_secs_f64());
        core_rates.push(megabytes / used.busy.as_secs_f64());
    }
    place.remove(&input)?;
    let figure = Spread::of(rates);
    Ok(Row {
        measure: format!("validation on one core, {}", format.name()),
        floor: Bound::AtLeast(300.0),
        aim: Some(Bound::AtLeast(1_000.0)),
        unit: Unit::MegabytesPerSecond,
        figure,
        judged: figure.median,
        details: vec![format!(
            "{} lines, {megabytes:.0} MB in the page cache, over the whole time of the process; by core time {:.0} MB/s",
            grouped(number(lines)),
            Spread::of(core_rates).median
        )],
        commands: vec![invocation.to_string()],
    })
}
