//! Refusals as the JSON API words them.

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use crate::{
    body::{self, Body},
    bucket::{Kind, Refusal},
};

/// The answer to a request that is refused; in plain text where content was asked for, as the service does it.
pub(super) fn response(refusal: &Refusal, media: bool) -> Response<Body> {
    let kind = refusal.kind();
    let status = StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let domain = if status == StatusCode::TOO_MANY_REQUESTS { "usageLimits" } else { "global" };
    let message = refusal.to_string();
    let (content_type, text) = if status == StatusCode::NOT_MODIFIED {
        ("text/plain; charset=UTF-8", String::new())
    } else if media {
        ("text/html; charset=UTF-8", message)
    } else {
        let mut error = json!({ "message": message, "domain": domain, "reason": reason(kind) });
        if kind == Kind::ConditionNotMet {
            error["locationType"] = json!("header");
            error["location"] = json!("If-Match");
        }
        let value = json!({ "error": { "code": status.as_u16(), "message": message, "errors": [error] } });
        ("application/json; charset=UTF-8", value.to_string())
    };
    let mut response = Response::new(body::whole(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Refusal::RangeNotSatisfiable { length } = refusal
        && let Ok(range) = HeaderValue::try_from(format!("bytes */{length}"))
    {
        headers.insert(header::CONTENT_RANGE, range);
    }
    response
}

/// The reason.
fn reason(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "notFound",
        Kind::Conflict => "conflict",
        Kind::ConditionNotMet => "conditionNotMet",
        Kind::NotModified => "notModified",
        Kind::RateLimited | Kind::Failed(429) => "rateLimitExceeded",
        Kind::Invalid => "invalid",
        Kind::Required => "required",
        Kind::RangeNotSatisfiable => "requestedRangeNotSatisfiable",
        Kind::Gone => "gone",
        Kind::NotServed => "notImplemented",
        Kind::Failed(401) => "authError",
        Kind::Retained => "retentionPolicyNotMet",
        Kind::Failed(403) => "forbidden",
        Kind::Failed(408) => "requestTimeout",
        Kind::Failed(_) => "backendError",
    }
}
