//! Calls to the API server: each has a deadline, and their failures are told apart by what the caller does next.
//!
//! The client repeats nothing by itself: the controller's back-off does, with what it then sees.

use std::time::Duration;

use kube::Error;
use thiserror::Error as ThisError;
use tokio::time::timeout;

/// The longest that one call may take.
pub const CALL: Duration = Duration::from_secs(10);

/// A call that failed. Messages read after "failed to ...:".
#[derive(Debug, ThisError)]
pub enum CallError {
    /// The API server refused it, or did not understand it, or could not be reached.
    #[error(transparent)]
    Kube(#[from] Error),
    /// It did not answer in time.
    #[error("the API server did not answer within {} s", CALL.as_secs())]
    TimedOut,
}

impl CallError {
    /// There is no such object.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// The object is there already, or has changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// The operator lacks a right.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// The API server is away, or too busy: the same call may go through later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::TimedOut => true,
            Self::Kube(Error::Api(status)) => status.code == 429 || status.code >= 500,
            Self::Kube(error) => matches!(error, Error::HyperError(_) | Error::Service(_)),
        }
    }

    fn code(&self) -> Option<u16> {
        match self {
            Self::Kube(Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }
}

/// Makes a call that ends after [`CALL`] at the latest.
pub async fn bounded<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, CallError> {
    match timeout(CALL, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(CallError::TimedOut),
    }
}
