//! What Argo CD, Flux and Helm make of a BatchJob in each state: the table of `docs/gitops.md`, with the shipped scripts run
//! on the conditions that the operator writes.

#![expect(clippy::unwrap_used, reason = "a panic fails the test and says where")]

use std::{fs, path::Path};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use mlua::{Lua, LuaSerdeExt};
use penstock_crds::{
    BatchJobStatus, State,
    conditions::{Standing, conditions},
};
use penstock_job::Reason;
use serde_json::{Value, json};

/// The generation of the spec of every job here.
const GENERATION: i64 = 3;

/// What the tools say of one job.
#[derive(Debug, PartialEq, Eq)]
struct Verdicts {
    argo_cd: String,
    kstatus: String,
    flux: String,
}

impl Verdicts {
    fn on(job: &Value) -> Self {
        Self { argo_cd: argo_cd(job), kstatus: kstatus(job).to_owned(), flux: flux(job).to_owned() }
    }

    /// Those of a row of the documented table.
    fn documented(wanted: &str) -> Self {
        let page = read("docs/gitops.md");
        let row = page.lines().find_map(|line| line.strip_prefix(&format!("| {wanted} | ")));
        let row = row.unwrap_or_else(|| panic!("docs/gitops.md has no row of {wanted}"));
        let [argo_cd, kstatus, flux] =
            row.trim_end_matches(" |").split(" | ").collect::<Vec<_>>().try_into().unwrap();
        Self { argo_cd: argo_cd.to_owned(), kstatus: kstatus.to_owned(), flux: flux.to_owned() }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

fn shipped(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap()
}

/// A BatchJob as the API server has it, in this state.
fn job(state: State, reason: Option<Reason>) -> Value {
    let standing = Standing {
        state,
        reason,
        message: "Seen. Do this.",
        published: matches!(state, State::Completed | State::Cancelled | State::Expired),
        observed_generation: GENERATION,
    };
    let status = BatchJobStatus {
        observed_generation: Some(GENERATION),
        state: Some(state),
        reason: Some(reason.map_or_else(|| state.to_string(), |reason| reason.to_string())),
        message: Some(standing.message.to_owned()),
        conditions: conditions(&standing, &[], &Time(Timestamp::from_second(1).unwrap())),
        ..BatchJobStatus::default()
    };
    json!({"metadata": {"generation": GENERATION}, "status": status})
}

/// The shipped script, with `obj` as its one variable, as in Argo CD, whose Lua is 5.1.
fn argo_cd(job: &Value) -> String {
    let settings = shipped("docs/gitops/argo-cd.yaml");
    let script = settings["data"]["resource.customizations.health.penstock.dev_BatchJob"].as_str().unwrap();
    let lua = Lua::new();
    lua.globals().set("obj", lua.to_value(job).unwrap()).unwrap();
    let health: Value = lua.from_value(lua.load(script).eval().unwrap()).unwrap();
    assert!(health["message"].is_string(), "{health}");
    health["status"].as_str().unwrap().to_owned()
}

/// The shipped expressions, in the order of Flux's RFC 9.
fn flux(job: &Value) -> &'static str {
    let observed = &job["status"]["observedGeneration"];
    if !observed.is_null() && *observed != job["metadata"]["generation"] {
        return "InProgress";
    }
    let checks = &shipped("docs/gitops/flux.yaml")["spec"]["healthCheckExprs"];
    for (key, verdict) in [("inProgress", "InProgress"), ("failed", "Failed"), ("current", "Current")] {
        let Some(expression) = checks[0][key].as_str() else { continue };
        let mut context = cel::Context::default();
        for (name, value) in job.as_object().unwrap() {
            context.add_variable(name, value).unwrap();
        }
        match cel::Program::compile(expression).unwrap().execute(&context) {
            Ok(cel::Value::Bool(true)) => return verdict,
            Ok(cel::Value::Bool(false)) => {}
            Ok(other) => panic!("`{key}` is {other:?}"),
            Err(error) => panic!("`{key}` says of {job} {error}"),
        }
    }
    "InProgress"
}

/// The rules of kstatus for a kind that it does not know, in their order
/// (kubernetes-sigs/cli-utils, `pkg/kstatus/status/generic.go` and `status.go`).
fn kstatus(job: &Value) -> &'static str {
    let (metadata, status) = (&job["metadata"], &job["status"]);
    if !metadata["deletionTimestamp"].is_null() {
        return "Terminating";
    }
    let observed = &status["observedGeneration"];
    if !observed.is_null() && *observed != metadata["generation"] {
        return "InProgress";
    }
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for condition in conditions.iter().filter(|condition| condition["status"] == "True") {
        match condition["type"].as_str() {
            Some("Reconciling") => return "InProgress",
            Some("Stalled") => return "Failed",
            _ => {}
        }
    }
    match conditions.iter().find(|condition| condition["type"] == "Ready") {
        Some(ready) if ready["status"] != "True" => "InProgress",
        _ => "Current",
    }
}

#[test]
fn each_state_is_shown_as_documented_whatever_its_reason() {
    for state in State::ALL {
        let documented = Verdicts::documented(&format!("`{state}`"));
        let other = Reason::ALL.into_iter().filter(|reason| *reason != Reason::Suspended).map(Some);
        for reason in other.chain([None]) {
            assert_eq!(Verdicts::on(&job(state, reason)), documented, "{state}, {reason:?}");
        }
    }
}

#[test]
fn a_job_that_is_held_is_shown_as_documented() {
    let documented = Verdicts::documented("suspended");
    for state in [State::Queued, State::Running] {
        assert_eq!(Verdicts::on(&job(state, Some(Reason::Suspended))), documented, "{state}");
    }
}

#[test]
fn a_status_that_speaks_of_an_older_spec_is_not_believed() {
    let documented = Verdicts::documented("changed, and not looked at again yet");
    for state in State::ALL {
        let mut job = job(state, None);
        job["metadata"]["generation"] = json!(GENERATION + 1);
        assert_eq!(Verdicts::on(&job), documented, "{state}");
    }
}

#[test]
fn a_job_that_the_operator_has_not_looked_at_is_shown_as_documented() {
    let definition = shipped("crds/yaml/batchjobs.yaml");
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let new = json!({"metadata": {"generation": 1}, "status": schema["properties"]["status"]["default"]});
    assert_eq!(Verdicts::on(&new), Verdicts::documented("new, and not looked at yet"));
}

#[test]
fn the_expressions_are_for_the_kind_that_is_published() {
    let checks = &shipped("docs/gitops/flux.yaml")["spec"]["healthCheckExprs"];
    let expected = json!([format!("{}/{}", penstock_crds::GROUP, penstock_crds::VERSION), "BatchJob"]);
    assert_eq!(json!([checks[0]["apiVersion"], checks[0]["kind"]]), expected);
}
