//! Signed URLs of version 4: requests of the XML API that bring their own right, told as requests of the JSON API.
//!
//! What can be checked without the keys of those who sign is checked: that nothing is missing, that the headers are there
//! which were signed, and that the time is not over (<https://cloud.google.com/storage/docs/authentication/signatures>).

use std::ops::Range;
use std::time::{Duration, SystemTime};

use http::{Method, Uri, request::Parts};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded::Serializer;

use super::query::Query;
use crate::bucket::Refusal;

/// The longest that a signature may hold.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// Makes a request with a signed URL one of the JSON API; leaves every other as it is.
pub(super) fn as_json_request(parts: &mut Parts, now: SystemTime) -> Result<(), Refusal> {
    let query = Query::read(parts.uri.query().unwrap_or_default());
    if query.get("X-Goog-Signature").is_none() {
        return Ok(());
    }
    check(parts, &query, now)?;
    let (bucket, object) = parts.uri.path().trim_start_matches('/').split_once('/').unwrap_or_default();
    let object =
        percent_decode_str(object).decode_utf8().map_err(|_| Refusal::invalid("the path is not UTF-8"))?;
    let resumable = parts.headers.get("x-goog-resumable").is_some_and(|value| value == "start");
    let upload = |kind| {
        let query = Serializer::new(String::new())
            .append_pair("uploadType", kind)
            .append_pair("name", &object)
            .finish();
        format!("/upload/storage/v1/b/{bucket}/o?{query}")
    };
    let (method, uri) = match parts.method {
        Method::GET => {
            let object = utf8_percent_encode(&object, NON_ALPHANUMERIC);
            (Method::GET, format!("/storage/v1/b/{bucket}/o/{object}?alt=media"))
        }
        Method::PUT => (Method::POST, upload("media")),
        Method::POST if resumable => (Method::POST, upload("resumable")),
        _ => return Err(Refusal::NotServed { what: format!("{} with a signed URL", parts.method) }),
    };
    parts.method = method;
    parts.uri = Uri::try_from(uri).map_err(|_| Refusal::NoSuchResource)?;
    Ok(())
}

fn check(parts: &Parts, query: &Query, now: SystemTime) -> Result<(), Refusal> {
    let required = |name| query.get(name).ok_or(Refusal::Required { what: name });
    if required("X-Goog-Algorithm")? != "GOOG4-RSA-SHA256" {
        return Err(Refusal::invalid("X-Goog-Algorithm"));
    }
    required("X-Goog-Credential")?;
    let signed = signed_at(required("X-Goog-Date")?).ok_or_else(|| Refusal::invalid("X-Goog-Date"))?;
    required("X-Goog-Expires")?;
    let holds = query.number("X-Goog-Expires")?.map(Duration::from_secs).unwrap_or_default();
    if holds > LONGEST {
        return Err(Refusal::invalid("X-Goog-Expires is more than 604800"));
    }
    if now > signed + holds {
        return Err(Refusal::Failed { status: 400, what: "The provided token has expired.".to_owned() });
    }
    let headers = required("X-Goog-SignedHeaders")?;
    match headers.split(';').find(|name| !parts.headers.contains_key(*name)) {
        None => Ok(()),
        Some(name) => Err(Refusal::Failed {
            status: 403,
            what: format!("The request signature we calculated does not match: {name} is missing."),
        }),
    }
}

/// The time that `20261121T233700Z` says.
fn signed_at(text: &str) -> Option<SystemTime> {
    let part = |range: Range<usize>| text.get(range);
    let rest = (part(8..9)?, part(15..text.len())?);
    let time = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0..4)?,
        part(4..6)?,
        part(6..8)?,
        part(9..11)?,
        part(11..13)?,
        part(13..15)?
    );
    humantime::parse_rfc3339(&time).ok().filter(|_| rest == ("T", "Z"))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const SIGNED: &str = "X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=a&X-Goog-Date=20261121T233700Z\
                          &X-Goog-Expires=60&X-Goog-SignedHeaders=host&X-Goog-Signature=00";

    /// The method and URL that a signed request comes to, so many seconds after it was signed.
    fn told(method: Method, header: &str, query: &str, seconds: u64) -> Result<(Method, String), Refusal> {
        let (name, value) = header.split_once(": ").unwrap();
        let request = Request::builder().method(method).uri(format!("/bucket/a/b%20c?{query}"));
        let request = request.header("host", "localhost").header(name, value).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        let now = humantime::parse_rfc3339("2026-11-21T23:37:00Z").unwrap() + Duration::from_secs(seconds);
        as_json_request(&mut parts, now)?;
        Ok((parts.method, parts.uri.to_string()))
    }

    #[test]
    fn each_signed_request_is_one_of_the_json_api() {
        let upload = |kind| format!("/upload/storage/v1/b/bucket/o?uploadType={kind}&name=a%2Fb+c");
        for (method, header, expected) in [
            (Method::GET, "a: b", (Method::GET, "/storage/v1/b/bucket/o/a%2Fb%20c?alt=media".to_owned())),
            (Method::PUT, "a: b", (Method::POST, upload("media"))),
            (Method::POST, "x-goog-resumable: start", (Method::POST, upload("resumable"))),
        ] {
            assert_eq!(told(method, header, SIGNED, 60), Ok(expected));
        }
        let unsigned = (Method::PUT, "/bucket/a/b%20c?a=b".to_owned());
        assert_eq!(told(Method::PUT, "a: b", "a=b", 0), Ok(unsigned));
    }

    #[test]
    fn what_is_over_or_incomplete_is_refused() {
        let status =
            |query: &str, seconds| told(Method::GET, "a: b", query, seconds).unwrap_err().kind().status();
        assert_eq!(status(SIGNED, 61), 400);
        assert_eq!(status(&SIGNED.replace("=60&", "=604801&"), 0), 400);
        assert_eq!(status(&SIGNED.replace("X-Goog-Date=20261121T", "X-Goog-Date=20261121t"), 0), 400);
        assert_eq!(status(&SIGNED.replace("X-Goog-Credential=a&", ""), 0), 400);
        assert_eq!(status(&SIGNED.replace("=host&", "=content-type;host&"), 0), 403);
        assert!(told(Method::DELETE, "a: b", SIGNED, 0).is_err());
    }
}
