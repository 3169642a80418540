//! `penstock why`: walks from a BatchJob over everything that it needs to its pod, and tells the first thing that is in the
//! way, what shows it, and one command that helps.

mod cause;
mod seen;

use penstock_job::ExitCode;
use thiserror::Error;

use self::{cause::cause, seen::look};
use crate::{arguments::WhyArguments, error::CommandError, lines::Lines};

/// Why nothing could be looked at. Messages read after "failed to".
#[derive(Debug, Error)]
pub(crate) enum WhyError {
    /// There is no cluster to ask.
    #[error("reach a cluster: {0}; name one with KUBECONFIG")]
    Cluster(String),
    /// It does not answer, or does not let us.
    #[error(
        "look at the {kind} {name}: {source}; see that you may get it: kubectl auth can-i get {kind} -n {namespace}"
    )]
    Refused {
        /// What was asked for.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Where.
        namespace: String,
        /// What the API server says.
        source: Box<kube::Error>,
    },
    /// It takes too long.
    #[error("hear from the cluster within {0} s; see whether it can be reached: kubectl version")]
    Slow(u64),
}

/// Tells why a job is not further.
pub(crate) async fn why(arguments: &WhyArguments) -> Result<ExitCode, CommandError> {
    let (namespace, name) = match arguments.batch_job.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, arguments.batch_job.as_str()),
    };
    let seen = look(namespace, name).await?;
    let cause = cause(&seen);
    let mut stdout = Lines::stdout();
    if arguments.json {
        stdout.json(&cause);
    } else {
        stdout.text(&format!("{}/{}: {}", seen.namespace, seen.name, cause.what));
        stdout.text(&format!("  shown by  {}", cause.evidence));
        stdout.text(&format!("  try       {}", cause.command));
    }
    stdout.flush()?;
    Ok(ExitCode::Completed)
}
