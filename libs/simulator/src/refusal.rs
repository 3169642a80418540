//! Refusals: the answers that carry an error instead of a result.
//!
//! Owns their statuses, codes and words, and the envelope
//! `{"error":{"message","type","param","code"}}` in which all four keys are always present.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

/// One refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    message: Cow<'static, str>,
    kind: &'static str,
    param: Option<&'static str>,
    code: Option<&'static str>,
}

impl Refusal {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into(), kind, param: None, code: None }
    }

    fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    fn param(self, param: &'static str) -> Self {
        Self { param: Some(param), ..self }
    }

    fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    pub(crate) fn unknown_path(method: &http::Method, path: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            ..Self::invalid_request(format!("Invalid URL ({method} {path})"))
        }
    }

    pub(crate) fn wrong_method(method: &http::Method, path: &str) -> Self {
        Self {
            status: StatusCode::METHOD_NOT_ALLOWED,
            ..Self::invalid_request(format!("Not allowed to {method} on {path}"))
        }
        .code("method_not_supported")
    }

    pub(crate) fn too_large(most: usize) -> Self {
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            ..Self::invalid_request(format!("The request body is larger than {most} bytes."))
        }
        .code("request_too_large")
    }

    pub(crate) fn unreadable_body(error: &serde_json::Error) -> Self {
        Self::invalid_request(format!("We could not parse the JSON body of your request: {error}"))
    }

    pub(crate) fn missing(param: &'static str) -> Self {
        Self::invalid_request(format!("Missing required parameter: '{param}'."))
            .param(param)
            .code("missing_required_parameter")
    }

    pub(crate) fn unsupported(param: &'static str, message: &'static str) -> Self {
        Self::invalid_request(message).param(param).code("unsupported_value")
    }

    pub(crate) fn rejected_prompt() -> Self {
        Self::invalid_request("Invalid prompt: this prompt was refused by the input checks.")
            .code("invalid_prompt")
    }

    pub(crate) fn missing_key() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            ..Self::invalid_request("You didn't provide an API key: send it as `Authorization: Bearer KEY`.")
        }
    }

    pub(crate) fn wrong_key() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            ..Self::invalid_request("Incorrect API key provided.").code("invalid_api_key")
        }
    }

    pub(crate) fn forbidden() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "invalid_request_error",
            "The project of this key may not use this model.",
        )
        .code("permission_denied")
    }

    pub(crate) fn model_not_found(model: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            ..Self::invalid_request(format!(
                "The model `{model}` does not exist or you do not have access to it."
            ))
        }
        .code("model_not_found")
    }

    pub(crate) fn insufficient_quota() -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        )
        .code("insufficient_quota")
    }

    /// A rate refusal; `kind` names the dimension that was exceeded (`requests` or `tokens`).
    pub(crate) fn rate_limited(kind: &'static str, message: String) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, kind, message).code("rate_limit_exceeded")
    }

    pub(crate) fn internal_error() -> Self {
        Self::server_error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The server had an error while processing your request.",
        )
    }

    pub(crate) fn bad_gateway() -> Self {
        Self::server_error(StatusCode::BAD_GATEWAY, "The gateway got no usable answer from the model server.")
    }

    pub(crate) fn unavailable() -> Self {
        Self::server_error(
            StatusCode::SERVICE_UNAVAILABLE,
            "The engine is currently unavailable, please try again later.",
        )
    }

    pub(crate) fn slow_down() -> Self {
        Self::server_error(StatusCode::SERVICE_UNAVAILABLE, "Slow Down").code("slow_down")
    }

    pub(crate) fn overloaded() -> Self {
        let status = StatusCode::from_u16(529).expect("invariant: 529 is between 100 and 999");
        Self::new(status, "overloaded_error", "Overloaded")
    }

    pub(crate) fn all_slots_taken() -> Self {
        Self::server_error(StatusCode::SERVICE_UNAVAILABLE, "All slots are taken and the queue is full.")
            .code("server_busy")
    }

    fn server_error(status: StatusCode, message: &'static str) -> Self {
        Self::new(status, "server_error", message)
    }

    /// The error envelope.
    pub(crate) fn body(&self) -> Bytes {
        #[derive(Serialize)]
        struct Envelope<'a> {
            error: Error<'a>,
        }
        #[derive(Serialize)]
        struct Error<'a> {
            message: &'a str,
            r#type: &'a str,
            param: Option<&'a str>,
            code: Option<&'a str>,
        }
        let error = Error { message: &self.message, r#type: self.kind, param: self.param, code: self.code };
        crate::answer::json(&Envelope { error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_always_has_its_four_keys() {
        for refusal in [Refusal::missing("messages"), Refusal::overloaded(), Refusal::missing_key()] {
            let body: serde_json::Value = serde_json::from_slice(&refusal.body()).unwrap();
            let error = body["error"].as_object().unwrap();
            let mut keys: Vec<&str> = error.keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["code", "message", "param", "type"]);
        }
    }
}
