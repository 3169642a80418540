//! Waiting for a condition, until a deadline.

use std::{fmt::Display, future::Future, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

/// How often a condition is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// A condition that did not come true in time.
#[derive(Debug, thiserror::Error)]
#[error("wait for {what} within {} s: {last}", limit.as_secs())]
pub struct TooLate {
    what: String,
    limit: Duration,
    last: String,
}

/// Asks until the answer is a value. What it says instead, or its error, is told if the time is over.
pub async fn until<T, E: Display, F: Future<Output = Result<T, E>>>(
    what: &str,
    limit: Duration,
    mut ask: impl FnMut() -> F,
) -> Result<T, TooLate> {
    let deadline = Instant::now() + limit;
    let mut last = "no answer".to_owned();
    loop {
        match timeout_at(deadline, ask()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => return Err(TooLate { what: what.to_owned(), limit, last }),
        }
        if timeout_at(deadline, sleep(PAUSE)).await.is_err() {
            return Err(TooLate { what: what.to_owned(), limit, last });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_condition_is_asked_until_it_holds() {
        let asked = Cell::new(0);
        let ask = || async {
            asked.set(asked.get() + 1);
            if asked.get() == 3 { Ok(7) } else { Err("not yet") }
        };
        assert_eq!(until("seven", Duration::from_secs(1), ask).await.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_said_last_is_told_when_the_time_is_over() {
        let ask = || async { Err::<(), _>("still asleep") };
        let error = until("it to wake", Duration::from_secs(1), ask).await.unwrap_err();
        assert_eq!(error.to_string(), "wait for it to wake within 1 s: still asleep");
    }
}
