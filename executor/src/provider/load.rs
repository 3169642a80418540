//! The load of a server that saturates, as it tells it itself: vLLM's gauges at `/metrics`
//! (<https://docs.vllm.ai/en/latest/usage/metrics.html>).

use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Full, Limited};

use super::route::Route;

/// Longest time for one look.
const DEADLINE: Duration = Duration::from_secs(2);
/// The longest page that is read, in bytes: vLLM's has some hundred kilobytes.
const LONGEST_PAGE: usize = 4 << 20;

const RUNNING: &str = "vllm:num_requests_running";
const WAITING: &str = "vllm:num_requests_waiting";

/// What a server works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Requests that it computes answers to.
    pub running: u32,
    /// Requests that wait for that.
    pub waiting: u32,
}

impl Load {
    /// The sum over all engines and models of a server; `None` where the page has not these gauges.
    fn read(page: &str) -> Option<Self> {
        let sum = |gauge| {
            let mut values = page.lines().filter_map(|line| value(line, gauge)).peekable();
            values.peek()?;
            Some(values.fold(0, u32::saturating_add))
        };
        Some(Self { running: sum(RUNNING)?, waiting: sum(WAITING)? })
    }
}

/// The value of a line that is about this gauge.
fn value(line: &str, gauge: &str) -> Option<u32> {
    let rest = line.strip_prefix(gauge)?;
    let value = match rest.strip_prefix('{') {
        // A label's value may hold any character.
        Some(labelled) => labelled.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    let value: f64 = value.split_whitespace().next()?.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked to fit")]
    (0.0..=f64::from(u32::MAX)).contains(&value).then_some(value as u32)
}

/// Asks a server for its load; `None` where it does not tell it in time.
pub(super) async fn ask(route: &Route) -> Option<Load> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = route.metrics_uri().ok()?;
    *request.headers_mut() = route.headers(route.key().as_ref());
    let lease = route.pool.lease();
    let page = async {
        let response = lease.client().request(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let page = Limited::new(response.into_body(), LONGEST_PAGE).collect().await.ok()?;
        Load::read(str::from_utf8(&page.to_bytes()).ok()?)
    };
    tokio::time::timeout(DEADLINE, page).await.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gauges_of_all_engines_are_summed() {
        let page = "# HELP vllm:num_requests_running Number of requests in model execution batches.\n\
                    # TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"a} b\"} 12.0\n\
                    vllm:num_requests_running{engine=\"1\",model_name=\"a\"} 1.3e1\n\
                    vllm:num_requests_waiting{engine=\"0\"} 4.0 1700000000\n\
                    vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 9.0\n\
                    vllm:num_requests_waiting 1\n";
        assert_eq!(Load::read(page), Some(Load { running: 25, waiting: 5 }));
    }

    #[test]
    fn a_page_that_does_not_tell_both_is_none() {
        for page in [
            "",
            "<html>",
            "vllm:num_requests_running 3.0\n",
            "vllm:num_requests_running NaN\nvllm:num_requests_waiting 1\n",
            "vllm:num_requests_running -1\nvllm:num_requests_waiting 1\n",
            "vllm:num_requests_running{\nvllm:num_requests_waiting 1\n",
        ] {
            assert_eq!(Load::read(page), None, "{page}");
        }
    }
}
