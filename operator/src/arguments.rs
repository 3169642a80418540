//! The command line, and the same by variables of the environment.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::{serve::ServeOptions, settings::Settings};

/// Runs the jobs of a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch BatchJobs and run them.
    Serve(Box<ServeArguments>),
    /// Validate the input of one job, or find what its output already holds, and say so in the termination message.
    Intake(IntakeArguments),
}

/// How to serve.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// The namespace that this process runs in.
    #[arg(long, env = "POD_NAMESPACE")]
    namespace: String,
    /// The pod that this process runs in.
    #[arg(long, env = "POD_NAME")]
    pod: String,
    /// The only namespace to watch [default: all]
    #[arg(long, env = "PENSTOCK_WATCH_NAMESPACE")]
    watch_namespace: Option<String>,
    /// Where the kubelet asks for health.
    #[arg(long, env = "PENSTOCK_HEALTH_ADDRESS", default_value = "0.0.0.0:8080")]
    health_address: SocketAddr,
    /// Where executors report.
    #[arg(long, env = "PENSTOCK_PROGRESS_ADDRESS", default_value = "0.0.0.0:8443")]
    progress_address: SocketAddr,
    /// The host name under which executors reach this process [default: penstock-progress.NAMESPACE.svc]
    #[arg(long, env = "PENSTOCK_PROGRESS_HOST")]
    progress_host: Option<String>,
    /// A folder on local disk for validation.
    #[arg(long, env = "PENSTOCK_SCRATCH", default_value = "/scratch")]
    scratch: PathBuf,
    /// The image of the pods of jobs.
    #[arg(long, env = "PENSTOCK_IMAGE")]
    image: String,
    /// How it is pulled [default: as Kubernetes does]
    #[arg(long, env = "PENSTOCK_IMAGE_PULL_POLICY")]
    image_pull_policy: Option<String>,
    /// A variable for the pods of jobs, as NAME=VALUE; may be given several times.
    #[arg(long = "executor-env", env = "PENSTOCK_EXECUTOR_ENV", value_delimiter = ',', value_parser = pair)]
    executor_environment: Vec<(String, String)>,
    /// What a pod asks for where its job does not say, as RESOURCE=AMOUNT.
    #[arg(long = "executor-request", env = "PENSTOCK_EXECUTOR_REQUESTS", value_delimiter = ',', value_parser = pair,
          default_value = "cpu=250m,memory=160Mi")]
    executor_requests: Vec<(String, String)>,
    /// The most that a pod may use where its job does not say, as RESOURCE=AMOUNT.
    #[arg(long = "executor-limit", env = "PENSTOCK_EXECUTOR_LIMITS", value_delimiter = ',', value_parser = pair,
          default_value = "memory=512Mi")]
    executor_limits: Vec<(String, String)>,
    /// How much local disk a pod may use for what is not durable yet.
    #[arg(long, env = "PENSTOCK_SCRATCH_SIZE", default_value = "4Gi")]
    scratch_size: String,
    /// Where jobs on one key tell each other what they learn of its rate: a path in a bucket that all of them may write
    /// [default: each learns alone]
    #[arg(long, env = "PENSTOCK_SHARED_STATE", value_name = "URI")]
    shared_state: Option<String>,
    /// The priority class of the pods of jobs.
    #[arg(long, env = "PENSTOCK_PRIORITY_CLASS")]
    priority_class: Option<String>,
    /// Seconds that a pod of a job has to leave when it is told to.
    #[arg(long, env = "PENSTOCK_GRACE_PERIOD_SECONDS", default_value_t = 30)]
    grace_period_seconds: i64,
}

/// What to validate.
#[derive(Debug, Args)]
pub struct IntakeArguments {
    /// The job file.
    #[arg(long, value_name = "FILE")]
    pub job: PathBuf,
    /// A folder on local disk.
    #[arg(long, value_name = "DIR")]
    pub scratch: PathBuf,
    /// Where what was found is written.
    #[arg(long, value_name = "PATH")]
    pub termination_message: PathBuf,
}

impl From<ServeArguments> for ServeOptions {
    fn from(arguments: ServeArguments) -> Self {
        let host = arguments
            .progress_host
            .unwrap_or_else(|| format!("penstock-progress.{}.svc", arguments.namespace));
        let port = arguments.progress_address.port();
        Self {
            settings: Settings {
                image: arguments.image,
                image_pull_policy: arguments.image_pull_policy,
                environment: pairs(arguments.executor_environment),
                requests: pairs(arguments.executor_requests),
                limits: pairs(arguments.executor_limits),
                scratch_size: arguments.scratch_size,
                shared_state: arguments.shared_state,
                priority_class: arguments.priority_class,
                grace_period_seconds: arguments.grace_period_seconds,
                progress_url: format!("https://{host}:{port}"),
            },
            namespace: arguments.namespace,
            pod: arguments.pod,
            watch_namespace: arguments.watch_namespace,
            health_address: arguments.health_address,
            progress_address: arguments.progress_address,
            progress_names: vec![host],
            scratch: arguments.scratch,
        }
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn pairs(pairs: Vec<(String, String)>) -> BTreeMap<String, String> {
    pairs.into_iter().collect()
}
