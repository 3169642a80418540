//! Where the job of a test is: a folder, or a bucket of the storage double. A test that draws on this holds in both.
//!
//! | module | what |
//! |---|---|
//! | `outside` | the bucket as anybody sees it who speaks its REST interface |

pub(crate) mod outside;

use std::{
    fmt,
    fs::{self, File},
    net::Ipv4Addr,
    path::PathBuf,
    sync::Arc,
};

use penstock_gcs_double::{BucketName, FaultRule, StorageServer, StorageSettings};
use penstock_storage::{FileStore, GsBucket, GsSettings, GsStore, Store};
use rustix::fs::{FlockOperation, flock};
use tokio::process::Command;

use self::outside::BUCKET;
use crate::witness::Output;

/// The name of the input in its folder or bucket.
pub(crate) const INPUT: &str = "input.jsonl";

/// Which kind of place it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    Folder,
    Bucket,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Folder => "folder",
            Self::Bucket => "bucket",
        })
    }
}

/// Input and output of one job.
#[derive(Debug)]
pub(crate) struct Site {
    /// What is on this machine: of a folder all of it, of a bucket what runs keep in the user's state folder.
    root: PathBuf,
    bucket: Option<Bucket>,
}

/// A double with one bucket.
#[derive(Debug)]
struct Bucket {
    server: StorageServer,
    /// The output, for writes that come from elsewhere.
    store: Arc<dyn Store>,
}

impl Site {
    /// A job with this input, and what it needs of this machine below a folder.
    pub(crate) async fn new(kind: Kind, root: PathBuf, input: &[u8]) -> Self {
        let bucket = match kind {
            Kind::Folder => {
                fs::write(root.join(INPUT), input).unwrap();
                None
            }
            Kind::Bucket => Some(Bucket::start(input).await),
        };
        Self { root, bucket }
    }

    /// The input, as a command is given it.
    pub(crate) fn input(&self) -> String {
        self.place(INPUT)
    }

    /// The output, as a command is given it.
    pub(crate) fn output(&self) -> String {
        self.place("out")
    }

    fn place(&self, name: &str) -> String {
        match &self.bucket {
            None => self.root.join(name).display().to_string(),
            Some(_) => format!("gs://{BUCKET}/{name}"),
        }
    }

    /// The output, as a witness sees it.
    pub(crate) fn seen(&self) -> Output {
        match &self.bucket {
            None => Output::Folder(self.root.join("out")),
            Some(bucket) => Output::Bucket { history: bucket.server.history(), below: "out/".to_owned() },
        }
    }

    /// Lets a command find the bucket, and keep on this machine what is this job's alone.
    pub(crate) fn lead(&self, command: &mut Command) {
        if let Some(bucket) = &self.bucket {
            command.env("STORAGE_EMULATOR_HOST", bucket.server.url());
            command.env("XDG_STATE_HOME", self.root.join("state"));
        }
    }

    /// The output's storage, to make the writes of others.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match &self.bucket {
            None => Arc::new(FileStore::open(self.root.join("out")).await.unwrap()),
            Some(bucket) => Arc::clone(&bucket.store),
        }
    }

    /// Writes an object of the output as an operator or a broken disk would.
    pub(crate) async fn overwrite(&self, name: &str, content: &[u8]) {
        match &self.bucket {
            None => fs::write(self.root.join("out").join(name), content).unwrap(),
            Some(bucket) => outside::put(&bucket.server.url(), &format!("out/{name}"), content).await,
        }
    }

    /// Deletes an object of the output in the same way.
    pub(crate) async fn delete(&self, name: &str) {
        match &self.bucket {
            None => fs::remove_file(self.root.join("out").join(name)).unwrap(),
            Some(bucket) => outside::delete(&bucket.server.url(), &format!("out/{name}")).await,
        }
    }

    /// Removes everything that runs have left on their own machine only; whether there was anything.
    pub(crate) fn lose_scratch(&self) -> bool {
        let folder = match &self.bucket {
            None => self.root.join("out/.penstock/scratch"),
            Some(_) => self.root.join("state/penstock"),
        };
        let is_there = folder.exists();
        if is_there {
            fs::remove_dir_all(folder).unwrap();
        }
        is_there
    }

    /// Whether somebody is within a write of a folder, which nobody else can write then.
    pub(crate) fn is_locked(&self) -> bool {
        // Before the first write there is no lock.
        self.bucket.is_none()
            && File::open(self.root.join("out/.penstock/lock"))
                .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
    }

    /// Which faults requests to the bucket meet from now on. A folder has none.
    pub(crate) fn set_faults(&self, rules: Vec<FaultRule>) {
        if let Some(bucket) = &self.bucket {
            bucket.server.set_faults(rules).unwrap();
        }
    }

    /// Ends the double.
    pub(crate) async fn close(self) {
        if let Some(bucket) = self.bucket {
            bucket.server.shutdown().await;
        }
    }
}

impl Bucket {
    async fn start(input: &[u8]) -> Self {
        let settings = StorageSettings {
            buckets: vec![BucketName::parse(BUCKET).unwrap()],
            keep_history: true,
            ..StorageSettings::default()
        };
        let server = StorageServer::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        outside::put(&server.url(), INPUT, input).await;
        let settings = GsSettings { endpoint: Some(server.url()), anonymous: true, ..GsSettings::default() };
        let bucket = GsBucket::connect(&settings, BUCKET).await.unwrap();
        let store = Arc::new(GsStore::open(bucket, "out").await.unwrap());
        Self { server, store }
    }
}
