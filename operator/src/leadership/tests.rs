//! Two replicas and one lease: who works, for how long, and who has the label.
//!
//! The lease is judged by the system's own clock, so these tests shorten its times instead of pausing the clock. What they
//! wait for is the other replica, and no moment.

use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
};

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api_double::ApiDouble;

const LEASE_PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/penstock/leases/penstock-operator";
/// The time between giving up and being followed is what a busy machine may take from either.
const TIMES: Times = Times {
    lease: Duration::from_secs(2),
    give_up: Duration::from_millis(500),
    renew_every: Duration::from_millis(50),
};

/// What does not happen on a busy machine either is not awaited for ever.
async fn in_time<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_mins(1), what).await.expect("it happens within a minute")
}

fn candidate(api: &ApiDouble, pod: &'static str) -> Candidate {
    let mut candidate = Candidate::new(api.client(pod), "penstock".to_owned(), pod.to_owned());
    candidate.times = TIMES;
    candidate
}

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Work that notes when it begins and, in whatever way, ends; it ends by itself when it is `told`.
    async fn work(&self, who: &str, began: &CancellationToken, told: &CancellationToken) {
        struct Ending(Log, String);
        impl Drop for Ending {
            fn drop(&mut self) {
                self.0.note(format!("{} ends", self.1));
            }
        }
        self.note(format!("{who} begins"));
        let _ending = Ending(self.clone(), who.to_owned());
        began.cancel();
        told.cancelled().await;
    }
}

fn holder(api: &ApiDouble) -> Option<String> {
    Some(api.get(LEASE_PATH)?["spec"]["holderIdentity"].as_str()?.to_owned())
}

#[tokio::test]
async fn one_leads_and_the_other_follows_at_once_when_it_has_done_its_work() {
    let (api, log) = (ApiDouble::default(), Log::default());
    let (one_began, two_began) = (CancellationToken::new(), CancellationToken::new());
    let (one_told, two_told) = (CancellationToken::new(), CancellationToken::new());
    let (one, two) = (candidate(&api, "one"), candidate(&api, "two"));
    let first = async { one.lead(log.work("one", &one_began, &one_told)).await };
    let second = async {
        one_began.cancelled().await;
        two.lead(log.work("two", &two_began, &two_told)).await
    };
    let director = async {
        one_began.cancelled().await;
        assert_eq!(holder(&api).as_deref(), Some("one"));
        one_told.cancel();
        two_began.cancelled().await;
        assert_eq!(holder(&api).as_deref(), Some("two"));
        two_told.cancel();
    };
    let (first, second, ()) = in_time(Box::pin(async { tokio::join!(first, second, director) })).await;
    assert!(first.is_some() && second.is_some());
    assert_eq!(log.read(), ["one begins", "one ends", "two begins", "two ends"]);
    assert_eq!(holder(&api), None, "whoever leaves gives the lease back");
}

#[tokio::test]
async fn a_leader_that_reaches_nobody_stops_before_another_begins() {
    let (api, log) = (ApiDouble::default(), Log::default());
    let (began, followed, never) =
        (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
    let (one, two) = (candidate(&api, "one"), candidate(&api, "two"));
    let first = async { one.lead(log.work("one", &began, &never)).await };
    let second = async {
        began.cancelled().await;
        api.silence("one");
        two.lead(log.work("two", &followed, &followed)).await
    };
    let (first, second) = in_time(Box::pin(async { tokio::join!(first, second) })).await;
    assert!(first.is_none() && second.is_some());
    assert_eq!(log.read(), ["one begins", "one ends", "two begins", "two ends"]);
}

#[tokio::test]
async fn a_leader_that_was_frozen_learns_that_it_leads_no_more() {
    let (api, log) = (ApiDouble::default(), Log::default());
    let (began, followed, never) =
        (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
    let (one, two) = (candidate(&api, "one"), candidate(&api, "two"));
    let mut first = pin!(one.lead(log.work("one", &began, &never)));
    // As long as it is awaited here it works, and not a moment longer.
    tokio::select! {
        _ = &mut first => panic!("it leads"),
        () = in_time(began.cancelled()) => {}
    }
    let mut second = pin!(two.lead(log.work("two", &followed, &never)));
    tokio::select! {
        _ = &mut second => panic!("it leads"),
        () = in_time(followed.cancelled()) => {}
    }
    let before = api.asked().len();
    tokio::select! {
        ended = in_time(&mut first) => assert!(ended.is_none()),
        _ = &mut second => panic!("it still leads"),
    }
    assert_eq!(holder(&api).as_deref(), Some("two"));
    let wrote = |asked: &String| asked.starts_with("one PUT");
    assert!(!api.asked()[before..].iter().any(wrote), "it looks before it writes");
}

#[tokio::test]
async fn work_does_not_begin_while_another_keeps_the_lease() {
    let (api, log) = (ApiDouble::default(), Log::default());
    let (began, never) = (CancellationToken::new(), CancellationToken::new());
    let (one, two) = (candidate(&api, "one"), candidate(&api, "two"));
    let mut first = pin!(one.lead(log.work("one", &began, &never)));
    tokio::select! {
        _ = &mut first => panic!("it leads"),
        () = in_time(began.cancelled()) => {}
    }
    let mut second = pin!(two.lead(pending::<()>()));
    let renewals = |api: &ApiDouble| api.asked().iter().filter(|asked| asked.starts_with("one PUT")).count();
    // Longer than a lease lasts: as many renewals as fit into two of them.
    let enough = poll_fn(|context| {
        assert!(second.as_mut().poll(context).is_pending());
        if renewals(&api) >= 80 { Poll::Ready(()) } else { Poll::Pending }
    });
    tokio::select! {
        _ = &mut first => panic!("it leads"),
        () = in_time(enough) => {}
    }
    assert!(!api.asked().iter().any(|asked| asked.starts_with("two PUT")));
}

fn pod(name: &str, labels: &Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "penstock", "labels": labels}})
}

#[tokio::test]
async fn the_label_is_where_the_leader_is() {
    const PODS: &str = "/api/v1/namespaces/penstock/pods";
    let api = ApiDouble::default();
    let leader = json!({"app": "penstock", LEADER: "true"});
    api.put(&format!("{PODS}/one"), pod("one", &leader));
    api.put(&format!("{PODS}/two"), pod("two", &json!({"app": "penstock"})));
    candidate(&api, "two").take_label().await.unwrap();
    let labels = |name| api.get(&format!("{PODS}/{name}")).unwrap()["metadata"]["labels"].clone();
    assert_eq!((labels("one"), labels("two")), (json!({"app": "penstock"}), leader));
    candidate(&api, "two").drop_label().await.unwrap();
    assert_eq!(labels("two"), json!({"app": "penstock"}));
    candidate(&api, "gone").drop_label().await.unwrap();
    assert!(candidate(&api, "gone").take_label().await.is_err(), "a leader that nobody finds");
}

/// A candidate that ended instead would be restarted later and later.
#[tokio::test(start_paused = true)]
async fn a_replica_waits_for_an_api_server_that_is_away_and_leaves_when_it_is_refused() {
    const POD: &str = "/api/v1/namespaces/penstock/pods/one";
    let api = ApiDouble::default();
    api.put(POD, pod("one", &json!({"app": "penstock", LEADER: "true"})));
    api.refuse(StatusCode::SERVICE_UNAVAILABLE);
    let one = candidate(&api, "one");
    let back = async {
        while api.asked().len() < 3 {
            sleep(ASK_AGAIN).await;
        }
        api.refuse(None);
    };
    let (dropped, ()) = tokio::join!(one.drop_label(), back);
    dropped.unwrap();
    assert_eq!(api.get(POD).unwrap()["metadata"]["labels"], json!({"app": "penstock"}));
    api.refuse(StatusCode::FORBIDDEN);
    assert!(one.drop_label().await.unwrap_err().is_forbidden());
}
