//! One report on its way: who is asked, what proves who asks, and what the answer is taken for.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use penstock_job::{
    Directives, DocumentError, document,
    report::LONGEST_REPORT,
    spec::{ReportTo, Tls},
};
use thiserror::Error;

use crate::client::{ClientError, Pool, Pools};

/// Why the place to report to makes no sense. Messages read after "failed to".
#[derive(Debug, Error)]
pub enum ReportingError {
    /// The URL is none.
    #[error("report to `{0}`: it is no http or https URL; correct `report.url` in the job file")]
    Url(String),
    /// Two lists of authorities.
    #[error("report: `report.ca` and `report.ca_file` are both given; name one of them in the job file")]
    TwoAuthorities,
    /// The certificate authorities cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Why a report was not heard. Messages read after "failed to".
#[derive(Debug, Error)]
pub(super) enum PostError {
    #[error("read the token {path} for reports: {source}")]
    Token { path: PathBuf, source: io::Error },
    #[error("use the token {0} for reports: it is no text that a header can hold")]
    NoToken(PathBuf),
    #[error("report to {uri}: {detail}")]
    Unreachable { uri: Uri, detail: String },
    #[error("report to {uri}: it answers {status}")]
    Refused { uri: Uri, status: StatusCode },
    #[error("report to {uri}: its answer breaks off or is longer than {LONGEST_REPORT} bytes")]
    Unreadable { uri: Uri },
    #[error(transparent)]
    Directives(#[from] DocumentError),
    #[error("report: there is no answer within {0:?}")]
    Silent(Duration),
}

/// Where reports go.
#[derive(Debug)]
pub(super) struct Post {
    uri: Uri,
    pool: Arc<Pool>,
    token_file: Option<PathBuf>,
}

impl Post {
    pub(super) fn new(to: &ReportTo) -> Result<Self, ReportingError> {
        let uri = to.url.parse::<Uri>().ok().filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
        });
        let uri = uri.ok_or_else(|| ReportingError::Url(to.url.clone()))?;
        let mut pools = Pools::new(1);
        let is_secured = uri.scheme_str() == Some("https");
        let pool = match (&to.ca, &to.ca_file) {
            (Some(_), Some(_)) => return Err(ReportingError::TwoAuthorities),
            (Some(authorities), None) if is_secured => pools.trusting(&uri, authorities)?,
            (_, ca_file) => pools.pool(&uri, &Tls { ca_file: ca_file.clone(), ..Tls::default() })?,
        };
        Ok(Self { uri, pool, token_file: to.token_file.clone() })
    }

    /// Posts a report and reads the answer. Who calls sets a deadline.
    pub(super) async fn post(&self, report: Bytes) -> Result<Directives, PostError> {
        let unreachable = |error: &dyn std::error::Error| PostError::Unreachable {
            uri: self.uri.clone(),
            detail: deepest(error),
        };
        let mut request = Request::post(self.uri.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("penstock-executor/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(report))
            .map_err(|error| unreachable(&error))?;
        if let Some(token) = self.token().await? {
            request.headers_mut().insert(header::AUTHORIZATION, token);
        }
        if let Some(value) = self.pool.proxy_authorization() {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, value.clone());
        }
        let answered = self.pool.lease().client().request(request).await;
        let answer = answered.map_err(|error| unreachable(&error))?;
        if answer.status() != StatusCode::OK {
            return Err(PostError::Refused { uri: self.uri.clone(), status: answer.status() });
        }
        let body = Limited::new(answer.into_body(), LONGEST_REPORT).collect().await;
        let body = body.map_err(|_| PostError::Unreadable { uri: self.uri.clone() })?.to_bytes();
        Ok(document::read(&body)?)
    }

    /// Tokens that a kubelet projects are replaced while the job runs, so the file is read for each report.
    async fn token(&self) -> Result<Option<HeaderValue>, PostError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let text = tokio::fs::read_to_string(path)
            .await
            .map_err(|source| PostError::Token { path: path.clone(), source })?;
        let mut value = HeaderValue::try_from(format!("Bearer {}", text.trim()))
            .map_err(|_| PostError::NoToken(path.clone()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// What lies at the bottom of an error: what is above it only says that something failed.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(url: &str) -> ReportTo {
        serde_json::from_value(serde_json::json!({"url": url})).unwrap()
    }

    #[test]
    fn a_place_that_makes_no_sense_is_refused_with_the_field_to_correct() {
        let refused = |to: &ReportTo| Post::new(to).unwrap_err().to_string();
        for url in ["", "/report", "ftp://operator/report", "operator:8443", "https://"] {
            assert!(refused(&to(url)).contains("`report.url`"), "{url}");
        }
        let text = Some("no certificate".to_owned());
        let both = ReportTo { ca: text.clone(), ca_file: Some("ca.pem".into()), ..to("https://operator") };
        assert!(refused(&both).contains("both"));
        let garbled = ReportTo { ca: text, ..to("https://operator") };
        assert!(refused(&garbled).contains("`report.ca`"));
        let absent = ReportTo { ca_file: Some("/gone/ca.pem".into()), ..to("https://operator") };
        assert!(refused(&absent).contains("/gone/ca.pem"));
        assert!(Post::new(&to("http://operator:8080/report")).is_ok());
    }
}
