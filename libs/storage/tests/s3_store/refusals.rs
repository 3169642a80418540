//! What a user is told who names the wrong bucket, key, region or endpoint.

use penstock_s3_double::Fault;
use penstock_storage::{ErrorKind, S3Bucket, S3Input, S3Key, S3Settings, S3Store, StorageError};

use super::{BUCKET, bucket, double, settings};

/// What opening an output and an input comes to.
async fn refusals(bucket: &S3Bucket) -> [StorageError; 2] {
    [
        S3Store::open(bucket.clone(), "out").await.expect_err("the output is refused"),
        S3Input::open(bucket.clone(), "in.jsonl").await.expect_err("the input is refused"),
    ]
}

#[tokio::test]
async fn a_bucket_that_there_is_not_is_no_absent_object() {
    let double = double().await;
    let bucket = S3Bucket::connect(&settings(&double), "other").unwrap();
    for refused in refusals(&bucket).await {
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert!(refused.to_string().contains("create the bucket, or correct its name"), "{refused}");
    }
}

#[tokio::test]
async fn a_key_that_the_service_does_not_take_is_told_as_such() {
    let double = double().await;
    let key = Some(S3Key { id: double.access_key_id().to_owned(), secret: "another".to_owned() });
    let bucket = S3Bucket::connect(&S3Settings { key, ..settings(&double) }, BUCKET).unwrap();
    let refused = S3Store::open(bucket, "out").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("`SignatureDoesNotMatch`"), "{refused}");
    assert!(refused.to_string().contains("correct `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"));
}

#[tokio::test]
async fn what_the_service_refuses_says_what_helps() {
    let double = double().await;
    let bucket = bucket(&double);
    for (fault, told) in [
        (Fault::Refused(403, "AccessDenied"), "grant `s3:GetObject`"),
        (Fault::Refused(403, "RequestTimeTooSkewed"), "set the clock of this machine"),
        (Fault::Refused(400, "ExpiredToken"), "renew the credentials"),
        (Fault::Refused(301, "PermanentRedirect"), "set `AWS_REGION` to the region of the bucket"),
    ] {
        double.fail(move |_| Some(fault));
        let refused = S3Store::open(bucket.clone(), "out").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
        assert!(refused.to_string().contains(told), "{refused}");
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_may_come_back() {
    let double = double().await;
    let bucket = bucket(&double);
    drop(double);
    for refused in refusals(&bucket).await {
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        assert!(refused.to_string().contains("`AWS_ENDPOINT_URL` is right"), "{refused}");
    }
}
