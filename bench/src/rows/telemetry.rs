//! What counters and log cost a request: the whole path with and without a log, and the operations by themselves.
//!
//! There is no exporter of metrics: what a request pays today is a few atomic counters, its share of a lock around the
//! outcome counts, and the look of a log event that is not wanted.

use std::{
    hint::black_box,
    io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use tracing_subscriber::EnvFilter;

use super::{IN_FLIGHT, requests::round};
use crate::{
    answering::Answering,
    error::BenchError,
    input::Format,
    process::Cores,
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number},
    workplace::Workplace,
};

/// Log filters: the one of `penstock run` by default, and nothing at all.
const USUAL: &str = "warn,penstock_executor::board=off";
const OFF: &str = "off";

/// More rounds than elsewhere: the difference is small against the noise of each.
const ROUNDS_FACTOR: usize = 3;

/// How often the operations of one request are repeated to be timed.
const REPETITIONS: u64 = 10_000_000;

pub(super) fn measure(place: &Workplace) -> Result<Vec<Row>, BenchError> {
    let requests = place.sizes.requests;
    let input = place.input(Format::OpenAi, requests)?;
    let mut server = Answering::start(&place.own, Cores::First)?;
    let (mut differences, mut commands) = (Vec::new(), Vec::new());
    for _ in 0..place.sizes.rounds * ROUNDS_FACTOR {
        let mut busy = |filter| -> Result<f64, BenchError> {
            let output = place.output("out")?;
            let run = place.penstock_run(Cores::Second, &input, &output, &server.url, IN_FLIGHT);
            let run = run.variable("PENSTOCK_LOG", filter);
            let core_time = round(&mut server, &run, &place.said(), requests)?.core_time;
            if commands.len() < 2 {
                commands.push(run.to_string());
            }
            Ok(core_time)
        };
        differences.push(busy(USUAL)? - busy(OFF)?);
    }
    place.remove(&place.output("out")?)?;
    let difference = Spread::of(differences);
    let alone = operations();
    let judged = difference.median.max(alone);
    Ok(vec![Row {
        measure: "cost of counters and log on the path of one request".to_owned(),
        floor: Bound::AtMost(100.0),
        aim: Some(Bound::AtMost(10.0)),
        unit: Unit::Microseconds,
        figure: difference,
        judged,
        details: vec![
            format!(
                "time on the core for a request with the usual log less that without: {:.2} us (from {:.2} to {:.2}, \
                 which is the noise)",
                difference.median, difference.least, difference.most
            ),
            format!(
                "six atomic counters, one lock with a count, one unwanted log event, alone: {alone:.3} us, {} times; the \
                 larger of the two is held against the floor",
                grouped(number(REPETITIONS))
            ),
        ],
        commands,
    }])
}

/// Microseconds for what one request does to counters and log.
fn operations() -> f64 {
    let subscriber = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(USUAL)).with_writer(io::sink);
    tracing::subscriber::with_default(subscriber.finish(), || {
        let counters: [AtomicU64; 6] = Default::default();
        let outcomes = Mutex::new([0u64; 5]);
        let begun = Instant::now();
        for request in 0..REPETITIONS {
            for counter in black_box(&counters) {
                counter.fetch_add(1, Relaxed);
            }
            black_box(&outcomes).lock().unwrap_or_else(PoisonError::into_inner)[0] += 1;
            tracing::debug!(request, "answered");
        }
        begun.elapsed().as_secs_f64() * 1e6 / number(REPETITIONS)
    })
}
