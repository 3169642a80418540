//! Patience with storage: every call has a deadline, and what may work the next time is repeated a bounded number of
//! times. Which write may be repeated is decided by its caller, who reads back first.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use penstock_storage::{Action, Chunks, ErrorKind, Input, StorageError};
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

/// All bytes of an input in order. A reading that breaks off is begun again where it did.
#[derive(Debug)]
pub(crate) struct Resumed<'a> {
    input: &'a dyn Input,
    chunks: Box<dyn Chunks + 'a>,
    done_bytes: u64,
}

impl<'a> Resumed<'a> {
    /// From the start of `input`.
    pub(crate) fn new(input: &'a dyn Input) -> Self {
        Self { input, chunks: input.chunks(0..input.size_bytes()), done_bytes: 0 }
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, StorageError> {
        let mut repeats = Repeats::new(Duration::ZERO);
        loop {
            match within_deadline(Action::Read, self.input.uri(), self.chunks.next()).await {
                Ok(chunk) => {
                    self.done_bytes += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
                    return Ok(chunk);
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    repeats.after(error).await?;
                    self.chunks = self.input.chunks(self.done_bytes..self.input.size_bytes());
                }
                Err(error) => return Err(error),
            }
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

    /// An input of two reads and a half, of which the first fails and every second one after it.
    #[derive(Debug)]
    struct Breaking(penstock_storage::Generation, std::sync::atomic::AtomicUsize);

    const SIZE: usize = 1_300_000;

    #[async_trait::async_trait]
    impl Input for Breaking {
        fn uri(&self) -> &'static str {
            "memory"
        }

        fn generation(&self) -> &penstock_storage::Generation {
            &self.0
        }

        fn size_bytes(&self) -> u64 {
            SIZE as u64
        }

        async fn read(&self, range: std::ops::Range<u64>) -> Result<Bytes, StorageError> {
            if self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed).is_multiple_of(2) {
                failing(ErrorKind::Unavailable)?;
            }
            Ok(range.map(|offset| u8::try_from(offset % 251).unwrap()).collect())
        }

        async fn verify_unchanged(&self) -> Result<(), StorageError> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_that_breaks_off_goes_on_where_it_did() {
        let input = Breaking(penstock_storage::Generation::new("1"), 0.into());
        let mut chunks = Resumed::new(&input);
        let mut found = Vec::new();
        while let Some(chunk) = chunks.next().await.unwrap() {
            found.extend_from_slice(&chunk);
        }
        let expected: Vec<_> = (0..SIZE).map(|offset| u8::try_from(offset % 251).unwrap()).collect();
        assert!(found == expected, "{} bytes came", found.len());
        assert!(input.1.load(std::sync::atomic::Ordering::Relaxed) > 3, "the fixture did not fail");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_answer_ends() {
        let hanging = retry::<(), _>(Action::Read, "a", std::future::pending).await;
        assert_eq!(hanging.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
