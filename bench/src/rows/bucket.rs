//! A job in a bucket: how fast and in how little memory its input is read, and what publishing ten million lines takes
//! where every answer is a while away.

use std::{fs, path::Path, process::Stdio, time::Duration};

use super::IN_FLIGHT;
use crate::{
    answering::Answering,
    bucket::{Asked, Bucket, NAME},
    error::BenchError,
    input::Format,
    process::{Cores, Invocation},
    reading::Reading,
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number},
    workplace::Workplace,
};

/// How long an answer of the bucket takes in the rows of publishing.
const LATENCY_MS: u32 = 20;
const MEBIBYTE: f64 = 1_048_576.0;
const INPUT: &str = "input.jsonl";

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let mut rows = read(place)?;
    rows.extend(publish(place)?);
    Ok(rows)
}

/// Reads an input on one core, by turns as a job does and with a bare client; the bucket has the other core.
fn read(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let bucket = Bucket::start(&place.own, Cores::First, 0, place.folder())?;
    let source = place.input(Format::Prompts, place.sizes.bucket_input_lines)?;
    bucket.upload(&source, INPUT)?;
    place.remove(&source)?;
    let job = Invocation::new(Cores::Second, &place.own, ["read", &format!("gs://{NAME}/{INPUT}")])
        .variable("STORAGE_EMULATOR_HOST", bucket.url());
    let url = format!("{}/storage/v1/b/{NAME}/o/{INPUT}?alt=media", bucket.url());
    let bare = Invocation::new(Cores::Second, &place.own, ["read", "--bare", &url]);
    let (mut rates, mut bare_rates, mut more) = (Vec::new(), Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..place.sizes.rounds {
        let reading = reading(&job)?;
        bytes = reading.bytes;
        rates.push(number(reading.bytes) / 1e6 / reading.seconds);
        more.push(number(reading.peak_bytes.saturating_sub(reading.idle_bytes)) / MEBIBYTE);
        let reading = self::reading(&bare)?;
        bare_rates.push(number(reading.bytes) / 1e6 / reading.seconds);
    }
    let (figure, bare_figure) = (Spread::of(rates), Spread::of(bare_rates));
    let commands = vec![bucket.command().to_owned(), job.to_string(), bare.to_string()];
    let size = format!("{:.1} GB", number(bytes) / 1e9);
    let memory = Spread::of(more);
    Ok(vec![
        Row {
            measure: format!("reading {size} from a bucket, one core for the client"),
            floor: Bound::AtLeast(250.0),
            aim: Some(Bound::AtLeast(600.0)),
            unit: Unit::MegabytesPerSecond,
            figure,
            judged: figure.median,
            details: vec![format!(
                "{:.0} MB/s by a bare client in the same rounds: {:.2} of that",
                bare_figure.median,
                figure.median / bare_figure.median
            )],
            commands: commands.clone(),
        },
        Row {
            measure: format!("memory while reading {size} from a bucket, above that of the open input"),
            floor: Bound::AtMost(32.0),
            aim: Some(Bound::AtMost(16.0)),
            unit: Unit::Mebibytes,
            figure: memory,
            judged: memory.most,
            details: vec!["the most of the rounds".to_owned()],
            commands,
        },
    ])
}

fn reading(invocation: &Invocation) -> Result<Reading, BenchError> {
    let failed = |source| BenchError::Start { command: invocation.to_string(), source };
    let output = invocation.command().stderr(Stdio::inherit()).output().map_err(failed)?;
    serde_json::from_slice(&output.stdout).map_err(|_| BenchError::Answer {
        command: invocation.to_string(),
        said: String::from_utf8_lossy(&output.stdout).into_owned(),
    })
}

/// One job in a bucket.
struct Published {
    /// From the last answer of the provider to the receipt.
    publishing: Duration,
    /// The same to the end of the process.
    finalising: Duration,
    whole: Duration,
    asked: Asked,
    commands: Vec<String>,
}

fn publish(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let lines = place.sizes.bucket_lines;
    let job = run(place, lines)?;
    let parts = job.asked.parts;
    let name = format!(
        "{} parts, {} lines, the bucket {LATENCY_MS} ms away",
        grouped(number(parts)),
        grouped(number(lines))
    );
    let row = |measure: String, floor, aim, unit, figure: f64, detail: String| Row {
        measure,
        floor,
        aim,
        unit,
        figure: Spread::of([figure]),
        judged: figure,
        details: vec![detail],
        commands: job.commands.clone(),
    };
    let objects = number(job.asked.objects) * 1e6 / number(lines);
    Ok(vec![
        row(
            format!("from the last answer to the receipt, {name}"),
            Bound::AtMost(60.0),
            Some(Bound::AtMost(20.0)),
            Unit::Seconds,
            job.publishing.as_secs_f64(),
            format!(
                "{:.0} s in all; last parts, reconciling, composing and receipt",
                job.whole.as_secs_f64()
            ),
        ),
        row(
            format!("from the last answer to the exit, {name}"),
            Bound::AtMost(60.0),
            Some(Bound::AtMost(20.0)),
            Unit::Seconds,
            job.finalising.as_secs_f64(),
            "the same, and every part deleted".to_owned(),
        ),
        row(
            format!("compose calls, {name}"),
            Bound::AtMost(700.0),
            None,
            Unit::Calls,
            number(job.asked.composes),
            "32 sources a call, by the bucket's log".to_owned(),
        ),
        row(
            format!("parts and intermediate objects downloaded after the first compose, {name}"),
            Bound::AtMost(0.0),
            None,
            Unit::Mebibytes,
            number(job.asked.downloaded_bytes) / MEBIBYTE,
            format!("{} bytes, by the bucket's log", job.asked.downloaded_bytes),
        ),
        row(
            format!("parts, compose and fixed objects for 1,000,000 lines, {name}"),
            Bound::AtMost(2_100.0),
            Some(Bound::AtMost(2_075.0)),
            Unit::Objects,
            objects,
            format!(
                "{} writes and composes that were applied, by the bucket's log, checkpoints included",
                job.asked.objects
            ),
        ),
    ])
}

fn run(place: &Workplace, lines: u64) -> Result<Published, BenchError> {
    let mut bucket = Bucket::start(&place.own, Cores::Both, LATENCY_MS, place.folder())?;
    let input = place.input(Format::Prompts, lines)?;
    let scratch = place.output("state")?;
    fs::create_dir_all(&scratch).map_err(|source| BenchError::File { path: scratch.clone(), source })?;
    let mut server = Answering::start(&place.own, Cores::Both)?;
    let target = format!("gs://{NAME}/out");
    let run = place
        .penstock_run(Cores::Both, &input, Path::new(&target), &server.url, IN_FLIGHT)
        .variable("STORAGE_EMULATOR_HOST", bucket.url())
        .variable("XDG_STATE_HOME", &scratch.display().to_string());
    let running = run.start(&place.said())?;
    let begun = running.begun_at;
    let used = running.finish()?;
    let last = server.tally()?.last;
    let finalising = (begun + used.wall).saturating_sub(last);
    let asked = bucket.asked()?;
    let publishing = asked.receipt_at.saturating_sub(last);
    place.remove(&input)?;
    place.remove(&scratch)?;
    let commands = vec![bucket.command().to_owned(), server.command().to_owned(), run.to_string()];
    Ok(Published { publishing, finalising, whole: used.wall, asked, commands })
}
