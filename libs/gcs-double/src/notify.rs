//! Notifications: each object that is finalized is told to a URL as a `CloudEvent`, in the form of Eventarc.
//!
//! At least once: an event is sent again until it is accepted. On demand some come twice or out of order, as they
//! do from the real service.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::Notify, time};
use url::Url;

use crate::{draw::draw, event::Event};

/// How long a receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it waits after an event that was not accepted.
const PAUSE: Duration = Duration::from_millis(200);

/// Where finalized objects are told, and how badly.
#[derive(Debug, Clone, PartialEq)]
pub struct NotificationSettings {
    /// Where events are posted, such as `http://127.0.0.1:8000/events`.
    pub url: Url,
    /// The share of the events that come twice, from 0 to 1.
    pub duplicated: f64,
    /// The share of the events that come after one that was later, from 0 to 1.
    pub disordered: f64,
}

impl NotificationSettings {
    /// Each event once it is accepted, none on purpose twice or late.
    pub fn once_and_in_order(url: Url) -> Self {
        Self { url, duplicated: 0.0, disordered: 0.0 }
    }
}

/// The events that are still to be told.
#[derive(Debug)]
pub(crate) struct Outbox {
    settings: NotificationSettings,
    seed: u64,
    waiting: Mutex<VecDeque<Event>>,
    more: Notify,
}

/// Why an event was not accepted.
#[derive(Debug, thiserror::Error)]
enum Unaccepted {
    #[error("reach the receiver: {0}")]
    Connect(#[from] io::Error),
    #[error("send the event: {0}")]
    Send(#[from] hyper::Error),
    #[error("make the request: {0}")]
    Request(#[from] http::Error),
    #[error("the receiver took more than ten seconds")]
    Late(#[from] time::error::Elapsed),
    #[error("the receiver answered {0}")]
    Status(http::StatusCode),
}

impl Outbox {
    pub(crate) fn new(settings: NotificationSettings, seed: u64) -> Self {
        Self { settings, seed, waiting: Mutex::default(), more: Notify::new() }
    }

    /// Takes an event that is to be told.
    pub(crate) fn put(&self, event: Event) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
        self.more.notify_one();
    }

    /// Tells events until it is dropped.
    pub(crate) async fn tell(self: Arc<Self>) {
        loop {
            let Some(event) = self.next() else {
                self.more.notified().await;
                continue;
            };
            if let Err(error) = self.send(&event).await {
                tracing::debug!(%error, id = event.id, "an event was not accepted");
                self.put(event);
                time::sleep(PAUSE).await;
                continue;
            }
            if self.draw(&event, b"duplicated") < self.settings.duplicated
                && let Err(error) = self.send(&event).await
            {
                tracing::debug!(%error, id = event.id, "an event was not accepted a second time");
            }
        }
    }

    /// The next event, or the one after it.
    fn next(&self) -> Option<Event> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let later = waiting.front().is_some_and(|first| {
            waiting.len() > 1 && self.draw(first, b"disordered") < self.settings.disordered
        });
        if later { waiting.remove(1) } else { waiting.pop_front() }
    }

    fn draw(&self, event: &Event, purpose: &[u8]) -> f64 {
        draw(&[&self.seed.to_le_bytes(), purpose, event.id.as_bytes()], 0)
    }

    async fn send(&self, event: &Event) -> Result<(), Unaccepted> {
        let response = time::timeout(PATIENCE, self.post(event)).await??;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(Unaccepted::Status(status)),
        }
    }

    async fn post(&self, event: &Event) -> Result<Response<Incoming>, Unaccepted> {
        let url = &self.settings.url;
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(80);
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let mut request = Request::post(path)
            .header(header::HOST, format!("{host}:{port}"))
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in event.headers() {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(event.data.to_string())))?;
        let exchange = sender.send_request(request);
        tokio::pin!(connection, exchange);
        tokio::select! {
            answered = &mut exchange => Ok(answered?),
            ended = &mut connection => {
                ended?;
                Ok(exchange.await?)
            }
        }
    }
}
