//! The socket, the log of requests, and requests that go wrong on demand.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::bucket::{Attributes, Precondition};
use crate::service::Service;

const ACCESS_KEY_ID: &str = "AKIADOUBLE";
const SECRET_ACCESS_KEY: &str = "the-secret-of-the-double";

/// One request, as a plan and the log see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// How many requests came before.
    pub number: usize,
    /// Its method.
    pub method: Method,
    /// Bucket and key as in the URL: `/bucket/key`, percent-encoded.
    pub path: String,
    /// What follows `?` in the URL, which tells the operations of one method apart; empty without one.
    pub query: String,
}

/// How a request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not applied; answered with this status and S3 error code.
    Refused(u16, &'static str),
    /// Applied; answered with this status and S3 error code.
    Lost(u16, &'static str),
    /// Applied; the answer's body breaks off after so many bytes.
    Broken(usize),
    /// Not applied and never answered.
    Stalled,
}

type Plan = Box<dyn Fn(&Call) -> Option<Fault> + Send + Sync>;
type Reply = Response<UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>>;

/// A running double. It ends when it is dropped.
pub struct S3Double {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: AbortHandle,
}

struct Shared {
    service: Service,
    s3: S3Service,
    plan: Mutex<Plan>,
    calls: Mutex<Vec<Call>>,
}

impl S3Double {
    /// Starts a double with these buckets on a port of its own, whose listings have at most 1,000 objects a page.
    pub async fn start(buckets: &[&str]) -> io::Result<Self> {
        Self::with_pages_of(1_000, buckets).await
    }

    /// Like [`start`](Self::start) with at most so many objects a page, so that few objects fill many.
    pub async fn with_pages_of(objects: usize, buckets: &[&str]) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let service = Service::new(buckets, objects);
        let mut s3 = S3ServiceBuilder::new(service.clone());
        s3.set_auth(SimpleAuth::from_single(ACCESS_KEY_ID, SECRET_ACCESS_KEY));
        let s3 = s3.build();
        let shared =
            Arc::new(Shared { service, s3, plan: Mutex::new(Box::new(|_| None)), calls: Mutex::default() });
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, shared, serving })
    }

    /// Its URL; buckets are addressed in the path.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The id of the one key that it knows.
    pub fn access_key_id(&self) -> &'static str {
        ACCESS_KEY_ID
    }

    /// The secret of that key.
    pub fn secret_access_key(&self) -> &'static str {
        SECRET_ACCESS_KEY
    }

    /// Lets requests go wrong as `plan` says, in place of an earlier plan.
    pub fn fail(&self, plan: impl Fn(&Call) -> Option<Fault> + Send + Sync + 'static) {
        *locked(&self.shared.plan) = Box::new(plan);
    }

    /// All requests so far.
    pub fn calls(&self) -> Vec<Call> {
        locked(&self.shared.calls).clone()
    }

    /// Puts an object into a bucket, in place of what is there, stored with this `Content-Encoding`.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub fn put(&self, bucket: &str, key: &str, content: impl Into<Bytes>, content_encoding: Option<&str>) {
        let attributes =
            Attributes { content_encoding: content_encoding.map(str::to_owned), ..Attributes::default() };
        let put = self
            .shared
            .service
            .with(bucket, |bucket| bucket.put(key, content.into(), attributes, &Precondition::default()));
        put.expect("there is such a bucket");
    }

    /// What a bucket holds, by key; nothing for a bucket that there is not.
    pub fn contents(&self, bucket: &str) -> BTreeMap<String, Bytes> {
        let contents = self.shared.service.with(bucket, |bucket| {
            let objects = bucket.objects().iter();
            Ok(objects.map(|(key, object)| (key.clone(), object.content.clone())).collect())
        });
        contents.unwrap_or_default()
    }

    /// The `ETag` of an object as answers name it, without its quotation marks; `None` where there is no such object.
    pub fn e_tag(&self, bucket: &str, key: &str) -> Option<String> {
        let e_tag = self
            .shared
            .service
            .with(bucket, |bucket| Ok(bucket.objects().get(key).map(|object| object.e_tag.clone())));
        e_tag.ok().flatten()
    }

    /// How many uploads in parts were begun in a bucket and neither completed nor aborted.
    pub fn unfinished_uploads(&self, bucket: &str) -> usize {
        self.shared.service.with(bucket, |bucket| Ok(bucket.unfinished_uploads())).unwrap_or_default()
    }
}

impl fmt::Debug for S3Double {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("S3Double").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for S3Double {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    async fn reply(&self, request: Request<Incoming>) -> Result<Reply, Infallible> {
        let call = self.note(&request);
        let fault = (locked(&self.plan))(&call);
        Ok(match fault {
            None => self.answer(request).await,
            Some(Fault::Refused(status, code)) => error(status, code),
            Some(Fault::Lost(status, code)) => {
                self.answer(request).await;
                error(status, code)
            }
            Some(Fault::Broken(bytes)) => broken_after(bytes, self.answer(request).await),
            Some(Fault::Stalled) => std::future::pending().await,
        })
    }

    fn note<B>(&self, request: &Request<B>) -> Call {
        let mut calls = locked(&self.calls);
        let call = Call {
            number: calls.len(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
        };
        calls.push(call.clone());
        call
    }

    async fn answer(&self, request: Request<Incoming>) -> Reply {
        match self.s3.call(request.map(s3s::Body::from)).await {
            Ok(reply) => reply.map(http_body_util::BodyExt::boxed_unsync),
            Err(_) => error(500, "InternalError"),
        }
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(|request| shared.reply(request));
            // A client that goes away, or an answer that breaks off as it should, is no failure of the double.
            let _gone = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

fn error(status: u16, code: &str) -> Reply {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>As a test asked</Message></Error>"
    );
    let mut reply = Response::new(Full::from(body).map_err(|never| match never {}).boxed_unsync());
    *reply.status_mut() = StatusCode::from_u16(status).expect("a fault has a status of HTTP");
    reply
}

fn broken_after(bytes: usize, reply: Reply) -> Reply {
    reply.map(|body| {
        let data = BodyStream::new(body)
            .try_filter_map(|frame| async move { Ok(frame.into_data().ok()) })
            .scan(bytes, |left, chunk| {
                let chunk = chunk.map(|chunk: Bytes| chunk.slice(..chunk.len().min(*left)));
                *left -= chunk.as_ref().map_or(0, Bytes::len);
                std::future::ready(Some(chunk))
            })
            .try_filter(|chunk| std::future::ready(!chunk.is_empty()));
        let end = stream::once(async { Err("the double breaks off here, as a test asked".into()) });
        StreamBody::new(data.chain(end).map_ok(Frame::data)).boxed_unsync()
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
