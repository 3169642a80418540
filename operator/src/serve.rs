//! The life of the operator's process: health at once, then the definitions of its kinds, then the lease, then work; and
//! all of it in the opposite order when it is told to stop.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use k8s_controller::events::{EventRecorder, Reporter};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Config, CustomResourceExt,
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use penstock_crds::{BatchJob, Provider};
use thiserror::Error;
use tokio::{
    net::TcpListener,
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    call::CallError,
    controller::watch,
    health::{Readiness, serve_health},
    intakes::Intakes,
    leadership::Candidate,
    metrics::Metrics,
    progress::{Authority, AuthorityError, Progress, Reports, Reviewer, serve_progress},
    reconcile::Reconciler,
    settings::Settings,
};

/// The Secret with the certificate authority of the progress call.
const AUTHORITY: &str = "penstock-progress-ca";
/// Who events are from.
const REPORTER: &str = "penstock.dev/operator";
/// Jobs that wait to be looked at because of a report or an intake.
const TURNED: usize = 1_024;
/// How long to wait before a definition that was not found is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often what is kept of jobs that are gone is forgotten.
const FORGET_EVERY: Duration = Duration::from_mins(1);

/// How the process is set up.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The namespace that it runs in.
    pub namespace: String,
    /// The pod that it runs in.
    pub pod: String,
    /// The namespace that it watches; `None`: all.
    pub watch_namespace: Option<String>,
    /// Where the kubelet asks for its health.
    pub health_address: SocketAddr,
    /// Where executors report.
    pub progress_address: SocketAddr,
    /// The names under which executors reach it.
    pub progress_names: Vec<String>,
    /// A folder on local disk for validation.
    pub scratch: PathBuf,
    /// How pods are made.
    pub settings: Settings,
}

/// Why the process ends. Messages read after "failed to".
#[derive(Debug, Error)]
pub enum ServeError {
    /// There is no cluster.
    #[error("reach the cluster: {0}; run in a pod with a service account, or set KUBECONFIG")]
    Cluster(String),
    /// A port is taken.
    #[error("listen on {address}: {source}; free the port or choose another")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The pod's label.
    #[error(
        "label the pod {pod}: {source}; let the operator patch pods in its own namespace, and set POD_NAME"
    )]
    Label {
        /// Its name.
        pod: String,
        /// What the API server says.
        source: CallError,
    },
    /// The certificate authority.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// Another replica leads.
    #[error("keep the lease: another replica leads now; this one begins anew")]
    LeadershipLost,
    /// A part of the process has ended by itself.
    #[error("go on serving: {0}; the process begins anew")]
    Ended(&'static str),
}

/// Serves until `stop`.
pub async fn serve(options: ServeOptions, stop: CancellationToken) -> Result<(), ServeError> {
    let client = connect().await?;
    let readiness = Readiness::awaiting(["BatchJob", "Provider"]);
    let health = listen(options.health_address).await?;
    let metrics = Arc::new(Metrics::default());
    // It answers until the very end, and ends with the process.
    let health = AbortOnDropHandle::new(tokio::spawn(serve_health(
        health,
        readiness.clone(),
        Arc::clone(&metrics),
        CancellationToken::new(),
    )));
    let candidate = Candidate::new(client.clone(), options.namespace.clone(), options.pod.clone());
    let label = |source| ServeError::Label { pod: options.pod.clone(), source };
    let leads = CancellationToken::new();
    let work = async {
        leads.cancel();
        candidate.take_label().await.map_err(label)?;
        work(&client, &options, metrics, &stop).await
    };
    let led = async {
        if let Err(source) = candidate.drop_label().await {
            return Some(Err(label(source)));
        }
        await_definitions(&client, &readiness).await;
        Box::pin(candidate.lead(work)).await
    };
    let ended = tokio::select! {
        led = led => led.unwrap_or(Err(ServeError::LeadershipLost)),
        // Whoever leads finishes its passes and gives the lease back; whoever waits just leaves.
        () = stopped_waiting(&stop, &leads) => Ok(()),
        _ = health => Err(ServeError::Ended("nobody answers the kubelet")),
    };
    ended
}

/// Completes when the process is to stop while it does not lead.
async fn stopped_waiting(stop: &CancellationToken, leads: &CancellationToken) {
    stop.cancelled().await;
    if leads.is_cancelled() {
        std::future::pending::<()>().await;
    }
}

/// What the leader does, until `stop`.
async fn work(
    client: &Client,
    options: &ServeOptions,
    metrics: Arc<Metrics>,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let authority = Authority::keep(client, &options.namespace, AUTHORITY).await?;
    let acceptor = TlsAcceptor::from(Arc::new(authority.server(&options.progress_names)?));
    let listener = listen(options.progress_address).await?;
    let watches = watch(client, options.watch_namespace.as_deref());
    let reports = Arc::new(Reports::default());
    metrics.leads(Arc::clone(&watches.caches), Arc::clone(&reports));
    let (turned, turns) = mpsc::channel(TURNED);
    let progress = Progress {
        caches: Arc::clone(&watches.caches),
        reviewer: Arc::new(Reviewer::new(client.clone())),
        reports: Arc::clone(&reports),
        turned: turned.clone(),
    };
    let reporter = Reporter { controller: REPORTER.to_owned(), instance: Some(options.pod.clone()) };
    let reconciler = Arc::new(Reconciler {
        client: client.clone(),
        caches: Arc::clone(&watches.caches),
        reports,
        intakes: Intakes::new(options.scratch.clone(), turned),
        settings: options.settings.clone(),
        authority: authority.certificate,
        events: EventRecorder::new(client.clone(), reporter),
        metrics,
        failures: std::sync::Mutex::default(),
    });
    tracing::info!(pod = options.pod, "leading");
    let forgetting = AbortOnDropHandle::new(tokio::spawn(forget(Arc::clone(&reconciler))));
    let reporting =
        AbortOnDropHandle::new(tokio::spawn(serve_progress(listener, acceptor, progress, stop.clone())));
    let ended = tokio::select! {
        () = watches.run(reconciler, turns, stop.clone()) => Ok(()),
        _ = reporting, if !stop.is_cancelled() => Err(ServeError::Ended("nobody answers executors")),
    };
    drop(forgetting);
    if stop.is_cancelled() { Ok(()) } else { ended.and(Err(ServeError::Ended("the watches have ended"))) }
}

/// Forgets what is kept of jobs that are gone.
async fn forget(reconciler: Arc<Reconciler>) {
    loop {
        sleep(FORGET_EVERY).await;
        reconciler.forget();
    }
}

async fn connect() -> Result<Client, ServeError> {
    let mut config = Config::infer().await.map_err(|error| ServeError::Cluster(error.to_string()))?;
    // The controller's back-off repeats what failed, knowing what it then sees; a lease must not be renewed late.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| ServeError::Cluster(error.to_string()))
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

/// Completes when the API server knows the kinds. Until then the process is alive and not ready.
async fn await_definitions(client: &Client, readiness: &Readiness) {
    for (kind, name) in [("BatchJob", BatchJob::crd_name()), ("Provider", Provider::crd_name())] {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        loop {
            let established = await_condition(api.clone(), name, is_crd_established());
            match timeout(LOOK_AGAIN, established).await {
                Ok(Ok(_)) => break,
                Ok(Err(error)) => {
                    tracing::warn!(kind, %error, "the definition cannot be looked at; see that the operator's role allows it");
                    sleep(LOOK_AGAIN).await;
                }
                Err(_) => tracing::warn!(
                    kind,
                    "the definition is not there; install the custom resource definitions"
                ),
            }
        }
        readiness.has(kind);
    }
}
