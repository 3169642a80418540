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
use crate::provider::{error_body::ErrorBody, key::KeyHeader, refusal::Meaning, retry_after};

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

/// A refusal for the rate says so like OpenAI's, but by its wait alone that waiting for a minute does not help. It is a
/// whole day for a request that is larger than what the deployment may use in a minute (vanderschaarlab/climb#1).
pub(super) fn judge(status: StatusCode, body: &ErrorBody) -> Meaning {
    match (openai::judge(status, body), body.wait) {
        (Meaning::Rate { .. }, Some(wait)) if wait >= retry_after::LONGEST => Meaning::Unfit,
        (Meaning::Rate { .. }, Some(wait)) if wait > LONGEST_RATE_WAIT => {
            Meaning::blocked(Reason::DayQuotaExhausted)
        }
        (meaning, _) => meaning,
    }
}
