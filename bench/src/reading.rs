//! Reading an input from its first byte to its last and dropping it: as Penstock does, and with a bare client.

use std::{
    fs, io,
    time::{Duration, Instant},
};

use penstock_storage::{InputReader, Location, open_input};
use reqwest::Client;
use serde::{Deserialize, Serialize};

use crate::{arguments::ReadArguments, error::BenchError};

/// What reading came to; printed as JSON.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) bytes: u64,
    /// From the first request for a byte to the last byte.
    pub(crate) seconds: f64,
    /// Resident when the object was open and nothing of it read.
    pub(crate) idle_bytes: u64,
    /// The most that was resident at any moment.
    pub(crate) peak_bytes: u64,
}

/// Reads what the arguments name and says what it came to.
pub(crate) fn run(arguments: &ReadArguments) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let reading = runtime.block_on(async {
        if arguments.bare { bare(&arguments.place).await } else { input(&arguments.place).await }
    })?;
    println!("{}", serde_json::to_string(&reading).map_err(io::Error::from)?);
    Ok(())
}

/// As a job reads its input.
async fn input(place: &str) -> Result<Reading, BenchError> {
    let location = Location::parse(place).map_err(|error| io::Error::other(error.to_string()))?;
    let input = open_input(&location).await?;
    let idle_bytes = resident("VmRSS:")?;
    let begun = Instant::now();
    let mut reader = InputReader::whole(input);
    let mut bytes = 0;
    while let Some(chunk) = reader.next().await? {
        bytes += chunk.len() as u64;
    }
    reading(bytes, begun.elapsed(), idle_bytes)
}

/// One request over the HTTP client and nothing around it.
async fn bare(url: &str) -> Result<Reading, BenchError> {
    let client = Client::builder().no_proxy().tls_certs_only([]).build()?;
    let idle_bytes = resident("VmRSS:")?;
    let begun = Instant::now();
    let mut response = client.get(url).send().await?.error_for_status()?;
    let mut bytes = 0;
    while let Some(chunk) = response.chunk().await? {
        bytes += chunk.len() as u64;
    }
    reading(bytes, begun.elapsed(), idle_bytes)
}

fn reading(bytes: u64, elapsed: Duration, idle_bytes: u64) -> Result<Reading, BenchError> {
    Ok(Reading { bytes, seconds: elapsed.as_secs_f64(), idle_bytes, peak_bytes: resident("VmHWM:")? })
}

/// A line of `/proc/self/status` (`proc_pid_status(5)`), in bytes.
fn resident(line: &str) -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kibibytes = status
        .lines()
        .find_map(|found| found.strip_prefix(line)?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kibibytes
        .map(|kibibytes| kibibytes << 10)
        .ok_or_else(|| io::Error::other("the system tells no resident memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel counts pages for each thread and sums up now and then, so that two readings need not agree to the page.
    #[test]
    fn the_peak_remembers_what_was_resident() {
        const BYTES: usize = 32 << 20;
        let touched = std::hint::black_box(vec![1_u8; BYTES]);
        drop(touched);
        let (now, peak) = (resident("VmRSS:").unwrap(), resident("VmHWM:").unwrap());
        assert!(now > 0 && peak >= BYTES as u64, "{now} of {peak}");
    }
}
