//! Provider and bucket of a scenario, reached through the API server. Nothing here uses Penstock's own client.

use std::{process::Stdio, time::Duration};

use penstock_e2e::patience::until;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufStream},
    net::TcpStream,
    process::{Child, ChildStdout},
    time::timeout,
};

use crate::{
    place::{Namespace, PATIENCE},
    witness::Testimony,
};

/// How long a request to the bucket may take.
const ANSWER: Duration = Duration::from_secs(20);

/// The doubles of one scenario.
#[derive(Debug)]
pub(crate) struct Doubles {
    port: u16,
    /// Ends with this value.
    _forward: Child,
    /// It tells there of each connection, and would die of nobody listening.
    _told: BufReader<ChildStdout>,
}

impl Doubles {
    /// Starts both, and lays an input of so many lines into the bucket.
    pub(crate) async fn start(namespace: &Namespace, lines: usize) -> Self {
        let doubles = Self::with(namespace, &json!({}), &json!([])).await;
        let line = |id| format!(r#"{{"prompt_id": {id}, "prompt": "line {id}"}}"#);
        doubles.lay("in.jsonl", (0..lines).map(line).collect::<Vec<_>>().join("\n").as_bytes()).await;
        doubles
    }

    /// Starts both: the provider with these settings, the storage with these faults.
    pub(crate) async fn with(namespace: &Namespace, provider: &Value, faults: &Value) -> Self {
        let faults = json!({"faults": faults});
        let settings = [("'{}'", provider), (r#"'{"faults": []}'"#, &faults)];
        let manifest = settings.iter().fold(namespace.manifest("doubles.yaml"), |text, (usual, own)| {
            assert!(text.contains(usual), "the manifest of the doubles says {usual}");
            text.replace(usual, &format!("'{own}'"))
        });
        namespace.apply_text(manifest).await;
        Self::reach(namespace).await
    }

    /// The same, when the API server was away: Services lead to no pod of a node that was not heard, until it is heard again.
    ///
    /// Each process looks again in its own time, up to a minute late, and until then a Deployment says that all is well.
    pub(crate) async fn reached_again(self, namespace: &Namespace) -> Self {
        let ready = "--for=condition=Ready";
        let of_storage = "--selector=kubernetes.io/service-name=storage";
        let leads = "--for=jsonpath={.endpoints[0].conditions.ready}=true";
        for wait in [
            ["wait", ready, "--timeout=110s", "nodes", "--all"],
            ["wait", ready, "--timeout=110s", "pods", "--selector=app in (provider, storage)"],
            ["wait", leads, "--timeout=110s", "endpointslices", of_storage],
        ] {
            namespace.kubectl(wait).within(PATIENCE).run().await.unwrap();
        }
        Self::reach(namespace).await
    }

    async fn reach(namespace: &Namespace) -> Self {
        for deployment in ["deployment/provider", "deployment/storage"] {
            let wait = ["rollout", "status", deployment, "--timeout=110s"];
            namespace.kubectl(wait).within(PATIENCE).run().await.unwrap();
        }
        let mut forward = namespace.long();
        forward
            .args(["port-forward", "service/storage", ":9090"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut forward = forward.spawn().unwrap();
        let mut told = String::new();
        let mut stdout = BufReader::new(forward.stdout.take().unwrap());
        timeout(PATIENCE, stdout.read_line(&mut told)).await.unwrap().unwrap();
        // "Forwarding from 127.0.0.1:PORT -> 9090"
        let port = told.split([':', ' ']).find_map(|word| word.parse().ok());
        Self { port: port.unwrap_or_else(|| panic!("no port in {told:?}")), _forward: forward, _told: stdout }
    }

    /// Writes an object, or writes it over as soon as the bucket lets it: once a second.
    pub(crate) async fn lay(&self, name: &str, content: &[u8]) {
        let path = format!("/upload/storage/v1/b/ours/o?uploadType=media&name={name}");
        let write = || async {
            match self.ask("POST", &path, content).await {
                (200, _) => Ok(()),
                (429, _) => Err("it was written a moment ago"),
                (status, answer) => panic!("{name}: {status}: {}", String::from_utf8_lossy(&answer)),
            }
        };
        until(&format!("{name} to be written"), ANSWER, write).await.unwrap();
    }

    /// An object below an output; `None` where it is not there.
    pub(crate) async fn published(&self, output: &str, name: &str) -> Option<String> {
        let path = format!("/storage/v1/b/ours/o/{output}%2F{name}?alt=media");
        match self.ask("GET", &path, b"").await {
            (200, content) => Some(String::from_utf8(content).unwrap()),
            (404, _) => None,
            (status, answer) => panic!("{output}/{name}: {status}: {}", String::from_utf8_lossy(&answer)),
        }
    }

    async fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        timeout(ANSWER, self.exchange(method, path, body)).await.expect("the bucket answers in time")
    }

    async fn exchange(&self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = BufStream::new(TcpStream::connect(("127.0.0.1", self.port)).await.unwrap());
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: storage\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        stream.flush().await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).await.unwrap(), 0, "an answer has a whole head: {head:?}");
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        // Read by its length and not to the end: whatever forwards may break the connection instead of closing it.
        let mut content = vec![0; length.expect("an answer says how long it is")];
        stream.read_exact(&mut content).await.unwrap();
        (status, content)
    }
}

/// Waits until the provider has answered so many requests.
pub(crate) async fn answered(namespace: &Namespace, least: usize) {
    answered_of(namespace, "", least).await;
}

/// Waits until the provider has answered so many requests whose prompts begin like this.
pub(crate) async fn answered_of(namespace: &Namespace, beginning: &str, least: usize) {
    let ask = || async {
        let testimony = Testimony::of_provider(namespace).await.of(beginning);
        let answers = testimony.answers();
        if answers >= least { Ok(()) } else { Err(format!("it has answered {answers}")) }
    };
    until(&format!("the provider to have answered {least} requests"), PATIENCE, ask).await.unwrap();
}
