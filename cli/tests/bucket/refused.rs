//! Inputs and outputs in buckets that cannot be used: one clear message each, and nothing half-written is published.

use penstock_gcs_double::{Fault, FaultRule};

use crate::{
    outside::{self, BUCKET},
    place::{INPUT, Place},
};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_named_with_what_to_do() {
    let place = Place::new(3, 1.0).await;
    let (input, output) = (format!("gs://{BUCKET}/{INPUT}"), format!("gs://{BUCKET}/out"));
    for (input, output, told) in [
        ("gs://bucket/in/none.jsonl", output.as_str(), "gs://bucket/in/none.jsonl"),
        ("gs://no-such-bucket/in.jsonl", &output, "no-such-bucket"),
        (&input, "gs://no-such-bucket/out", "no-such-bucket"),
        ("gs://bucket", &output, "names no object"),
        ("gs://Bucket/in.jsonl", &output, "lowercase letters"),
        ("https://storage.googleapis.com/bucket/in.jsonl", &output, "`https://` is not known"),
    ] {
        let said = place.say(place.run_from_to(input, output)).await.with(64);
        assert!(said.stderr.contains("failed to") && said.stderr.contains(told), "{}", said.stderr);
    }
    let nothing = place.say(place.penstock(&["status", &output])).await.with(64);
    assert!(nothing.stderr.contains("find a job in gs://bucket/out: there is none"), "{}", nothing.stderr);
    assert_eq!(place.names().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_refuses_or_does_not_answer_is_told_at_once() {
    let place = Place::new(3, 1.0).await;
    place.set_faults(vec![FaultRule::always(Fault::ErrorBefore { status: 403 })]);
    let said = place.say(place.run()).await.with(64);
    assert!(said.stderr.contains("grant this account the role"), "{}", said.stderr);
    let mut run = place.run();
    run.env("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9");
    let said = place.say(run).await.with(69);
    assert!(said.stderr.contains("failed to"), "{}", said.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_input_is_refused() {
    let place = Place::new(3, 1.0).await;
    outside::put(&place.storage.url(), "in/input.jsonl.gz", &[0x1f, 0x8b, 8, 0]).await;
    let compressed = place.run_from_to("gs://bucket/in/input.jsonl.gz", "gs://bucket/out");
    let said = place.say(compressed).await.with(64);
    assert!(said.stderr.contains("compressed with gzip; decompress it first"), "{}", said.stderr);
}

/// What is answered by then is kept, and every other line recorded.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_replaced_or_deleted_under_way_ends_the_job_with_every_line_accounted_for() {
    for replaced in [true, false] {
        let place = Place::new(2_000, 5.0).await;
        let mut run = place.start(place.run());
        place.stored(500, &mut run).await;
        run.kill();
        run.end().await;
        let safe = place.held();
        if replaced {
            outside::put(&place.storage.url(), INPUT, b"{\"prompt_id\":1,\"prompt\":\"another\"}\n").await;
            let said = place.say(place.run()).await.with(65);
            assert!(said.stderr.contains("the input has changed since"), "{}", said.stderr);
        } else {
            outside::delete(&place.storage.url(), INPUT).await;
            let said = place.say(place.run()).await.with(64);
            assert!(said.stderr.contains("restore the same generation"), "{}", said.stderr);
        }
        place.say(place.penstock(&["cancel", "gs://bucket/out"])).await.with(4);
        let published = place.finish().await;
        assert_eq!(published.count("succeeded") + published.count("cancelled"), 2_000);
        assert!(published.count("succeeded") >= safe, "{safe} were stored: {:?}", published.outcomes);
    }
}

/// What was read by then is answered; the rest is recorded, and the run says once what to do.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_replaced_or_deleted_under_a_run_fails_the_job_with_every_line_accounted_for() {
    for replaced in [true, false] {
        let place = Place::new(2_000, 5.0).await;
        let mut run = place.run();
        run.env("PENSTOCK_INJECT_WINDOW_LINES", "200");
        let mut run = place.start(run);
        place.answered(500, &mut run).await;
        run.freeze();
        if replaced {
            outside::put(&place.storage.url(), INPUT, b"{\"prompt_id\":1,\"prompt\":\"another\"}\n").await;
        } else {
            outside::delete(&place.storage.url(), INPUT).await;
        }
        run.thaw();
        let said = run.end().await.with(3);
        let told = said.stderr.matches("Run the changed file with a new --output").count();
        assert_eq!(told, 1, "{}", said.stderr);
        assert!(said.stderr.contains("failed: 2,000 lines"), "{}", said.stderr);
        place.say(place.penstock(&["verify", "gs://bucket/out"])).await.with(0);
        let published = place.finish().await;
        assert_eq!(published.receipt["ending"], "failed");
        let (succeeded, abandoned) = (published.count("succeeded"), published.count("abandoned"));
        assert_eq!(succeeded + abandoned, 2_000);
        assert!(succeeded >= 500 && abandoned > 0, "{:?}", published.outcomes);
    }
}
