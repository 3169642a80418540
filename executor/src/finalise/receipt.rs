//! Receipt (F5-F6 of the job protocol): publish the proof, create-only, and read it back.

use bytes::Bytes;
use penstock_job::{Reason, Receipt, Step, document};
use penstock_storage::{ErrorKind, ObjectName};

use crate::{
    board::Board,
    error::RunError,
    output::{Output, jitter},
    state_object::REFUSED_PAUSE,
};

/// Writes the receipt unless there is one; whatever is there afterwards must say the same decision.
pub(super) async fn write(output: &Output, receipt: &Receipt, board: &Board) -> Result<Receipt, RunError> {
    let name = ObjectName::from_static(penstock_job::layout::RECEIPT);
    let content = Bytes::from(document::write(receipt));
    for attempt in 0u32.. {
        let result = output.create(Step::WriteReceipt, &name, content.clone()).await;
        if let Some((published, _)) = output.document::<Receipt>().await? {
            output.steps().after(Step::ReadReceipt).await;
            return if published.decision == receipt.decision {
                Ok(published)
            } else {
                Err(RunError::Foreign { name: name.to_string() })
            };
        }
        match result {
            Err(error) if error.kind() == ErrorKind::Refused => {
                board.raise(Reason::StorageRefused, error.to_string());
                tokio::time::sleep(REFUSED_PAUSE).await;
                board.clear(Reason::StorageRefused);
            }
            Err(error) if !error.ambiguous() => return Err(error.into()),
            _ => {
                tokio::time::sleep(jitter(std::time::Duration::from_millis(200), REFUSED_PAUSE, attempt))
                    .await;
            }
        }
    }
    unreachable!("the loop ends only by returning")
}
