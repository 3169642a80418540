//! One request and its answer, or how it got lost. Acts, and decides nothing: what an outcome means is `classify`'s.

use std::{
    error::Error,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper_util::client::legacy;
use penstock_rate::Hints;
use tokio::time::{Instant, timeout};

use super::{dialect::Dialect, retry_after};
use crate::{budget::Reservation, client::Client};

/// The longest answer that is read, in bytes.
pub const LONGEST_ANSWER: usize = 8 << 20;

/// How often a request is sent once more that its server has not looked at.
const UNSEEN_RETRIES: u32 = 2;

/// Where providers put their name for a request.
const REQUEST_ID: [HeaderName; 3] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("apim-request-id"),
];

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// The provider's name for the request.
    pub request_id: Option<Box<str>>,
    /// How long the headers ask to wait.
    pub retry_after: Option<Duration>,
    /// What the headers say about the limits.
    pub hints: Hints,
    /// The body as it came, but without the API key, should the provider repeat it.
    pub body: Bytes,
    /// From sending to the last byte.
    pub latency: Duration,
}

impl Answer {
    /// What came over the wire, with what its headers say in `dialect`; `now` is when it came.
    pub fn new(
        dialect: Dialect,
        status: StatusCode,
        headers: &HeaderMap,
        body: Bytes,
        latency: Duration,
        now: SystemTime,
    ) -> Self {
        Self {
            status,
            request_id: request_id(headers),
            retry_after: retry_after::from_headers(headers, now),
            hints: dialect.hints(headers, now),
            body,
            latency,
        }
    }
}

/// A request that has no whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub kind: FailureKind,
    /// What the network said, without URL and key.
    pub detail: String,
    /// From sending to the failure.
    pub latency: Duration,
}

/// The ways in which an answer gets lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No connection: name resolution, TCP or TLS failed. The provider has not seen the request.
    Connect,
    /// The deadline passed first.
    Timeout,
    /// The connection broke before the answer began.
    Lost,
    /// The connection broke within the answer.
    Truncated,
    /// The answer is longer than [`LONGEST_ANSWER`].
    TooLarge,
}

impl FailureKind {
    /// The error code for records.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Connect => "connection_failed",
            Self::Timeout => "timeout",
            Self::Lost => "connection_lost",
            Self::Truncated => "response_truncated",
            Self::TooLarge => "response_too_large",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, detail, .. } = self;
        match kind {
            FailureKind::Connect => {
                write!(
                    formatter,
                    "no connection to the provider: {detail}; check the base URL, TLS files and network"
                )
            }
            FailureKind::Timeout => {
                write!(formatter, "{detail}; raise `request_timeout_seconds` if answers take longer")
            }
            FailureKind::Lost => {
                write!(
                    formatter,
                    "the provider closed the connection before it answered: {detail}; its logs may tell why"
                )
            }
            FailureKind::Truncated => {
                write!(formatter, "the answer broke off: {detail}; the provider's logs may tell why")
            }
            FailureKind::TooLarge => write!(formatter, "{detail}; ask for less in one line"),
        }
    }
}

/// Sends what `request` makes and reads its answer, which is in `dialect`, under `reservation`, within `limit` in all.
pub(super) async fn exchange(
    client: &Client,
    request: impl Fn() -> Request<Full<Bytes>>,
    dialect: Dialect,
    limit: Duration,
    reservation: &mut Reservation,
) -> Result<Answer, Failure> {
    let begun = Instant::now();
    let outcome = timeout(limit, answer(client, request, dialect, begun, reservation)).await;
    outcome
        .unwrap_or_else(|_| Err(Lost::new(FailureKind::Timeout, format!("no whole answer within {limit:?}"))))
        .map_err(|Lost { kind, detail }| Failure { kind, detail, latency: begun.elapsed() })
}

/// A [`Failure`] before its time is known.
struct Lost {
    kind: FailureKind,
    detail: String,
}

impl Lost {
    fn new(kind: FailureKind, detail: String) -> Self {
        Self { kind, detail }
    }

    fn before_answer(error: &legacy::Error) -> Self {
        let kind = if error.is_connect() { FailureKind::Connect } else { FailureKind::Lost };
        Self::new(kind, innermost(error))
    }
}

async fn answer(
    client: &Client,
    request: impl Fn() -> Request<Full<Bytes>>,
    dialect: Dialect,
    begun: Instant,
    reservation: &mut Reservation,
) -> Result<Answer, Lost> {
    let mut response = send(client, request).await.map_err(|error| Lost::before_answer(&error))?;
    let body = read(&mut response, reservation).await?;
    let headers = response.headers();
    Ok(Answer::new(dialect, response.status(), headers, body, begun.elapsed(), SystemTime::now()))
}

/// Sends a request, and again if the server says that it has not looked at it.
async fn send(
    client: &Client,
    request: impl Fn() -> Request<Full<Bytes>>,
) -> Result<Response<Incoming>, legacy::Error> {
    let mut again = 0;
    loop {
        match client.request(request()).await {
            Err(error) if again < UNSEEN_RETRIES && is_unseen(&error) => again += 1,
            outcome => return outcome,
        }
    }
}

/// Whether an HTTP/2 server has told that it will not process the request: it is about to close the connection, or has
/// refused the stream ([RFC 9113, 8.7](https://www.rfc-editor.org/rfc/rfc9113.html#section-8.7)).
fn is_unseen(error: &legacy::Error) -> bool {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.filter_map(|cause| cause.downcast_ref::<h2::Error>()).any(|error| {
        error.is_remote()
            && ((error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR))
                || (error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM)))
    })
}

/// The last error of a chain: the others only repeat that something failed.
fn innermost(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Reads a body to its end. Most come in one piece, which is kept as it is; several are gathered in one buffer, whose
/// whole capacity is reserved before it is allocated.
async fn read(response: &mut Response<Incoming>, reservation: &mut Reservation) -> Result<Bytes, Lost> {
    let announced = response.body().size_hint().exact().and_then(|length| usize::try_from(length).ok());
    check(announced.unwrap_or_default())?;
    let Some(first) = piece(response).await? else {
        return Ok(Bytes::new());
    };
    check(first.len())?;
    reservation.grow(first.len()).await;
    if response.body().is_end_stream() {
        return Ok(first);
    }
    let Some(second) = piece(response).await? else {
        return Ok(first);
    };
    let mut body = Vec::new();
    append(&mut body, &first, announced, reservation).await?;
    let mut next = Some(second);
    while let Some(bytes) = next {
        append(&mut body, &bytes, announced, reservation).await?;
        next = piece(response).await?;
    }
    Ok(body.into())
}

/// The next bytes of a body; trailers say nothing here.
async fn piece(response: &mut Response<Incoming>) -> Result<Option<Bytes>, Lost> {
    loop {
        match response.body_mut().frame().await.transpose() {
            Ok(Some(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
            Ok(None) => return Ok(None),
            Err(error) => return Err(Lost::new(FailureKind::Truncated, innermost(&error))),
        }
    }
}

async fn append(
    body: &mut Vec<u8>,
    bytes: &[u8],
    announced: Option<usize>,
    reservation: &mut Reservation,
) -> Result<(), Lost> {
    let length = body.len() + bytes.len();
    check(length)?;
    if length > body.capacity() {
        let capacity =
            announced.unwrap_or_default().max(length).max((2 * body.capacity()).min(LONGEST_ANSWER));
        reservation.grow(capacity - body.capacity()).await;
        body.reserve_exact(capacity - body.len());
    }
    body.extend_from_slice(bytes);
    Ok(())
}

fn check(length: usize) -> Result<(), Lost> {
    if length <= LONGEST_ANSWER {
        return Ok(());
    }
    Err(Lost::new(FailureKind::TooLarge, format!("the answer is longer than {LONGEST_ANSWER} bytes")))
}

fn request_id(headers: &HeaderMap) -> Option<Box<str>> {
    REQUEST_ID.iter().find_map(|name| headers.get(name)?.to_str().ok()).map(Into::into)
}
