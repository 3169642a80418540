//! The log as an independent witness.

use penstock_simulator::{Fault, FaultRule, LogSettings, ProviderSettings, read_log};

use crate::client::{chat, client, start};

#[tokio::test]
async fn the_log_tells_what_was_asked_and_how_it_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.jsonl");
    let settings = ProviderSettings {
        log: LogSettings { file: Some(path.clone()), entries_in_memory: 100 },
        faults: vec![FaultRule { first_attempts: Some(1), ..FaultRule::always(Fault::BadGateway) }],
        ..Default::default()
    };
    let server = start(settings).await;
    let client = client();
    let prompt = "ä".repeat(150);
    for _ in 0..2 {
        chat(&client, &server, &prompt).bearer_auth("abc").send().await.unwrap();
    }
    let kept = server.log();
    server.shutdown().await;
    assert_eq!(read_log(&path).unwrap(), kept);
    let told: Vec<_> = kept.iter().map(|entry| (entry.sequence, entry.times_seen, entry.status())).collect();
    assert_eq!(told, [(0, 0, Some(502)), (1, 1, Some(200))]);
    let first = &kept[0];
    assert_eq!(first.answer.and_then(|answer| answer.fault), Some(Fault::BadGateway));
    assert_eq!((first.path.as_str(), first.model.as_deref()), ("/v1/chat/completions", Some("m")));
    assert_eq!(first.prompt, "ä".repeat(100));
    assert_eq!(first.prompt_hash, kept[1].prompt_hash);
    // The start of the SHA-256 of "abc", by the examples of FIPS 180-2.
    assert_eq!(first.authorization_fingerprint.as_deref(), Some("ba7816bf"));
}

#[tokio::test]
async fn an_arrival_stands_in_the_file_before_it_is_answered_and_a_client_that_leaves_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.jsonl");
    let settings = ProviderSettings {
        log: LogSettings { file: Some(path.clone()), entries_in_memory: 0 },
        faults: vec![FaultRule::always(Fault::Hang)],
        ..Default::default()
    };
    let server = start(settings).await;
    let asking = tokio::spawn(chat(&client(), &server, "Hello").send());
    while read_log(&path).unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(read_log(&path).unwrap()[0].answer, None);
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    while server.requests().unanswered == 0 {
        tokio::task::yield_now().await;
    }
    server.shutdown().await;
    let answer = read_log(&path).unwrap()[0].answer.expect("the request has ended");
    assert_eq!((answer.status, answer.fault, answer.client_closed), (None, Some(Fault::Hang), true));
}
