//! Azure OpenAI: OpenAI's bodies at the URL of a deployment.
//!
//! A model's name is its deployment's. The key stands in the header `api-key`, the version of the API in the query.
//! Paths: <https://learn.microsoft.com/azure/ai-foundry/openai/reference>; refusals: the service's, as in the table of
//! `docs/providers.md`.

use std::time::Duration;

use http::{HeaderName, StatusCode};
use penstock_batchfile::Endpoint;
use penstock_job::{Reason, spec::BaseUrl};
use url::Url;

use super::{openai, url_of};
use crate::provider::{error_body::ErrorBody, key::KeyHeader, refusal::Meaning};

/// Where Azure's own tools read the key from.
pub(super) const KEYS: &[&str] = &["AZURE_OPENAI_API_KEY"];

/// Where the key goes.
pub(super) const KEY_HEADER: KeyHeader = KeyHeader::plain(HeaderName::from_static("api-key"));

/// A refusal that asks for more is not for the rate of a minute: the quota for the day is used up.
const LONGEST_RATE_WAIT: Duration = Duration::from_hours(1);

/// `BASE/openai/deployments/MODEL/chat/completions?api-version=VERSION`
pub(super) fn url(base: &BaseUrl, model: &str, endpoint: Endpoint, api_version: Option<&str>) -> Url {
    let path = endpoint.path().trim_start_matches("/v1/").split('/');
    let mut url = url_of(base, ["openai", "deployments", model].into_iter().chain(path));
    if let Some(version) = api_version {
        url.query_pairs_mut().append_pair("api-version", version);
    }
    url
}

/// A refusal for the rate says so like OpenAI's, but names the quota for a day only by its wait.
pub(super) fn judge(status: StatusCode, body: &ErrorBody) -> Meaning {
    match openai::judge(status, body) {
        Meaning::Rate { .. } if body.wait.is_some_and(|wait| wait > LONGEST_RATE_WAIT) => {
            Meaning::blocked(Reason::DayQuotaExhausted)
        }
        meaning => meaning,
    }
}
