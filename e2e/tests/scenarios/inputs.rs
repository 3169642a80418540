//! What a BatchJob is given: either format, lines that are not valid, none at all, an input that comes late, an output that
//! is taken, a name as long as names may be.

use serde_json::{Value, json};

use crate::{
    place::Namespace,
    shared::{Job, Shared},
};

/// The longest name of a BatchJob: 52 characters.
const LONGEST_NAME: &str = "a-job-whose-name-has-as-many-characters-as-names-may";

pub(crate) async fn every_input(namespace: Namespace) -> String {
    let shared = Shared::start(namespace, json!({}), json!([])).await;
    let requests = Job { name: "requests", lines: 50 };
    let late = Job { name: "late", lines: 20 };
    let longest = Job { name: LONGEST_NAME, lines: 20 };
    shared.lay_text(requests.name, &requests.requests()).await;
    shared.submit(requests.name, json!({})).await;
    shared.submit(late.name, json!({})).await;
    shared.begin(longest, json!({})).await;
    refused(&shared).await;
    one_of_many(&shared).await;
    shared.state(late.name, "AwaitingUpload").await;
    shared.lay(late).await;
    for job in [requests, late, longest] {
        shared.succeeds(job.name).await;
        let testimony = shared.conserved(job, "completed").await;
        assert_eq!(testimony.requests(), job.lines, "{}: nothing is asked twice", job.name);
    }
    applied_again(&shared, requests).await;
    taken(&shared, requests).await;
    "an input in each format, one that came late, 4 that were refused, 2 outputs that were taken".to_owned()
}

/// Inputs for which nothing may be sent.
async fn refused(shared: &Shared) {
    let one = one_valid_line("strict");
    let table = [
        ("empty", String::new(), "Skip", "EmptyInput", "at least one line"),
        ("blank", "\n\n".to_owned(), "Skip", "EmptyInput", "at least one line"),
        (
            "wrong",
            r#"{"prompt_id": 0}"#.repeat(3).replace("}{", "}\n{"),
            "Skip",
            "InvalidInput",
            "Correct the lines",
        ),
        ("strict", one, "Fail", "InvalidInput", "spec.input.onInvalid"),
    ];
    for (name, text, on_invalid, ..) in &table {
        shared.lay_text(name, text).await;
        shared.submit(name, of_prompts(name, on_invalid)).await;
    }
    for (name, _, _, reason, help) in table {
        shared.fails(name, reason, help).await;
        shared.untouched(name).await;
    }
}

/// The lines that are not valid get their records, and the one that is valid gets its answer.
async fn one_of_many(shared: &Shared) {
    let name = "lenient";
    shared.lay_text(name, &one_valid_line(name)).await;
    shared.submit(name, of_prompts(name, "Skip")).await;
    shared.succeeds(name).await;
    assert_eq!(shared.asked(name).await.requests(), 1, "what is not valid is not asked");
    let count = async |file| shared.doubles.published(name, file).await.map(|text| text.lines().count());
    assert_eq!(count("results_final.jsonl").await, Some(1));
    assert_eq!(count("errors.jsonl").await, Some(9_999));
    let counts = &shared.status(name).await["counts"];
    assert_eq!(
        [&counts["lines"], &counts["succeeded"], &counts["rejected"]],
        [10_000, 1, 9_999],
        "{counts:#}"
    );
}

/// An input whose format is named: it need not be found in the first lines.
fn of_prompts(name: &str, on_invalid: &str) -> Value {
    let uri = format!("gs://ours/{name}.jsonl");
    json!({"input": {"uri": uri, "format": "Prompts", "onInvalid": on_invalid}})
}

/// 10,000 lines, of which the last is valid.
fn one_valid_line(name: &str) -> String {
    format!("{}{}", "no line\n".repeat(9_999), Job { name, lines: 1 }.prompts())
}

/// The same manifest again, as it comes from a repository every few minutes, changes nothing.
async fn applied_again(shared: &Shared, job: Job<'_>) {
    let version = async || {
        let object = format!("batchjob/{}", job.name);
        let version = ["get", &object, "--output=jsonpath={.metadata.resourceVersion}"];
        shared.namespace.kubectl(version).run().await.unwrap()
    };
    let before = version().await;
    shared.submit(job.name, json!({})).await;
    assert_eq!(version().await, before);
}

/// Other work over the output of a job that is over, and of one that waits.
async fn taken(shared: &Shared, over: Job<'_>) {
    let waiting = Job { name: "waiting", lines: 20 };
    shared.begin(waiting, json!({"suspend": true})).await;
    shared.reason(waiting.name, "Suspended").await;
    for (name, whose) in [("intruder", over.name), ("rival", waiting.name)] {
        let output = json!({"uri": format!("gs://ours/{whose}")});
        shared.begin(Job { name, lines: 10 }, json!({"output": output})).await;
        shared.fails(name, "OutputOccupied", "another `spec.output.uri`").await;
        shared.untouched(name).await;
    }
    shared.change(waiting.name, json!({"suspend": false})).await;
    shared.succeeds(waiting.name).await;
    shared.conserved(waiting, "completed").await;
    shared.conserved(over, "completed").await;
}
