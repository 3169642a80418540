//! Which rows of a table are run in a bucket too: there each takes seconds, since a name changes once a second.

use std::env;

/// One row in so many is run where nothing else is said.
const ONE_IN: usize = 6;

/// Rows evenly drawn; `PENSTOCK_CRASH_BUCKET=1` takes every one, another number one in so many.
pub(crate) fn drawn<R>(rows: Vec<R>) -> Vec<R> {
    let one_in = env::var("PENSTOCK_CRASH_BUCKET").map_or(ONE_IN, |number| number.parse().unwrap());
    rows.into_iter().step_by(one_in).collect()
}
