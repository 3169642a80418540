//! The arguments of `penstock simulate`.

use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
};

use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use penstock_gcs_double::BucketName;
use penstock_scenarios::Rule;
use penstock_simulator::Enforcement;
use url::Url;

use super::word;

/// What can be simulated.
#[derive(Debug, Subcommand)]
pub(crate) enum Simulation {
    /// An inference provider that speaks OpenAI's API, with limits, latencies and faults as told
    Provider(ProviderArguments),
    /// A rule that paces requests against a provider with hidden limits, in virtual time: an hour takes a second
    Rate(RateArguments),
    /// A service that speaks Google Cloud Storage's API, as strict as the real one, with faults as told
    Storage(StorageArguments),
}

/// Arguments of `penstock simulate storage`.
#[derive(Debug, Args)]
pub(crate) struct StorageArguments {
    /// Where to listen, REST and gRPC alike; port 0 takes any free port. The first line on stdout is the URL
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    pub(crate) listen: SocketAddr,
    /// A bucket that is there from the start; may be repeated [default: bucket]
    #[arg(long = "bucket", value_name = "NAME", value_parser = BucketName::parse)]
    pub(crate) buckets: Vec<BucketName>,
    /// Append each request to this file when it is over, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// What goes wrong (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Post an event to this URL for each object that is written, as Eventarc does
    #[arg(long, value_name = "URL")]
    pub(crate) notify: Option<Url>,
    /// Milliseconds until an answer
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) latency_ms: u64,
    /// Decides every draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The folder of the temporary files that hold large objects [default: the system's]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

/// Arguments of `penstock simulate rate`.
#[derive(Debug, Args)]
pub(crate) struct RateArguments {
    /// The name of a scenario that comes with the program, or a file (YAML or JSON); without it the names are listed
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// The rule
    #[arg(long, default_value_t = Rule::Adaptive, value_parser = rules())]
    pub(crate) mode: Rule,
    /// How the limits are enforced [default: each way that the scenario names]
    #[arg(long, value_parser = word::parser::<Enforcement>(word::ENFORCEMENTS))]
    pub(crate) enforcement: Option<Enforcement>,
    /// Decides every draw
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Draw the first case into this file (SVG): limit, target, what was admitted and what was refused
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn rules() -> impl TypedValueParser<Value = Rule> {
    PossibleValuesParser::new(Rule::ALL.map(Rule::as_str)).try_map(|name| name.parse::<Rule>())
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
