//! The folder in which rows work: inputs that they share, outputs that they throw away, and the size of it all.

use std::{
    env,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    arguments::RowsArguments,
    error::BenchError,
    input::{self, Format, MODEL},
    process::{Cores, Invocation},
};

/// The folder that is made and removed. Its name is fixed, so that what an interrupted measurement left is found.
const FOLDER: &str = "penstock-bench-work";

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Rounds of what is compared side by side.
    pub(crate) rounds: usize,
    /// Requests of one round against the bare loop.
    pub(crate) requests: u64,
    /// Requests of one round against Python.
    pub(crate) script_requests: u64,
    /// Kills of one job.
    pub(crate) kills: usize,
    /// Lines of the large input of the memory rows.
    pub(crate) memory_lines: u64,
    /// Lines of an input that is validated.
    pub(crate) validated_lines: u64,
    /// Lines of a job that is resumed or finalised.
    pub(crate) job_lines: u64,
    /// Lines of an input that is read from a bucket.
    pub(crate) bucket_input_lines: u64,
    /// Lines of a job that is published in a bucket.
    pub(crate) bucket_lines: u64,
    /// How long a job rides a hidden limit.
    pub(crate) rate_time: Duration,
    /// Jobs that are over, for the operator.
    pub(crate) finished_jobs: u64,
    /// Jobs that run beside them.
    pub(crate) running_jobs: u64,
}

impl Sizes {
    const FULL: Self = Self {
        rounds: 3,
        requests: 200_000,
        script_requests: 30_000,
        kills: 5,
        memory_lines: 10_000_000,
        validated_lines: 1_500_000,
        job_lines: 1_000_000,
        bucket_input_lines: 4_100_000,
        bucket_lines: 10_000_000,
        rate_time: Duration::from_mins(10),
        finished_jobs: 2_000,
        running_jobs: 200,
    };
    const QUICK: Self = Self {
        rounds: 1,
        requests: 20_000,
        script_requests: 3_000,
        kills: 2,
        memory_lines: 100_000,
        validated_lines: 100_000,
        job_lines: 50_000,
        bucket_input_lines: 100_000,
        bucket_lines: 50_000,
        rate_time: Duration::from_mins(2),
        finished_jobs: 40,
        running_jobs: 10,
    };
}

/// Where rows work and what they work with.
#[derive(Debug)]
pub(crate) struct Workplace {
    folder: PathBuf,
    /// The folder around it, locked for as long as this measurement works there.
    _claim: File,
    pub(crate) penstock: PathBuf,
    pub(crate) operator: PathBuf,
    /// Where the programs of Kubernetes are.
    pub(crate) kubernetes: PathBuf,
    /// This program.
    pub(crate) own: PathBuf,
    pub(crate) python: PathBuf,
    pub(crate) script: PathBuf,
    pub(crate) sizes: Sizes,
}

impl Workplace {
    /// Makes the folder, empty, unless another measurement works there.
    pub(crate) fn new(arguments: &RowsArguments) -> Result<Self, BenchError> {
        let own = env::current_exe()?;
        let penstock = arguments.penstock.clone().unwrap_or_else(|| own.with_file_name("penstock"));
        let operator = arguments.operator.clone().unwrap_or_else(|| own.with_file_name("penstock-operator"));
        let mut sizes = if arguments.quick { Sizes::QUICK } else { Sizes::FULL };
        sizes.memory_lines = arguments.lines.unwrap_or(sizes.memory_lines);
        let around = std::path::absolute(&arguments.folder)?;
        let place = Self {
            folder: around.join(FOLDER),
            _claim: claim(&around)?,
            penstock,
            operator,
            kubernetes: std::path::absolute(&arguments.kubernetes)?,
            own,
            python: arguments.python.clone(),
            script: arguments.script.clone(),
            sizes,
        };
        place.remove(&place.folder)?;
        fs::create_dir_all(&place.folder).map_err(|source| place.failed(&place.folder, source))?;
        Ok(place)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// An input of so many lines, made when it is first asked for.
    pub(crate) fn input(&self, format: Format, lines: u64) -> Result<PathBuf, BenchError> {
        let path = self.folder.join(format!("{}-{lines}.jsonl", format.name()));
        if !path.exists() {
            input::write(&path, format, lines).map_err(|source| self.failed(&path, source))?;
        }
        Ok(path)
    }

    /// A path at which nothing is yet.
    pub(crate) fn output(&self, name: &str) -> Result<PathBuf, BenchError> {
        let path = self.folder.join(name);
        self.remove(&path)?;
        Ok(path)
    }

    /// Where a program's stderr goes.
    pub(crate) fn said(&self) -> PathBuf {
        self.folder.join("said.txt")
    }

    /// `penstock run` without any limit but `in_flight`: nothing looks for one either.
    pub(crate) fn penstock_run(
        &self,
        cores: Cores,
        input: &Path,
        output: &Path,
        url: &str,
        in_flight: u32,
    ) -> Invocation {
        let (input, output) = (input.display().to_string(), output.display().to_string());
        let in_flight = in_flight.to_string();
        Invocation::new(cores, &self.penstock, ["run", &input, "--output", &output])
            .with(["--provider", "openai-compatible", "--base-url", url, "--model", MODEL])
            .with(["--rate", "fixed", "--max-in-flight", &in_flight])
    }

    /// Removes a file or a folder with all that is in it.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), BenchError> {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(path, error)),
            _ => Ok(()),
        }
    }

    fn failed(&self, path: &Path, source: io::Error) -> BenchError {
        BenchError::File { path: path.strip_prefix(&self.folder).unwrap_or(path).to_owned(), source }
    }
}

/// Locks a folder. The lock ends with the process, however that ends.
fn claim(folder: &Path) -> Result<File, BenchError> {
    let failed = |source| BenchError::File { path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let claim = File::open(folder).map_err(failed)?;
    match claim.try_lock() {
        Ok(()) => Ok(claim),
        Err(TryLockError::WouldBlock) => Err(BenchError::Taken { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // What is left behind is emptied by the next measurement.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_measurements_do_not_work_in_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = claim(folder.path()).unwrap();
        let second = claim(folder.path()).unwrap_err();
        assert!(
            matches!(&second, BenchError::Taken { .. }) && second.to_string().contains("--folder"),
            "{second}"
        );
        drop(first);
        claim(folder.path()).unwrap();
    }
}
