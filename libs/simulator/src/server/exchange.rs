//! One request and its answer.
//!
//! Owns the order of the steps: read, count, key, fault at the gate, model, limits, fault, slot, time, answer.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header, request::Parts};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio::{
    sync::SemaphorePermit,
    time::{sleep, timeout},
};

use super::{
    body::{AnswerBody, Dropped, Ending},
    metrics,
    places::AllTaken,
    provider::{InForce, Provider, now_ms},
    visit::Visit,
};
use crate::{
    answer::answer,
    dialect::{Context, Dialect, openai::models, spoken_at},
    distribution::Distribution,
    draw::{PromptHash, Purpose, draw},
    fault::{self, Circumstances, Fault},
    limit::{Claims, Exceeded, Finished, Readings},
    question::{Question, Route},
    refusal::Refusal,
    settings::ProviderSettings,
};

/// How long a client may take to send its body.
const BODY_DEADLINE: Duration = Duration::from_secs(30);

const WEB_PAGE: &str = "<!doctype html><html><head><title>Bad gateway</title></head>\
                        <body><h1>Something went wrong</h1></body></html>\n";

/// A request that could be read.
#[derive(Debug)]
enum Asked {
    Question(Question),
    Models,
}

/// What goes back to the client.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: AnswerBody,
    pub(super) output_tokens: u32,
}

/// Answers one request. An error closes the connection (with HTTP/2: resets the stream).
pub(super) async fn exchange(
    provider: Arc<Provider>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Dropped> {
    let in_force = provider.in_force();
    if metrics::is_asked(&request) {
        return Ok(metrics::answer(in_force.places.as_ref()));
    }
    let (head, body) = request.into_parts();
    let dialect = spoken_at(head.uri.path());
    let asked = understand(dialect, &head, body, in_force.settings.largest_request_bytes).await?;
    let question = match &asked {
        Ok(Asked::Question(question)) => Some(question),
        Ok(Asked::Models) | Err(_) => None,
    };
    let mut visit = Visit::start(provider, &in_force, dialect, &head, question)?;
    let served = match &asked {
        Ok(Asked::Question(question)) => serve(&mut visit, &in_force, dialect.key(&head), question).await,
        Ok(Asked::Models) => {
            Some(list_models(&in_force.settings, dialect.key(&head)).map_err(Refused::without_headers))
        }
        Err(refusal) => Some(Err(Refused::without_headers(refusal.clone()))),
    };
    match served {
        Some(Ok(reply)) => Ok(visit.answered(reply)),
        Some(Err(refused)) => {
            let reply = refuse(&visit, &in_force, refused, &head.uri, question).await;
            Ok(visit.answered(reply))
        }
        None => Err(visit.dropped()),
    }
}

/// A request that gets no result.
#[derive(Debug)]
struct Refused {
    refusal: Refusal,
    /// What every answer says about the limits, as far as they were asked.
    headers: HeaderMap,
}

impl Refused {
    fn without_headers(refusal: Refusal) -> Self {
        Self { refusal, headers: HeaderMap::new() }
    }
}

/// Reads a request. The outer error means that it never arrived in whole.
async fn understand(
    dialect: &dyn Dialect,
    head: &Parts,
    body: Incoming,
    most: usize,
) -> Result<Result<Asked, Refusal>, Dropped> {
    let target = match dialect.route(head) {
        Ok(Route::Ask(target)) => target,
        Ok(Route::Models) => return Ok(Ok(Asked::Models)),
        Err(refusal) => return Ok(Err(refusal)),
    };
    match timeout(BODY_DEADLINE, Limited::new(body, most).collect()).await {
        Ok(Ok(bytes)) => Ok(dialect.question(target, &bytes.to_bytes()).map(Asked::Question)),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Ok(Err(Refusal::TooLarge(most))),
        Ok(Err(_)) | Err(_) => Err(Dropped),
    }
}

/// The answer to a question, or `None` where the connection is to be dropped.
async fn serve(
    visit: &mut Visit,
    in_force: &InForce,
    key: Option<&str>,
    question: &Question,
) -> Option<Result<Reply, Refused>> {
    let settings = &in_force.settings;
    let mut headers = HeaderMap::new();
    let passed = pass(visit, settings, key, question, &mut headers);
    let admitted_at = visit.provider.elapsed();
    let place = match passed {
        Ok(()) => take_slot(visit, in_force).await?,
        Err(refusal) => Err(refusal),
    };
    let _slot = match place {
        Ok(slot) => slot,
        Err(refusal) => return Some(Err(Refused { refusal, headers })),
    };
    let reply = work(visit, settings, question, headers).await?;
    let finished = Finished {
        admitted_at,
        reserved_tokens: reserved_tokens(question),
        output_tokens: u64::from(reply.output_tokens),
    };
    let now = visit.provider.elapsed();
    visit.provider.limiter().settle(&settings.limits, now, finished);
    Some(Ok(reply))
}

/// Everything that can be refused before work begins, in the order in which providers do it. `headers` are
/// those of the answer, whichever it will be.
fn pass(
    visit: &mut Visit,
    settings: &ProviderSettings,
    key: Option<&str>,
    question: &Question,
    headers: &mut HeaderMap,
) -> Result<(), Refusal> {
    check_key(settings, key)?;
    let circumstances = Circumstances {
        key,
        prompt: question.prompt_hash,
        times_seen: visit.arrival.times_seen,
        now: visit.arrival.now,
    };
    let fault = fault::decide(settings.seed, &settings.faults, circumstances);
    let refusal = fault.and_then(|fault| fault.refusal(settings));
    if fault.is_some_and(Fault::is_before_limits) {
        visit.fault = fault;
        return refusal.map_or(Ok(()), Err);
    }
    if settings.models.as_ref().is_some_and(|models| !models.contains(&question.model)) {
        return Err(Refusal::ModelNotFound);
    }
    let (admitted, readings) = admit(&visit.provider, settings, question);
    let claims = Claims::new(settings.limits.headers, &readings);
    visit.dialect.write_limits(headers, &claims, SystemTime::now());
    admitted.map_err(Refusal::RateLimited)?;
    visit.fault = fault;
    refusal.map_or(Ok(()), Err)
}

/// A place to work in, if the server has only so many; `None` when the server gives up waiting for one.
async fn take_slot<'a>(
    visit: &Visit,
    in_force: &'a InForce,
) -> Option<Result<Option<SemaphorePermit<'a>>, Refusal>> {
    let Some(places) = &in_force.places else {
        return Some(Ok(None));
    };
    let place = visit.provider.abandon.run_until_cancelled(places.take()).await?;
    Some(place.map(Some).map_err(|AllTaken| Refusal::AllSlotsTaken))
}

/// Takes the time that an answer takes, and carries out the fault that damages it.
async fn work(
    visit: &Visit,
    settings: &ProviderSettings,
    question: &Question,
    headers: HeaderMap,
) -> Option<Reply> {
    let cut = visit.fault.and_then(Fault::cut);
    let answer =
        answer(visit.dialect, settings.seed, settings.output_length, question, cut, now_ms() / 1_000);
    let start = settings.latency.start_ms.sample(&mut draw(
        settings.seed,
        question.prompt_hash,
        visit.arrival.times_seen,
        Purpose::Latency,
    ));
    let tokens = settings.latency.per_output_token_ms * f64::from(answer.output_tokens);
    pause(&visit.provider, start + tokens).await?;
    let mut reply = Reply {
        status: StatusCode::OK,
        headers,
        body: AnswerBody::Whole(Bytes::new()),
        output_tokens: answer.output_tokens,
    };
    reply.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply.body = match visit.fault {
        Some(Fault::DropBeforeAnswer) => return None,
        Some(Fault::Hang) => {
            visit.provider.stop.cancelled().await;
            return None;
        }
        Some(Fault::DropInBody) => AnswerBody::half(&answer.body, Ending::Break),
        Some(Fault::TruncatedBody) => {
            reply.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(answer.body.len()));
            AnswerBody::half(&answer.body, Ending::Stop)
        }
        Some(Fault::NotJson) => {
            reply.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
            AnswerBody::Whole(Bytes::from_static(WEB_PAGE.as_bytes()))
        }
        Some(Fault::SlowBody { total_ms }) => AnswerBody::slow(answer.body, Duration::from_millis(total_ms)),
        Some(Fault::OversizedBody { bytes }) => AnswerBody::padded(answer.body, bytes),
        _ => AnswerBody::Whole(answer.body),
    };
    Some(reply)
}

fn admit(
    provider: &Provider,
    settings: &ProviderSettings,
    question: &Question,
) -> (Result<(), Exceeded>, Readings) {
    let limits = &settings.limits;
    if limits.requests.is_none() && limits.tokens.is_none() {
        return (Ok(()), Readings::default());
    }
    let now = provider.elapsed();
    let mut limiter = provider.limiter();
    let admitted = limiter.admit(limits, now, u64::from(question.input_tokens), reserved_tokens(question));
    (admitted, limiter.readings(now))
}

/// What a provider that charges up front takes for the answer.
fn reserved_tokens(question: &Question) -> u64 {
    u64::from(question.most_output_tokens.unwrap_or_default())
}

fn list_models(settings: &ProviderSettings, key: Option<&str>) -> Result<Reply, Refusal> {
    check_key(settings, key)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let body = AnswerBody::Whole(models(settings.models.as_deref()));
    Ok(Reply { status: StatusCode::OK, headers, body, output_tokens: 0 })
}

async fn refuse(
    visit: &Visit,
    in_force: &InForce,
    refused: Refused,
    uri: &Uri,
    question: Option<&Question>,
) -> Reply {
    let latency = in_force.settings.latency.refusal_ms;
    if latency != Distribution::Constant(0.0) {
        let prompt = visit.prompt.unwrap_or(PromptHash(visit.arrival.sequence));
        let mut random = draw(in_force.settings.seed, prompt, visit.arrival.times_seen, Purpose::Latency);
        // An abandoned refusal goes out early: it costs nothing.
        pause(&visit.provider, latency.sample(&mut random)).await;
    }
    let context =
        Context { uri, question, limits: &in_force.settings.limits, id: visit.id, now: SystemTime::now() };
    let told = visit.dialect.refusal(&refused.refusal, &context);
    let mut headers = refused.headers;
    headers.extend(told.headers);
    Reply { status: told.status, headers, body: AnswerBody::Whole(told.body), output_tokens: 0 }
}

/// Waits; `None` when the server gives up waiting.
async fn pause(provider: &Provider, milliseconds: f64) -> Option<()> {
    let duration = Duration::try_from_secs_f64(milliseconds / 1_000.0).unwrap_or(Duration::MAX);
    if duration.is_zero() {
        return Some(());
    }
    provider.abandon.run_until_cancelled(sleep(duration)).await
}

fn check_key(settings: &ProviderSettings, key: Option<&str>) -> Result<(), Refusal> {
    match key {
        _ if settings.api_keys.is_empty() => Ok(()),
        None => Err(Refusal::MissingKey),
        Some(key) if settings.api_keys.iter().any(|accepted| accepted == key) => Ok(()),
        Some(_) => Err(Refusal::WrongKey),
    }
}
