//! The checkpoint loop (R5 of the job protocol): `state.json` is written at a fixed interval even if nothing changed,
//! since the write is also how an executor learns that its claim is gone.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{halt::Halt, ledger::Ledger};

/// Writes checkpoints until `done`, or until one fails and halts the run. A write under way is finished.
pub(crate) async fn checkpoint(ledger: Ledger, every: Duration, halt: Halt, done: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = halt.wait() => return,
            () = done.cancelled() => return,
        }
        if let Err(cause) = ledger.checkpoint().await {
            return halt.because(cause);
        }
    }
}
