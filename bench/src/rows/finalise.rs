//! From the last answer to the end of the process against copying the published bytes, and how many objects a job takes.

use std::{fs, io, path::Path, time::Duration, time::Instant};

use serde::Deserialize;

use super::IN_FLIGHT;
use crate::{
    answering::Answering,
    arguments::ONE_WORD,
    error::BenchError,
    input::Format,
    process::Cores,
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number, ratios},
    workplace::Workplace,
};

/// So many sources one compose call takes on an object store.
const SOURCES: u64 = 32;

/// The longest time between two checkpoints, in seconds.
const CHECKPOINT_SECONDS: u64 = 30;

/// What a job leaves behind, as far as it tells how many objects were made.
#[derive(Debug, Deserialize)]
struct Receipt {
    parts: Parts,
    outputs: Vec<Published>,
}

#[derive(Debug, Deserialize)]
struct Parts {
    count: u64,
}

#[derive(Debug, Deserialize)]
struct Published {
    name: String,
    size_bytes: u64,
}

#[derive(Debug, Deserialize)]
struct State {
    /// How often `state.json` was written.
    write: u64,
}

/// One job.
struct Finished {
    finalising: Duration,
    copying: Duration,
    bytes: u64,
    whole: Duration,
    receipt: Receipt,
    state: State,
    command: String,
}

/// What is answered, in bytes of text: a paragraph, and one word. Records of OpenAI lines hold the whole answer.
const CASES: [(Format, usize); 3] =
    [(Format::Prompts, 600), (Format::OpenAi, ONE_WORD), (Format::Prompts, ONE_WORD)];

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for (format, text) in CASES {
        let jobs = (1..=place.sizes.rounds)
            .map(|round| {
                let job = run(place, format, text)?;
                tell(place, format, text, round, &job);
                Ok(job)
            })
            .collect::<Result<Vec<_>, BenchError>>()?;
        let last = jobs.last().expect("invariant: a row has at least one round");
        rows.extend([finalising(place, format, &jobs, last), objects(place, format, last)]);
    }
    Ok(rows)
}

/// A row takes minutes, so each round is told of on stderr.
fn tell(place: &Workplace, format: Format, text: usize, round: usize, job: &Finished) {
    let Finished { finalising, copying, whole, .. } = job;
    eprintln!(
        "finalise, {}, answers of {text} bytes, round {round} of {}: {:.2} s against {:.2} s, after {:.0} s",
        format.name(),
        place.sizes.rounds,
        finalising.as_secs_f64(),
        copying.as_secs_f64(),
        whole.as_secs_f64()
    );
}

fn run(place: &Workplace, format: Format, text: usize) -> Result<Finished, BenchError> {
    let input = place.input(format, place.sizes.job_lines)?;
    let output = place.output("out")?;
    let mut server = Answering::with_text(&place.own, Cores::Both, text)?;
    let run = place.penstock_run(Cores::Both, &input, &output, &server.url, IN_FLIGHT);
    let running = run.start(&place.said())?;
    let begun = running.begun_at;
    let used = running.finish()?;
    let finalising = (begun + used.wall).saturating_sub(server.tally()?.last);
    let receipt: Receipt = document(&output.join("receipt.json"))?;
    let (copying, bytes) = copy(&output, &receipt)?;
    let state = document(&output.join("state.json"))?;
    place.remove(&output)?;
    Ok(Finished { finalising, copying, bytes, whole: used.wall, receipt, state, command: run.to_string() })
}

fn document<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, BenchError> {
    let in_file = |source| BenchError::File { path: path.to_owned(), source };
    serde_json::from_slice(&fs::read(path).map_err(in_file)?).map_err(|error| in_file(error.into()))
}

/// Copies what was published, durably, and says how long that took.
fn copy(output: &Path, receipt: &Receipt) -> Result<(Duration, u64), BenchError> {
    let begun = Instant::now();
    let copy = |name: &str| -> io::Result<()> {
        let mut copy = fs::File::create(output.join(format!("{name}.copy")))?;
        io::copy(&mut fs::File::open(output.join(name))?, &mut copy)?;
        copy.sync_all()
    };
    for published in &receipt.outputs {
        copy(&published.name).map_err(|source| BenchError::File { path: output.to_owned(), source })?;
    }
    Ok((begun.elapsed(), receipt.outputs.iter().map(|published| published.size_bytes).sum()))
}

fn finalising(place: &Workplace, format: Format, jobs: &[Finished], last: &Finished) -> Row {
    let seconds =
        |of: fn(&Finished) -> Duration| jobs.iter().map(|job| of(job).as_secs_f64()).collect::<Vec<_>>();
    let (finalising, copying) = (seconds(|job| job.finalising), seconds(|job| job.copying));
    let figure = ratios(&finalising, &copying);
    Row {
        measure: format!(
            "from the last answer to the exit over copying the same bytes, {} outcomes of {} bytes on file://, {}",
            grouped(number(place.sizes.job_lines)),
            last.bytes / place.sizes.job_lines,
            format.name()
        ),
        floor: Bound::AtMost(1.5),
        aim: Some(Bound::AtMost(1.0)),
        unit: Unit::Times,
        figure,
        judged: figure.median,
        details: vec![format!(
            "{:.2} s against {:.2} s for {:.0} MB, both with what they wrote forced to disk; last part, reading all parts \
             again, publishing and cleaning included",
            Spread::of(finalising).median,
            Spread::of(copying).median,
            number(last.bytes) / 1e6
        )],
        commands: vec![last.command.clone()],
    }
}

fn objects(place: &Workplace, format: Format, job: &Finished) -> Row {
    let (parts, published) = (job.receipt.parts.count, job.receipt.outputs.len() as u64);
    let timed = job.whole.as_secs() / CHECKPOINT_SECONDS;
    let states = job.state.write.saturating_sub(timed);
    let between = intermediates(parts);
    // validation.json and receipt.json.
    let documents = 2;
    let sum = number(parts + between + published + states + documents);
    Row {
        measure: format!(
            "parts, compose and fixed objects, {} lines, outcomes of {} bytes, {}",
            grouped(number(place.sizes.job_lines)),
            job.bytes / place.sizes.job_lines,
            format.name()
        ),
        floor: Bound::AtMost(2_100.0),
        aim: Some(Bound::AtMost(2_075.0)),
        unit: Unit::Objects,
        figure: Spread::of([sum]),
        judged: sum,
        details: vec![format!(
            "{parts} parts by the receipt; {between} intermediate objects by calculation ({SOURCES} sources a call; \
             file:// needs none), {published} published, {states} writes of state.json without {timed} timed \
             checkpoints, {documents} further documents"
        )],
        commands: vec![job.command.clone()],
    }
}

/// Objects between `parts` parts and the one published file on a store that composes so many sources a call.
fn intermediates(parts: u64) -> u64 {
    let (mut pieces, mut made) = (parts, 0);
    while pieces > SOURCES {
        pieces = pieces.div_ceil(SOURCES);
        made += pieces;
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composing_goes_level_by_level() {
        assert_eq!([1, 32, 33, 1_024, 2_000].map(intermediates), [0, 0, 2, 32, 63 + 2]);
    }
}
