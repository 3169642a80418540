//! The base URL of a provider. Users write it with or without `/v1`; exactly one is sent.

use std::fmt;

use penstock_batchfile::Endpoint;
use thiserror::Error;
use url::Url;

use super::ProviderKind;

/// An `http` or `https` URL without the trailing `/v1` and slash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl(String);

/// Why a base URL was refused.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "use the base URL `{url}`: {problem}; write it like https://api.openai.com or http://localhost:8000/v1"
)]
pub struct BaseUrlError {
    url: String,
    problem: &'static str,
}

impl BaseUrl {
    /// Parses a URL; credentials, a query or a fragment in it are refused, since they would end up in stored files.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let refuse = |problem| BaseUrlError { url: without_credentials(text), problem };
        let url = Url::parse(text).map_err(|_| refuse("it is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse("only http and https are spoken"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(refuse("it names no host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("credentials do not belong into it"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("a query or fragment does not belong into it"));
        }
        let trimmed = url.as_str().trim_end_matches('/');
        Ok(Self(trimmed.strip_suffix("/v1").unwrap_or(trimmed).trim_end_matches('/').to_owned()))
    }

    /// Parses the base URL of a provider of this kind; a path that is sent anyway may stand at its end.
    pub fn of(kind: ProviderKind, text: &str) -> Result<Self, BaseUrlError> {
        let url = Self::parse(text)?;
        let strip = |url: String, path: &&str| url.strip_suffix(path).map(str::to_owned).unwrap_or(url);
        Ok(Self(kind.sent_anyway().iter().fold(url.0, strip)))
    }

    /// The full URL of an endpoint.
    pub fn endpoint(&self, endpoint: Endpoint) -> String {
        format!("{}{}", self.0, endpoint.path())
    }

    /// The URL without `/v1`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What may be repeated in a message: everything but what stands between `//` and `@`.
fn without_credentials(text: &str) -> String {
    match (text.find("//"), text.find('@')) {
        (Some(start), Some(end)) if start < end => format!("{}//…{}", &text[..start], &text[end..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_v1_is_sent() {
        for text in ["http://host:8000", "http://host:8000/", "http://host:8000/v1", "http://host:8000/v1/"] {
            let url = BaseUrl::parse(text).unwrap();
            assert_eq!(
                url.endpoint(Endpoint::ChatCompletions),
                "http://host:8000/v1/chat/completions",
                "{text}"
            );
        }
        let gateway = BaseUrl::parse("https://gateway/openai/v1").unwrap();
        assert_eq!(gateway.endpoint(Endpoint::Responses), "https://gateway/openai/v1/responses");
    }

    #[test]
    fn what_a_provider_is_sent_anyway_may_be_written_or_left_out() {
        for (kind, text, expected) in [
            (ProviderKind::Gemini, "https://host/v1beta/openai/", "https://host"),
            (ProviderKind::Gemini, "https://host/v1beta", "https://host"),
            (ProviderKind::Gemini, "https://gateway/google/v1", "https://gateway/google"),
            (ProviderKind::AzureOpenAi, "https://name.openai.azure.com/", "https://name.openai.azure.com"),
            (ProviderKind::AzureOpenAi, "https://gateway/team/openai", "https://gateway/team"),
            (ProviderKind::OpenAiCompatible, "https://gateway/openai", "https://gateway/openai"),
        ] {
            assert_eq!(BaseUrl::of(kind, text).unwrap().as_str(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_base_url_is_refused_with_a_reason_and_without_its_password() {
        for text in ["", "host:8000", "ftp://host", "http://host/?key=1", "http://host/#x"] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
        let error = BaseUrl::parse("https://user:secret@host/v1").unwrap_err().to_string();
        assert!(error.contains("credentials") && !error.contains("secret"), "{error}");
    }
}
