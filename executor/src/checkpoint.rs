//! The checkpoint loop (R5 of the job protocol): `state.json` is written at a fixed interval even if nothing changed,
//! since the write is also how an executor learns that its claim is gone.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{halt::Halt, ledger::Ledger};

/// Writes checkpoints until `done`, or until one fails and halts the run. A write under way is finished, unless the run is
/// halted: the store may not take it for hours.
pub(crate) async fn checkpoint(ledger: Ledger, every: Duration, halt: Halt, done: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = halt.wait() => return,
            () = done.cancelled() => return,
        }
        let written = tokio::select! {
            written = ledger.checkpoint() => written,
            () = halt.wait() => return,
        };
        if let Err(cause) = written {
            return halt.because(cause);
        }
    }
}
