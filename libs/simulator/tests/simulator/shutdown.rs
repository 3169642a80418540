//! Starting and stopping.

use std::time::Duration;

use penstock_simulator::{Distribution, Latency, ProviderSettings, Quota, Server, StartError};
use tokio::net::TcpStream;

use crate::client::{chat, client, start};

fn latency(milliseconds: f64) -> ProviderSettings {
    let latency = Latency { start_ms: Distribution::Constant(milliseconds), ..Default::default() };
    ProviderSettings { latency, ..Default::default() }
}

async fn in_flight(server: &Server) {
    while server.requests().in_flight() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_nearly_answered_is_answered_before_the_server_ends() {
    let server = start(latency(50.0)).await;
    let asking = tokio::spawn(chat(&client(), &server, "Hello").send());
    in_flight(&server).await;
    server.shutdown().await;
    assert_eq!(asking.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_an_hour_does_not_hold_up_the_end() {
    for http2 in [false, true] {
        let server = start(latency(3_600_000.0)).await;
        let builder = reqwest::Client::builder().no_proxy();
        let client = if http2 { builder.http2_prior_knowledge() } else { builder }.build().unwrap();
        let asking = tokio::spawn(chat(&client, &server, "Hello").send());
        in_flight(&server).await;
        let began = tokio::time::Instant::now();
        server.shutdown().await;
        assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
        assert!(asking.await.unwrap().is_err());
    }
}

#[tokio::test]
async fn the_address_is_free_again_after_the_end() {
    let server = start(ProviderSettings::default()).await;
    let address = server.address();
    // An idle connection must not hold up the end.
    let idle = TcpStream::connect(address).await.unwrap();
    server.shutdown().await;
    drop(idle);
    let again = Server::start(ProviderSettings::default(), address).await.unwrap();
    again.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_started_says_what_to_do() {
    let running = start(ProviderSettings::default()).await;
    let taken = Server::start(ProviderSettings::default(), running.address()).await.unwrap_err();
    assert!(taken.to_string().contains("choose another address"), "{taken}");
    running.shutdown().await;

    let mut settings = ProviderSettings::default();
    settings.limits.requests =
        Some(Quota { per_minute: 0, enforcement: penstock_simulator::Enforcement::MinuteBucket });
    let refused = Server::start(settings, crate::client::ANYWHERE).await.unwrap_err();
    assert!(matches!(refused, StartError::Settings(_)), "{refused}");
}
