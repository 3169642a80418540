//! The command line of `penstock-bench`.

use std::{num::NonZeroU32, path::PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::rows::Subject;

/// Measures the released binaries.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure rows and print them with the commands that made them
    Rows(RowsArguments),
    /// Serve one fixed answer to every request, until stdin ends
    Serve(ServeArguments),
    /// Send one body again and again, with nothing around it
    Loop(LoopArguments),
    /// Serve a bucket, until stdin ends
    Bucket(BucketArguments),
    /// Read an input to its end and drop it
    Read(ReadArguments),
}

/// Bytes of an answer that sorts its question under one word.
pub(crate) const ONE_WORD: usize = 7;

/// Arguments of `penstock-bench serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Bytes of the text in the answer
    #[arg(long, value_name = "N", default_value_t = ONE_WORD)]
    pub(crate) text_bytes: usize,
}

/// Arguments of `penstock-bench rows`.
#[derive(Debug, Args)]
pub(crate) struct RowsArguments {
    /// Only these subjects, with commas between them
    #[arg(long, value_delimiter = ',', value_enum)]
    pub(crate) only: Vec<Subject>,
    /// Small inputs and few rounds: to see that everything works, not for figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Lines of the large input of the memory rows [default: 10,000,000]
    #[arg(long, value_name = "N")]
    pub(crate) lines: Option<u64>,
    /// One JSON object a row on stdout instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// The measured binary [default: the one beside this one]
    #[arg(long, value_name = "FILE")]
    pub(crate) penstock: Option<PathBuf>,
    /// The measured operator [default: the one beside this one]
    #[arg(long, value_name = "FILE")]
    pub(crate) operator: Option<PathBuf>,
    /// Where kube-apiserver and kube-controller-manager are; `make cluster-up` builds them
    #[arg(long, value_name = "DIR", default_value = "target/cluster/bin")]
    pub(crate) kubernetes: PathBuf,
    /// A Python that has aiohttp
    #[arg(long, value_name = "FILE", default_value = "python3")]
    pub(crate) python: PathBuf,
    /// The script to compare with
    #[arg(long, value_name = "FILE", default_value = "bench/aiohttp_batch.py")]
    pub(crate) script: PathBuf,
    /// A folder on a real disk, below which all files are made and removed again
    #[arg(long, value_name = "DIR", default_value = "target")]
    pub(crate) folder: PathBuf,
}

/// Arguments of `penstock-bench loop`.
#[derive(Debug, Args)]
pub(crate) struct LoopArguments {
    /// Where to send to
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    /// How many requests in all
    #[arg(long, value_name = "N")]
    pub(crate) requests: u64,
    /// How many at once
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: NonZeroU32,
}

/// Arguments of `penstock-bench bucket`.
#[derive(Debug, Args)]
pub(crate) struct BucketArguments {
    /// Milliseconds until an answer
    #[arg(long, value_name = "MS")]
    pub(crate) latency_ms: u64,
    /// Below it large objects are kept
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Arguments of `penstock-bench read`.
#[derive(Debug, Args)]
pub(crate) struct ReadArguments {
    /// Where it is, as `penstock run` takes it; with --bare an HTTP URL
    #[arg(value_name = "INPUT")]
    pub(crate) place: String,
    /// One GET over the HTTP client, with nothing around it
    #[arg(long)]
    pub(crate) bare: bool,
}
