//! Patience with storage: every call has a deadline, and what may work the next time is repeated a bounded number of
//! times. Which write may be repeated is decided by its caller, who reads back first.

use std::{future::Future, time::Duration};

use penstock_storage::{Action, ErrorKind, StorageError};
use tokio::time::{sleep, timeout};

/// How long one call may take. An upload of one file of rejected records is the longest.
const DEADLINE: Duration = Duration::from_mins(2);

/// How often a call is repeated: with the pauses below, for a quarter of a minute on average.
const REPEATS: u32 = 8;

/// Upper bound of the first pause; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Counts repeats and pauses before each, with full jitter.
#[derive(Debug)]
pub(crate) struct Repeats {
    made: u32,
    least_pause: Duration,
}

impl Repeats {
    /// No repeat yet; each will come after `least_pause` or later.
    pub(crate) fn new(least_pause: Duration) -> Self {
        Self { made: 0, least_pause }
    }

    /// Pauses before a repeat after `error`, or gives the error back when repeating is of no use (any more). A lost
    /// race may be run again, by a caller who has read back.
    pub(crate) async fn after(&mut self, error: StorageError) -> Result<(), StorageError> {
        let may_pass =
            matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Exists | ErrorKind::Changed);
        if !may_pass || self.made == REPEATS {
            return Err(error);
        }
        let jittered = FIRST_PAUSE.mul_f64(f64::from(1 << self.made) * fastrand::f64());
        sleep(jittered.max(self.least_pause)).await;
        self.made += 1;
        Ok(())
    }
}

/// Makes a call that changes nothing until it works or repeating is of no use.
pub(crate) async fn retry<T, F>(
    action: Action,
    object: &str,
    mut call: impl FnMut() -> F,
) -> Result<T, StorageError>
where
    F: Future<Output = Result<T, StorageError>>,
{
    let mut repeats = Repeats::new(Duration::ZERO);
    loop {
        match within_deadline(action, object, call()).await {
            Ok(value) => return Ok(value),
            Err(error) if error.kind() == ErrorKind::Unavailable => repeats.after(error).await?,
            Err(error) => return Err(error),
        }
    }
}

/// Makes one call; no answer in time is [`Unavailable`](ErrorKind::Unavailable).
pub(crate) async fn within_deadline<T>(
    action: Action,
    object: &str,
    call: impl Future<Output = Result<T, StorageError>>,
) -> Result<T, StorageError> {
    timeout(DEADLINE, call).await.unwrap_or_else(|_| {
        Err(StorageError::new(
            ErrorKind::Unavailable,
            action,
            object,
            format!("there was no answer for {} s", DEADLINE.as_secs()),
            "see whether the storage can be reached, then run the same command again",
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failing(kind: ErrorKind) -> Result<(), StorageError> {
        Err(StorageError::new(kind, Action::Read, "a", "of the test", "nothing helps"))
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_repeated_and_what_will_not_is_not() {
        for (kind, calls) in
            [(ErrorKind::Unavailable, REPEATS + 1), (ErrorKind::Refused, 1), (ErrorKind::Changed, 1)]
        {
            let made = Cell::new(0);
            let answer = retry(Action::Read, "a", || {
                made.set(made.get() + 1);
                async move { failing(kind) }
            })
            .await;
            assert_eq!(answer.unwrap_err().kind(), kind);
            assert_eq!(made.get(), calls);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_answer_ends() {
        let hanging = retry::<(), _>(Action::Read, "a", std::future::pending).await;
        assert_eq!(hanging.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
