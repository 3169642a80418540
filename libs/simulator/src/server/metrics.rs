//! The load of a server that saturates, as vLLM tells it at `/metrics`
//! (<https://docs.vllm.ai/en/latest/usage/metrics.html>). Servers without slots, like hosted providers, tell nothing.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use super::{body::AnswerBody, places::Places};

/// Where it is told.
const PATH: &str = "/metrics";

/// Whether somebody asks for the load.
pub(super) fn is_asked(request: &Request<Incoming>) -> bool {
    request.method() == Method::GET && request.uri().path() == PATH
}

/// The load, in the text format of Prometheus; 404 of a server without slots. Who asks for it asks no question, so it is
/// neither counted nor logged.
pub(super) fn answer(places: Option<&Places>) -> Response<AnswerBody> {
    let Some(places) = places else {
        let mut response = Response::new(AnswerBody::Whole(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let mut response =
        Response::new(AnswerBody::Whole(Bytes::from(text(places.running(), places.waiting()))));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn text(running: u32, waiting: u32) -> String {
    let gauge = |name: &str, help: &str, value: u32| {
        format!(
            "# HELP vllm:{name} {help}\n# TYPE vllm:{name} gauge\n\
             vllm:{name}{{engine=\"0\",model_name=\"simulated\"}} {value}.0\n"
        )
    };
    [
        gauge("num_requests_running", "Number of requests in model execution batches.", running),
        gauge("num_requests_waiting", "Number of requests waiting to be processed.", waiting),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_told_as_gauges() {
        let told = text(3, 70);
        assert!(
            told.contains("\nvllm:num_requests_running{engine=\"0\",model_name=\"simulated\"} 3.0\n"),
            "{told}"
        );
        assert!(told.contains("# TYPE vllm:num_requests_waiting gauge\n"), "{told}");
        assert!(told.ends_with("} 70.0\n"), "{told}");
    }
}
