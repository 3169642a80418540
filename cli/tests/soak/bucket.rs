//! How the storage double treats a run whose job is in a bucket: at its best, or with faults drawn from the seed.

use fastrand::Rng;
use penstock_gcs_double::{Calls, Fault, FaultRule, Operation};

/// The faults of one act; of a third of them none.
pub(crate) fn faults(random: &mut Rng) -> Vec<FaultRule> {
    (0..random.usize(0..3) * random.usize(1..3)).map(|_| rule(random)).collect()
}

fn rule(random: &mut Rng) -> FaultRule {
    let writes = || vec![Operation::Write, Operation::UploadChunk];
    let after_bytes = random.u64(0..5_000);
    let (fault, operations) = match random.u8(0..9) {
        0..3 => (Fault::ErrorBefore { status: random.choice([429, 500, 503]).unwrap() }, Vec::new()),
        3..5 => (Fault::ErrorAfter { status: random.choice([500, 503]).unwrap() }, Vec::new()),
        5 => (Fault::BreakResponse { after_bytes }, vec![Operation::Read]),
        6 => (Fault::BreakResponse { after_bytes: 0 }, writes()),
        7 => (Fault::BreakRequest { after_bytes }, writes()),
        _ => (Fault::Delay { milliseconds: random.u64(10..1_000) }, Vec::new()),
    };
    FaultRule { operations, calls: Calls::Share(0.06 * random.f64()), ..FaultRule::always(fault) }
}
