//! The arguments of `penstock simulate`.

use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
};

use clap::{Args, Subcommand};

/// What can be simulated.
#[derive(Debug, Subcommand)]
pub(crate) enum Simulation {
    /// An inference provider that speaks OpenAI's API, with limits, latencies and faults as told
    Provider(ProviderArguments),
}

/// Arguments of `penstock simulate provider`. A flag wins over the settings file.
#[derive(Debug, Args)]
pub(crate) struct ProviderArguments {
    /// Where to listen; port 0 takes any free port. The first line on stdout is the base URL
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Settings (YAML or JSON): everything that has no flag
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Append each request and each answer to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Requests per minute before it answers 429
    #[arg(long, value_name = "N")]
    pub(crate) rpm: Option<NonZeroU32>,
    /// Tokens per minute before it answers 429
    #[arg(long, value_name = "N")]
    pub(crate) tpm: Option<NonZeroU64>,
    /// Milliseconds until the first token
    #[arg(long, value_name = "MS")]
    pub(crate) latency_ms: Option<u32>,
    /// Share of the requests that are answered with 500, from 0 to 1
    #[arg(long, value_name = "SHARE")]
    pub(crate) fail_share: Option<f64>,
    /// Decides every draw
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
