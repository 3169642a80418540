//! A whole job in a bucket of Amazon S3, against the double of it: killed, resumed, looked at and verified.

use std::os::unix::process::ExitStatusExt;

use penstock_s3_double::S3Double;
use serde_json::Value;

use crate::{
    outside::BUCKET,
    place::{IN_FLIGHT, INPUT, Place},
    witness::Contents,
};

/// The kills of successive runs.
const KILLS: &[&str] =
    &["kill-before@claim", "kill@upload", "kill@append:10", "kill@freeze", "kill@compose-final"];

impl Contents for S3Double {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.contents(BUCKET).get(&key(name)).map(|content| content.to_vec())
    }

    fn contains(&self, name: &str) -> bool {
        self.contents(BUCKET).contains_key(&key(name))
    }

    fn generation(&self, name: &str) -> Option<String> {
        self.e_tag(BUCKET, &key(name))
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let folder = key(&format!("{folder}/"));
        self.contents(BUCKET).keys().filter_map(|key| key.strip_prefix(&folder)).map(str::to_owned).collect()
    }
}

fn key(name: &str) -> String {
    format!("out/{name}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_s3_survives_kills_is_verified_and_sends_nothing_twice() {
    let place = Place::new(1_700, 2.0).await;
    let (input, output) = (format!("s3://{BUCKET}/{INPUT}"), format!("s3://{BUCKET}/out"));
    for rule in KILLS {
        let mut run = place.run_from_to(&input, &output);
        run.env("PENSTOCK_INJECT", rule);
        let said = place.say(run).await;
        assert_eq!(said.status.signal(), Some(9), "{rule}: {}: {}", said.status, said.stderr);
    }
    let said = place.say(place.run_from_to(&input, &output)).await.with(0);
    assert!(said.stderr.contains("s3://bucket/out/results_final.jsonl"), "{}", said.stderr);
    let (repeated, bound) = (place.repeated(), IN_FLIGHT * KILLS.len());
    assert!(repeated <= bound, "{repeated} lines were sent again, {bound} may be");

    let received = place.provider.requests().received;
    let again = place.say(place.run_from_to(&input, &output)).await.with(0);
    assert!(again.stderr.contains("nothing was sent"), "{}", again.stderr);
    assert_eq!(place.provider.requests().received, received);

    let status = place.say(place.penstock(&["status", "--json", &output])).await.with(0);
    assert_eq!(serde_json::from_str::<Value>(&status.stdout).unwrap()["state"], "Completed");
    place.say(place.penstock(&["verify", &output])).await.with(0);
    let published = place.witness.published_in(&place.s3);
    assert_eq!(published.count("succeeded"), 1_700);
    assert_eq!(published.receipt["input"]["uri"], input);
    assert_eq!((place.s3.names("parts"), place.s3.names("compose")), (Vec::new(), Vec::new()));
    assert_eq!(place.s3.unfinished_uploads(BUCKET), 0);
}
