//! A control plane on the loopback, without nodes: etcd, the API server with a log of what the operator writes, the
//! controller of Jobs, and the operator itself. What a kubelet would do, [`kubelet`] does.

pub(crate) mod audit;
pub(crate) mod kubelet;

use std::{
    fs, io,
    net::TcpListener,
    path::{Path, PathBuf},
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::{
    error::BenchError,
    patience,
    process::{Cores, Invocation, Running},
    workplace::Workplace,
};

/// Whose writes are counted.
const OPERATOR: &str = "operator";
/// Everybody else.
const OTHERS: &str = "bench";
/// The namespace of the operator.
pub(crate) const OWN: &str = "penstock";
/// The namespace of the jobs.
pub(crate) const JOBS: &str = "team";
/// The pod that the operator takes for its own.
pub(crate) const POD: &str = "operator-0";

/// The running control plane; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    url: String,
    /// As one would type them.
    pub(crate) commands: Vec<String>,
    processes: Vec<Running>,
}

/// The running operator.
#[derive(Debug)]
pub(crate) struct Operator {
    pub(crate) process: Running,
    /// Where executors report.
    pub(crate) progress: String,
    /// As one would type it.
    pub(crate) command: String,
}

impl Cluster {
    /// Starts it, with all of its files below the workplace.
    pub(crate) fn start(place: &Workplace) -> Result<Self, BenchError> {
        let folder = place.output("cluster")?;
        fs::create_dir_all(&folder)?;
        let (etcd, peers, api) = (free_port()?, free_port()?, free_port()?);
        let url = format!("https://127.0.0.1:{api}");
        let mut cluster = Self { folder, url, commands: Vec::new(), processes: Vec::new() };
        cluster.begin("etcd", Path::new("etcd"), &cluster.etcd(etcd, peers))?;
        let arguments = cluster.api_server(etcd, api)?;
        cluster.begin("kube-apiserver", &place.kubernetes.join("kube-apiserver"), &arguments)?;
        patience::wait_for("the API server ready", || Ok(is_up(api)))?;
        let arguments = [
            format!("--kubeconfig={}", cluster.kubeconfig(OTHERS)?.display()),
            "--controllers=job".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=2000".to_owned(),
            "--kube-api-burst=4000".to_owned(),
            "--concurrent-job-syncs=20".to_owned(),
        ];
        cluster.begin(
            "kube-controller-manager",
            &place.kubernetes.join("kube-controller-manager"),
            &arguments,
        )?;
        Ok(cluster)
    }

    /// Starts the operator, which finds its inputs in this bucket.
    pub(crate) fn operator(&self, place: &Workplace, bucket: &str) -> Result<Operator, BenchError> {
        let (health, progress) = (free_port()?, free_port()?);
        let scratch = self.folder.join("scratch");
        fs::create_dir_all(&scratch)?;
        let words = [
            "serve".to_owned(),
            format!("--namespace={OWN}"),
            format!("--pod={POD}"),
            format!("--health-address=127.0.0.1:{health}"),
            format!("--progress-address=127.0.0.1:{progress}"),
            "--progress-host=localhost".to_owned(),
            format!("--scratch={}", scratch.display()),
            "--image=penstock".to_owned(),
        ];
        let invocation = Invocation::new(Cores::Both, &place.operator, words.iter().map(String::as_str))
            .variable("KUBECONFIG", &self.kubeconfig(OPERATOR)?.display().to_string())
            .variable("STORAGE_EMULATOR_HOST", bucket);
        Ok(Operator {
            process: invocation.start(&self.folder.join("operator.log"))?,
            progress: format!("https://localhost:{progress}"),
            command: invocation.to_string(),
        })
    }

    /// A client with all rights.
    pub(crate) async fn client(&self) -> Result<Client, BenchError> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(OTHERS)?).map_err(io::Error::other)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Ok(Client::try_from(config.map_err(io::Error::other)?).map_err(Box::new)?)
    }

    /// Where the API server says what the operator writes.
    pub(crate) fn audit(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    fn begin(&mut self, name: &str, program: &Path, arguments: &[String]) -> Result<(), BenchError> {
        let invocation = Invocation::new(Cores::Both, program, arguments.iter().map(String::as_str));
        self.commands.push(invocation.to_string());
        self.processes.push(invocation.start(&self.folder.join(format!("{name}.log")))?);
        Ok(())
    }

    fn etcd(&self, port: u16, peers: u16) -> Vec<String> {
        let (clients, peers) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peers}"));
        vec![
            format!("--data-dir={}", self.folder.join("etcd").display()),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            // What is measured does not outlive the measurement.
            "--unsafe-no-fsync".to_owned(),
        ]
    }

    fn api_server(&self, etcd: u16, port: u16) -> Result<Vec<String>, BenchError> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [
                {"level": "Metadata", "users": [OPERATOR], "verbs": ["create", "update", "patch", "delete"]},
                {"level": "None"},
            ],
        });
        let tokens = [OPERATOR, OTHERS].map(|user| format!("{user},{user},{user},system:masters\n"));
        let file = |name: &str, content: String| {
            let path = self.folder.join(name);
            fs::write(&path, content).map(|()| path.display().to_string())
        };
        Ok(vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", self.folder.join("certificates").display()),
            "--service-cluster-ip-range=10.190.0.0/24".to_owned(),
            "--authorization-mode=AlwaysAllow".to_owned(),
            // No pod has a token of its own but the one that it is given for reports.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            format!("--token-auth-file={}", file("tokens.csv", tokens.concat())?),
            "--service-account-issuer=https://penstock.invalid".to_owned(),
            format!("--service-account-key-file={}", file("tokens.pub", key.public_key_pem())?),
            format!("--service-account-signing-key-file={}", file("tokens.key", key.serialize_pem())?),
            format!("--audit-policy-file={}", file("audit-policy.json", policy.to_string())?),
            format!("--audit-log-path={}", self.audit().display()),
        ])
    }

    fn kubeconfig(&self, user: &str) -> Result<PathBuf, BenchError> {
        let content: Value = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": user}}],
            // Its certificate is its own, and it lives for minutes on the loopback.
            "clusters": [{"name": "bench", "cluster": {"server": self.url, "insecure-skip-tls-verify": true}}],
            "users": [{"name": user, "user": {"token": user}}],
        });
        let path = self.folder.join(format!("{user}.kubeconfig"));
        fs::write(&path, content.to_string())?;
        Ok(path)
    }
}

fn is_up(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// A port that nobody has.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
