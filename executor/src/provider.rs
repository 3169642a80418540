//! The provider: turns lines into requests, sends them, and says what became of them.
//!
//! Owns everything that knows how a provider is spoken to: clients, keys, routes, bodies, and what its answers mean
//! ([`classify()`]). What differs between providers is their [`Dialect`]'s. When to send, how often and how fast is
//! decided elsewhere; so is what is written about an outcome.

mod account;
mod classify;
mod dialect;
mod duration;
mod error_body;
mod exchange;
mod frame;
mod hints;
mod key;
mod load;
mod output_bound;
mod oversize;
mod refusal;
mod reply;
mod request;
mod resumption;
mod retry_after;
mod route;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::Full;
use penstock_batchfile::Rejection;
use penstock_job::{
    CanonicalSpec,
    spec::{BaseUrlError, ProviderSpec},
};
use serde_json::value::RawValue;
use thiserror::Error;

pub use crate::client::ClientError;
pub use account::Account;
pub use classify::{Cause, Disposition, classify};
pub use dialect::Dialect;
pub use exchange::{Answer, Failure, FailureKind, LONGEST_ANSWER};
pub use key::KeyError;
pub use load::Load;
pub use oversize::never_fits;
pub use reply::{Reply, Response};
pub use resumption::{Resumption, in_words};

use self::{
    exchange::exchange,
    output_bound::output_bound,
    request::Composer,
    route::{Route, Routing},
};
use crate::{budget::Reservation, client::Pools};

/// One job's provider. Clones share clients and keys.
#[derive(Debug, Clone)]
pub struct Provider {
    dialect: Dialect,
    composer: Arc<Composer>,
    routing: Arc<Routing>,
    request_timeout: Duration,
}

/// A line, ready to be sent, and to be sent again.
#[derive(Debug, Clone)]
pub struct PreparedRequest {
    /// The line's id, as it stands there.
    pub id: Box<RawValue>,
    /// Where it goes.
    pub uri: Uri,
    /// The body, often a slice of the line.
    pub body: Bytes,
    /// Tokens of the body, estimated.
    pub input_tokens: u32,
    /// Tokens that it allows its answer; `None` where it sets no bound.
    pub output_bound: Option<u32>,
    route: Arc<Route>,
}

/// Why a line cannot be sent.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The job has routes, and none for the line's model. The line fails, others go on.
    #[error(
        "find a route for the model `{0}`: add one to the provider's `routes`, or correct the model's name"
    )]
    ModelNotFound(Box<str>),
    /// The model is part of a URL, which it is too long for.
    #[error("make a URL with the model `{0}`: it is too long; correct the model's name")]
    NoAddress(Box<str>),
    /// Validation has let the line through, so this is a defect or the input changed.
    #[error("read a validated line: {0}")]
    Invalid(Rejection),
}

/// Why a provider cannot be used.
#[derive(Debug, Error)]
pub enum ProviderError {
    /// Nothing says where the provider is.
    #[error("find the provider: it has no base URL; pass --base-url, for example http://localhost:8000/v1")]
    NoBaseUrl,
    /// A base URL is malformed.
    #[error(transparent)]
    BaseUrl(#[from] BaseUrlError),
    /// A base URL is no URL that can be asked.
    #[error("find the provider: `{0}` cannot be asked; correct the base URL")]
    NoAddress(String),
    /// A key cannot be had.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No client can be made.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl PrepareError {
    /// The error code for records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ModelNotFound(_) | Self::NoAddress(_) => "model_not_found",
            Self::Invalid(_) => "invalid_line",
        }
    }
}

impl Provider {
    /// Reads keys and TLS files and makes the clients, for at most `in_flight` requests at once. Nothing is sent.
    ///
    /// `request_timeout` bounds each request from its sending to the last byte of its answer.
    pub fn connect(
        spec: &CanonicalSpec,
        provider: &ProviderSpec,
        request_timeout: Duration,
        in_flight: usize,
    ) -> Result<Self, ProviderError> {
        Ok(Self {
            dialect: Dialect::of(spec),
            composer: Arc::new(Composer::new(spec)),
            routing: Arc::new(Routing::new(spec, provider, Pools::new(in_flight))?),
            request_timeout,
        })
    }

    /// What is spoken to it, which its answers are classified by.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whose limits requests for a model use up; `None` of a model that has no route.
    pub fn account(&self, model: &str) -> Option<Account> {
        self.routing.of(model).map(|route| route.account())
    }

    /// The base URL of the server of a model; `None` of a model that has no route.
    pub fn server(&self, model: &str) -> Option<&str> {
        self.routing.of(model).map(|route| route.server())
    }

    /// Asks the server of a model what it works on; `None` where it does not tell, as hosted providers do not.
    pub async fn load(&self, model: &str) -> Option<Load> {
        load::ask(self.routing.of(model)?).await
    }

    /// Makes the request for a line, given without its terminator.
    pub fn prepare(&self, line: &Bytes) -> Result<PreparedRequest, PrepareError> {
        let composed = self.composer.compose(line).map_err(PrepareError::Invalid)?;
        let model = composed.model.as_ref();
        let route = self.routing.of(model).ok_or_else(|| PrepareError::ModelNotFound(model.into()))?;
        let uri = route.uri(model).map_err(|_| PrepareError::NoAddress(model.into()))?;
        Ok(PreparedRequest {
            id: composed.id.to_raw_value(),
            uri,
            output_bound: output_bound(&composed.body),
            body: composed.body,
            input_tokens: composed.input_tokens,
            route: Arc::clone(route),
        })
    }

    /// Sends a request once and waits for the whole answer, at most the request timeout. The answer is held under
    /// `reservation`.
    pub async fn send(
        &self,
        request: &PreparedRequest,
        reservation: &mut Reservation,
    ) -> Result<Answer, Failure> {
        let route = &request.route;
        let key = route.key();
        let outgoing = || {
            let mut outgoing = Request::new(Full::new(request.body.clone()));
            *outgoing.method_mut() = Method::POST;
            *outgoing.uri_mut() = request.uri.clone();
            *outgoing.headers_mut() = route.headers(key.as_ref());
            outgoing
        };
        let lease = route.pool.lease();
        let mut answer =
            exchange(lease.client(), outgoing, self.dialect, self.request_timeout, reservation).await?;
        if let Some(key) = key {
            answer.body = key.redact(answer.body);
        }
        Ok(answer)
    }

    /// Reads the keys that stand in files again and says whether any is another one: to be called after a 401 or 403,
    /// and from time to time while the job is held up by it. Where a file cannot be read the old key stays; that is
    /// logged, and hides no change of another.
    pub async fn refresh_keys(&self) -> bool {
        let routes = self.routing.all();
        let refresh = move || {
            let mut changed = false;
            for key in routes.iter().filter_map(|route| route.key.as_ref()) {
                match key.refresh() {
                    Ok(is_another) => changed |= is_another,
                    Err(error) => tracing::warn!("the old key stays in use: failed to {error}"),
                }
            }
            changed
        };
        // A runtime that is shutting down reads no more files, and nobody asks for keys then.
        tokio::task::spawn_blocking(refresh).await.unwrap_or(false)
    }
}
