//! Who is heard and who is not, what it costs the API server, and how long anybody may take.

use axum::{
    body::{Body, to_bytes},
    http::{Method, Request},
};
use futures_util::StreamExt;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    core::DeserializeGuard,
    runtime::{reflector, watcher::Event},
};
use penstock_job::{Directives, report::Stage};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    time::{Instant as Moment, advance},
};
use tokio_util::task::AbortOnDropHandle;
use tower_service::Service;

use super::*;
use crate::{
    api_double::ApiDouble,
    decide::tests::{batch_job, report},
    progress::Authority,
};

const PATH: &str = "/v1/namespaces/team/batch-jobs/nightly/report";
const REVIEW: &str = "operator POST /apis/authentication.k8s.io/v1/tokenreviews";
/// The name of the Service in the cluster.
const NAME: &str = "penstock-progress.penstock.svc";

/// A progress call in a cluster in which `pod-1` works for the BatchJob `nightly` of the uid `uid-1`.
struct Place {
    api: ApiDouble,
    progress: Progress,
    turned: mpsc::Receiver<ObjectRef<BatchJob>>,
}

impl Place {
    fn new() -> Self {
        let api = ApiDouble::default();
        api.know("its-own", review("penstock.dev/batch-jobs/uid-1", "pod-1"));
        api.know("of-another-pod", review("penstock.dev/batch-jobs/uid-1", "pod-2"));
        api.know("for-another-job", review("penstock.dev/batch-jobs/uid-2", "pod-1"));
        let (turned, turns) = mpsc::channel(8);
        let progress = Progress {
            caches: Arc::new(caches()),
            reviewer: Arc::new(Reviewer::new(api.client("operator"))),
            reports: Arc::default(),
            turned,
        };
        Self { api, progress, turned: turns }
    }

    /// Posts `body` with this token, and hears the status and the text of the answer.
    async fn post(&self, path: &str, token: Option<&str>, body: impl Into<Body>) -> (StatusCode, Vec<u8>) {
        let mut request = Request::builder().method(Method::POST).uri(path);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(body.into()).unwrap();
        let answer = router(self.progress.clone()).call(request).await.unwrap();
        let status = answer.status();
        (status, to_bytes(answer.into_body(), usize::MAX).await.unwrap().to_vec())
    }

    async fn says(&self, token: &str) -> StatusCode {
        self.post(PATH, Some(token), said()).await.0
    }

    fn reviews(&self) -> usize {
        self.api.asked().iter().filter(|asked| *asked == REVIEW).count()
    }

    fn has_heard(&self) -> bool {
        self.progress.reports.of("uid-1").is_some()
    }
}

/// What the API server says of a token that is good for `audience` and bound to a pod.
fn review(audience: &str, pod: &str) -> Value {
    json!({
        "authenticated": true,
        "audiences": [audience],
        "user": {
            "username": "system:serviceaccount:team:default",
            "extra": {"authentication.kubernetes.io/pod-uid": [pod]},
        },
    })
}

fn said() -> Vec<u8> {
    document::write(&report(Stage::Running))
}

fn caches() -> Caches {
    let owned_by = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let labels = json!({"penstock.dev/batch-job": "nightly"});
    let job = json!({
        "metadata": {
            "name": "nightly", "namespace": "team", "uid": "job-1", "labels": labels,
            "ownerReferences": owned_by("BatchJob", "nightly", "uid-1"),
        },
    });
    let pod = json!({
        "metadata": {
            "name": "nightly-x", "namespace": "team", "uid": "pod-1", "labels": labels,
            "ownerReferences": owned_by("Job", "nightly", "job-1"),
        },
        "status": {"phase": "Running"},
    });
    Caches::new(
        holding([serde_json::to_value(batch_job()).unwrap()]),
        holding([]),
        holding::<Job>([job]),
        holding::<Pod>([pod]),
    )
}

fn holding<K>(objects: impl IntoIterator<Item = Value>) -> reflector::Store<DeserializeGuard<K>>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned + Clone + 'static,
{
    let (store, mut writer) = reflector::store();
    for object in objects {
        writer.apply_watcher_event(&Event::Apply(serde_json::from_value(object).unwrap()));
    }
    store
}

#[tokio::test]
async fn a_pod_of_the_job_is_heard_and_told_what_to_do() {
    let mut place = Place::new();
    let (status, answer) = place.post(PATH, Some("its-own"), said()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(document::read::<Directives>(&answer).unwrap(), Directives::default());
    assert!(place.has_heard());
    assert_eq!(place.turned.recv().await.unwrap().name, "nightly");
}

#[tokio::test]
async fn nobody_else_is() {
    let place = Place::new();
    let other = "/v1/namespaces/team/batch-jobs/weekly/report";
    for (path, token, body, status) in [
        (PATH, None, said(), StatusCode::UNAUTHORIZED),
        (PATH, Some("unknown"), said(), StatusCode::FORBIDDEN),
        (PATH, Some("of-another-pod"), said(), StatusCode::FORBIDDEN),
        (PATH, Some("for-another-job"), said(), StatusCode::FORBIDDEN),
        (other, Some("its-own"), said(), StatusCode::NOT_FOUND),
        (PATH, Some("its-own"), b"{}".to_vec(), StatusCode::BAD_REQUEST),
        (PATH, Some("its-own"), vec![b' '; LONGEST_REPORT + 1], StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        assert_eq!(place.post(path, token, body).await.0, status, "{path} {token:?}");
    }
    assert!(!place.has_heard());
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_said_of_a_token_holds_for_two_minutes() {
    let place = Place::new();
    place.says("its-own").await;
    advance(Duration::from_secs(119)).await;
    place.says("its-own").await;
    assert_eq!(place.reviews(), 1);
    place.api.know("its-own", json!({"authenticated": false}));
    advance(Duration::from_secs(2)).await;
    assert_eq!(place.says("its-own").await, StatusCode::FORBIDDEN);
    assert_eq!(place.reviews(), 2);
}

#[tokio::test]
async fn a_review_that_failed_is_asked_for_again() {
    let place = Place::new();
    place.api.refuse(StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(place.says("its-own").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(place.says("its-own").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(place.reviews(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_silent_is_not_awaited_for_ever() {
    let place = Place::new();
    place.api.silence("operator");
    let began = Moment::now();
    assert_eq!(place.says("its-own").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(began.elapsed().as_secs(), crate::call::CALL.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_never_comes_to_the_end_of_its_report_is_sent_away() {
    let place = Place::new();
    let begins = futures_util::stream::iter([Ok::<_, std::io::Error>("{")]);
    let body = Body::from_stream(begins.chain(futures_util::stream::pending()));
    let began = Moment::now();
    let (status, _) = place.post(PATH, Some("its-own"), body).await;
    assert_eq!((status, began.elapsed()), (StatusCode::REQUEST_TIMEOUT, ANSWER));
}

/// Serves with the authority that is kept in the cluster; returns its certificate and the port.
async fn served(place: &Place) -> (String, u16, AbortOnDropHandle<std::io::Result<()>>) {
    let authority = Authority::keep(&place.api.client("operator"), "penstock", "ca").await.unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(authority.server(&[NAME.to_owned()]).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = serve_progress(listener, acceptor, place.progress.clone(), CancellationToken::new());
    (authority.certificate, port, AbortOnDropHandle::new(tokio::spawn(serving)))
}

/// Posts a report to the server at `port` under `name`, trusting only `certificate`.
async fn reports(certificate: &str, name: &str, port: u16) -> Result<StatusCode, reqwest::Error> {
    let trusted = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([trusted])
        .no_proxy()
        .resolve(name, ([127, 0, 0, 1], port).into())
        .build()
        .unwrap();
    let url = format!("https://{name}:{port}{PATH}");
    Ok(client.post(url).bearer_auth("its-own").body(said()).send().await?.status())
}

#[tokio::test]
async fn executors_speak_tls_with_the_authority_of_their_job_file_and_with_nobody_else() {
    let place = Place::new();
    let (certificate, port, _serving) = served(&place).await;
    assert_eq!(reports(&certificate, NAME, port).await.unwrap(), StatusCode::OK);
    assert!(reports(&certificate, "elsewhere.penstock.svc", port).await.unwrap_err().is_connect());
    let (strange, _, _other) = served(&Place::new()).await;
    assert!(reports(&strange, NAME, port).await.unwrap_err().is_connect());
}

#[tokio::test]
async fn a_leader_that_follows_another_has_the_same_authority() {
    let place = Place::new();
    let (certificate, _, first) = served(&place).await;
    drop(first);
    let (again, port, _serving) = served(&place).await;
    assert_eq!(again, certificate);
    assert_eq!(reports(&certificate, NAME, port).await.unwrap(), StatusCode::OK);
}
