//! `penstock url`: its URLs, used by a client without credentials against the doubles of both clouds.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    time::Duration,
};

use penstock_gcs_double::{BucketName, StorageServer, StorageSettings};
use penstock_s3_double::S3Double;
use rcgen::{KeyPair, PKCS_RSA_SHA256};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::world::{Said, World};

const LINES: &str = "one\ntwo\n";

/// A cloud, and the variables with which the binary finds it and may sign.
trait Cloud {
    fn scheme(&self) -> &'static str;
    fn reach(&self, command: &mut Command);
}

impl Cloud for S3Double {
    fn scheme(&self) -> &'static str {
        "s3"
    }

    fn reach(&self, command: &mut Command) {
        command.env("AWS_ENDPOINT_URL", self.endpoint()).env("AWS_REGION", "eu-west-1");
        command.env("AWS_ACCESS_KEY_ID", self.access_key_id());
        command.env("AWS_SECRET_ACCESS_KEY", self.secret_access_key());
    }
}

/// Google Cloud Storage, with the file of a service account's key.
struct Google {
    server: StorageServer,
    key: std::path::PathBuf,
}

impl Google {
    async fn start(world: &World) -> Self {
        let buckets = vec![BucketName::parse("bucket").unwrap()];
        let settings =
            StorageSettings { buckets, mutation_interval: Duration::ZERO, ..StorageSettings::default() };
        let server =
            StorageServer::start(settings, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap().serialize_pem();
        let key = json!({
            "type": "service_account",
            "client_email": "signer@project.iam.gserviceaccount.com",
            "private_key_id": "1",
            "private_key": key,
            "project_id": "project",
        });
        Self { server, key: world.write("key.json", &key.to_string()) }
    }
}

impl Cloud for Google {
    fn scheme(&self) -> &'static str {
        "gs"
    }

    fn reach(&self, command: &mut Command) {
        command.env("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", self.server.url());
        command.env("GOOGLE_APPLICATION_CREDENTIALS", &self.key);
    }
}

/// `penstock url` for the object of the tests.
fn url(world: &World, cloud: &dyn Cloud, what: &str, further: &[&str]) -> Said {
    let object = format!("{}://bucket/in/ä b.jsonl", cloud.scheme());
    let mut command = world.penstock(["url", what, &object]);
    cloud.reach(&mut command);
    Said::of(command.args(further))
}

async fn make(told: &Value, body: &'static str) -> Response {
    let method = Method::from_bytes(told["method"].as_str().unwrap().as_bytes()).unwrap();
    let mut request = Client::new().request(method, told["url"].as_str().unwrap()).body(body);
    for (name, value) in told["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    request.send().await.unwrap()
}

async fn holds_until_it_expires(world: &World, cloud: &dyn Cloud) {
    let typed = ["--content-type", "application/x-ndjson", "--json"];
    let upload = url(world, cloud, "upload", &typed).ended(0).json().remove(0);
    assert_eq!(upload["headers"]["content-type"], "application/x-ndjson");
    assert_eq!(upload["session"], false);
    assert_eq!(make(&upload, LINES).await.status(), StatusCode::OK);

    let download = url(world, cloud, "download", &[]).ended(0).told("curl --fail --output FILE URL");
    let answer = Client::new().get(download.stdout.trim_end()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    assert_eq!(answer.text().await.unwrap(), LINES);

    let short = url(world, cloud, "download", &["--expires", "1s", "--json"]).ended(0).json().remove(0);
    let refused = async {
        while !make(&short, "").await.status().is_client_error() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), refused).await.expect("it is refused after a second");
}

#[test]
fn the_urls_of_both_clouds_hold_until_they_expire() {
    let world = World::new();
    Runtime::new().unwrap().block_on(async {
        let s3 = S3Double::start(&["bucket"]).await.unwrap();
        holds_until_it_expires(&world, &s3).await;
        let google = Google::start(&world).await;
        holds_until_it_expires(&world, &google).await;
    });
}

#[test]
fn a_large_upload_to_google_is_a_session() {
    let world = World::new();
    Runtime::new().unwrap().block_on(async {
        let google = Google::start(&world).await;
        let large = ["--size", "20000000000", "--json"];
        let upload = url(&world, &google, "upload", &large).ended(0).json().remove(0);
        assert_eq!((&upload["method"], &upload["session"]), (&json!("POST"), &json!(true)));
        assert_eq!(upload["headers"], json!({ "x-goog-resumable": "start" }));
        let begun = make(&upload, "").await;
        assert!(begun.status().is_success(), "{begun:?}");
        let session = begun.headers()["location"].to_str().unwrap();
        assert_eq!(Client::new().put(session).body(LINES).send().await.unwrap().status(), StatusCode::OK);

        let download = url(&world, &google, "download", &["--json"]).ended(0).json().remove(0);
        assert_eq!(make(&download, "").await.text().await.unwrap(), LINES);
    });
}

#[test]
fn what_cannot_be_signed_says_what_to_do() {
    let world = World::new();
    let s3 = Runtime::new().unwrap().block_on(S3Double::start(&["bucket"])).unwrap();
    url(&world, &s3, "upload", &["--size", "6000000000"]).ended(64).told("such as `aws s3 cp`");
    url(&world, &s3, "download", &["--expires", "8d"]).ended(64).told("7 days at most");
    world.say(&["url", "download", "in.jsonl"]).ended(64).told("write gs://bucket/path or s3://bucket/path");
    world.say(&["url", "download", "s3://bucket"]).ended(64).told("names no object in it");

    let external = world.write("external.json", r#"{"type": "external_account"}"#);
    let mut command = world.penstock(["url", "download", "gs://bucket/a"]);
    let refused = Said::of(command.env("GOOGLE_APPLICATION_CREDENTIALS", external));
    refused.ended(64).told("only a service account can sign").told("--impersonate-service-account");
}
