//! Arguments of `penstock url`.

use std::num::NonZeroU64;

use clap::{Args, Subcommand};
use penstock_storage::{BucketPath, Location};

use super::duration;

/// What a URL is for.
#[derive(Debug, Subcommand)]
pub(crate) enum UrlFor {
    /// Make a URL with which anybody downloads one object of a bucket, until it expires
    Download(UrlArguments),
    /// Make a URL with which anybody uploads one object of a bucket, until it expires
    Upload(UploadArguments),
}

/// Arguments of `penstock url upload`.
#[derive(Debug, Args)]
pub(crate) struct UploadArguments {
    #[command(flatten)]
    pub(crate) url: UrlArguments,
    /// The size of the content, which decides how it is best uploaded
    #[arg(long, value_name = "BYTES")]
    pub(crate) size: Option<u64>,
    /// The content type that the uploader is held to
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
}

/// What both have.
#[derive(Debug, Args)]
pub(crate) struct UrlArguments {
    /// The object: `gs://bucket/path` or `s3://bucket/path`
    #[arg(value_name = "OBJECT", value_parser = object)]
    pub(crate) object: BucketPath,
    /// How long the URL holds, 7 days at most
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration::seconds)]
    pub(crate) expires: NonZeroU64,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn object(text: &str) -> Result<BucketPath, String> {
    match Location::parse(text) {
        Ok(Location::Bucket(place)) => Ok(place),
        Ok(Location::Path(_)) => {
            Err("it is a path of this machine; write gs://bucket/path or s3://bucket/path".to_owned())
        }
        Err(refusal) => Err(format!("failed to {refusal}")),
    }
}
