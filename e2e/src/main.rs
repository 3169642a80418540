//! The command behind `make cluster-up` and `make cluster-down`.

use std::process::ExitCode;

use clap::Parser;
use penstock_e2e::{cluster, layout::Layout};

/// A real Kubernetes cluster on this machine.
#[derive(Debug, Parser)]
enum Arguments {
    /// Build what is missing, start the cluster, and wait until it works
    Up,
    /// Stop it and take away what it left on the machine
    Down,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let layout = Layout::of_this_repository();
    let done = match Arguments::parse() {
        Arguments::Up => cluster::up(&layout).await.map(|()| {
            println!("export KUBECONFIG={}", layout.kubeconfig().display());
        }),
        Arguments::Down => cluster::down(&layout).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed to {error}");
            ExitCode::FAILURE
        }
    }
}
