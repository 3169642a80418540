//! The bare client: so many requests at once, each with the same body, each answer read to its end and dropped.
//!
//! It has the HTTP client, the runtime and the allocator of Penstock, and nothing else: no input, no checks, no results.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;
use reqwest::{Client, header};
use tokio::task::JoinSet;

use crate::{arguments::LoopArguments, error::BenchError, input};

/// Sends all requests; the first failure ends it.
pub(crate) fn run(arguments: &LoopArguments) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(send_all(arguments))
}

async fn send_all(arguments: &LoopArguments) -> Result<(), BenchError> {
    let concurrency = arguments.concurrency.get();
    let client = Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .tcp_nodelay(true)
        .pool_max_idle_per_host(usize::try_from(concurrency).unwrap_or(usize::MAX))
        .build()?;
    let url: reqwest::Url = arguments.url.parse().map_err(|_| BenchError::Answer {
        command: "penstock-bench loop".to_owned(),
        said: arguments.url.clone(),
    })?;
    let body = Bytes::from(input::body(0));
    let (begun, requests) = (Arc::new(AtomicU64::new(0)), arguments.requests);
    let mut senders = JoinSet::new();
    for _ in 0..concurrency {
        let (client, url, body, begun) = (client.clone(), url.clone(), body.clone(), Arc::clone(&begun));
        senders.spawn(async move {
            while begun.fetch_add(1, Relaxed) < requests {
                let request = client
                    .post(url.clone())
                    .header(header::CONTENT_TYPE, "application/json")
                    .body(body.clone());
                request.send().await?.error_for_status()?.bytes().await?;
            }
            Ok::<_, reqwest::Error>(())
        });
    }
    while let Some(ended) = senders.join_next().await {
        ended.map_err(std::io::Error::other)??;
    }
    Ok(())
}
