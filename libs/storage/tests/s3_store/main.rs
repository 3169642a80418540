//! What a bucket of S3 does beyond the laws that every store keeps: what is settled by looking, what is repeated, what
//! is sent in parts, what a user is told.

mod faults;
mod input;
mod large;
mod refusals;
mod signed;

use penstock_s3_double::S3Double;
use penstock_storage::{ObjectName, S3Bucket, S3Key, S3Settings, S3Store};

const BUCKET: &str = "bucket";

async fn double() -> S3Double {
    S3Double::start(&[BUCKET]).await.expect("a port is free")
}

fn settings(double: &S3Double) -> S3Settings {
    S3Settings {
        endpoint: Some(double.endpoint()),
        region: Some("eu-west-1".to_owned()),
        key: Some(S3Key {
            id: double.access_key_id().to_owned(),
            secret: double.secret_access_key().to_owned(),
        }),
        deadline: None,
    }
}

fn bucket(double: &S3Double) -> S3Bucket {
    S3Bucket::connect(&settings(double), BUCKET).expect("the settings are taken")
}

async fn store(double: &S3Double) -> S3Store {
    S3Store::open(bucket(double), "out").await.expect("the bucket is there")
}

fn name(name: &'static str) -> ObjectName {
    ObjectName::from_static(name)
}
