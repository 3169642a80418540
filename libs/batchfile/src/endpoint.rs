//! The endpoints that a line can be meant for. Base URLs belong to the provider.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An inference endpoint of the OpenAI API, written as its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "std::borrow::Cow<'_, str>")]
pub enum Endpoint {
    /// `/v1/chat/completions`
    ChatCompletions,
    /// `/v1/responses`
    Responses,
    /// `/v1/completions`
    Completions,
    /// `/v1/embeddings`
    Embeddings,
    /// `/v1/moderations`
    Moderations,
}

impl Endpoint {
    /// Every endpoint.
    pub const ALL: [Self; 5] =
        [Self::ChatCompletions, Self::Responses, Self::Completions, Self::Embeddings, Self::Moderations];

    /// The path, with `/v1`.
    pub const fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Completions => "/v1/completions",
            Self::Embeddings => "/v1/embeddings",
            Self::Moderations => "/v1/moderations",
        }
    }

    /// The paths of all endpoints, for messages.
    pub(crate) fn paths() -> String {
        Self::ALL.map(Self::path).join(", ")
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.path())
    }
}

impl From<Endpoint> for &'static str {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.path()
    }
}

/// No supported endpoint has this path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read the endpoint `{0}`: write one of {paths}", paths = Endpoint::paths())]
pub struct UnknownEndpoint(String);

impl FromStr for Endpoint {
    type Err = UnknownEndpoint;

    /// Accepts the path with or without the leading slash and `v1/`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = text.strip_prefix('/').unwrap_or(text);
        let path = path.strip_prefix("v1/").unwrap_or(path);
        Self::ALL
            .into_iter()
            .find(|endpoint| endpoint.path().strip_prefix("/v1/") == Some(path))
            .ok_or_else(|| UnknownEndpoint(text.to_owned()))
    }
}

impl TryFrom<std::borrow::Cow<'_, str>> for Endpoint {
    type Error = UnknownEndpoint;

    fn try_from(text: std::borrow::Cow<'_, str>) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_write_a_path_is_accepted() {
        for endpoint in Endpoint::ALL {
            let path = endpoint.path();
            for text in [path, &path[1..], &path[3..], &path[4..]] {
                assert_eq!(text.parse(), Ok(endpoint), "{text}");
            }
            let json = serde_json::to_string(&endpoint).unwrap();
            assert_eq!(json, format!("\"{path}\""));
            assert_eq!(serde_json::from_str::<Endpoint>(&json).unwrap(), endpoint);
        }
    }

    #[test]
    fn another_path_is_refused_with_those_that_exist() {
        for text in ["", "/", "/v1", "/v1/", "/v1/images/generations", "//v1/responses", "/v1/v1/responses"] {
            let refused = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(refused.contains("/v1/chat/completions, /v1/responses"), "{refused}");
        }
    }
}
