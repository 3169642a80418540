//! What two states of one job, read one after the other, may say (T3 and T4). Pure.

use serde_json::Value;

/// Fields that never change.
const FIXED: [&str; 5] = ["format", "job", "created_at_ms", "input", "validation"];
/// The fields that may change once the outcome is decided.
const WRITER: [&str; 4] = ["epoch", "incarnation", "write", "updated_at_ms"];

/// What is wrong with `next` after `before`.
pub(super) fn compare(before: &Value, next: &Value) -> Vec<String> {
    let mut problems = alone(next);
    let number = |state: &Value, field: &str| state[field].as_u64().unwrap();
    let mut require = |holds: bool, problem: String| {
        if !holds {
            problems.push(problem);
        }
    };
    for field in FIXED {
        require(before[field] == next[field], format!("T4: `{field}` has changed"));
    }
    for field in ["epoch", "sealed"] {
        let (was, is) = (number(before, field), number(next, field));
        require(was <= is, format!("T4: `{field}` went back from {was} to {is}"));
    }
    let same_epoch = before["epoch"] == next["epoch"];
    let same_incarnation = before["incarnation"] == next["incarnation"];
    require(same_epoch == same_incarnation, format!("T3: epoch {} has two incarnations", next["epoch"]));
    if same_incarnation {
        let (was, is) = (number(before, "write"), number(next, "write"));
        require(was < is || before == next, format!("T3: `write` went from {was} to {is}"));
    }
    if !before["ending"].is_null() {
        require(before["ending"] == next["ending"], format!("T4: the ending became {}", next["ending"]));
    }
    if before["phase"] == "finalizing" {
        for (field, value) in before.as_object().unwrap() {
            let unchanged = WRITER.contains(&field.as_str()) || *value == next[field];
            require(
                unchanged,
                format!("T4: `{field}` has changed after the freeze: {value}, {}", next[field]),
            );
        }
    }
    problems
}

/// What is wrong with one state by itself.
pub(super) fn alone(state: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if state["sealed"].as_u64() >= state["epoch"].as_u64() {
        problems.push(format!("T4: epoch {} is its own seal", state["epoch"]));
    }
    if (state["phase"] == "finalizing") == state["finalization"].is_null() {
        problems.push("T4: `phase` and `finalization` disagree".to_owned());
    }
    let names: Vec<_> = state["parts"].as_array().unwrap().iter().map(|row| row[0].as_str()).collect();
    if !names.is_sorted() {
        problems.push("T3: the manifest is out of order".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state() -> Value {
        json!({
            "format": "penstock.state/1", "job": {}, "created_at_ms": 1, "input": {}, "validation": {},
            "epoch": 2, "sealed": 1, "incarnation": "a", "write": 3, "phase": "running", "ending": null,
            "parts": [], "finalization": null, "updated_at_ms": 1, "epochs": [],
        })
    }

    fn with(changes: &[(&str, Value)]) -> Value {
        let mut state = state();
        for (field, value) in changes {
            state[*field] = value.clone();
        }
        state
    }

    #[test]
    fn a_job_goes_forward() {
        let next = with(&[("epoch", json!(3)), ("incarnation", json!("b")), ("write", json!(1))]);
        assert_eq!(compare(&state(), &next), [""; 0]);
        assert_eq!(compare(&state(), &with(&[("write", json!(4))])), [""; 0]);
        assert_eq!(compare(&state(), &state()), [""; 0]);
    }

    #[test]
    fn each_step_back_is_told() {
        let ended = with(&[("ending", json!({"reason": "cancelled"})), ("write", json!(4))]);
        let frozen =
            with(&[("phase", json!("finalizing")), ("finalization", json!({})), ("write", json!(4))]);
        let thawed = with(&[("write", json!(5))]);
        let relisted = with(&[
            ("phase", json!("finalizing")),
            ("finalization", json!({})),
            ("write", json!(5)),
            ("epochs", json!([1])),
        ]);
        for (before, next) in [
            (state(), with(&[("epoch", json!(1)), ("sealed", json!(0)), ("incarnation", json!("b"))])),
            (state(), with(&[("sealed", json!(0)), ("write", json!(4))])),
            (state(), with(&[("incarnation", json!("b"))])),
            (state(), with(&[("epoch", json!(3))])),
            (state(), with(&[("updated_at_ms", json!(9))])),
            (state(), with(&[("write", json!(2))])),
            (state(), with(&[("created_at_ms", json!(2)), ("write", json!(4))])),
            (ended, thawed.clone()),
            (frozen.clone(), thawed),
            (frozen, relisted),
        ] {
            assert_ne!(compare(&before, &next), [""; 0], "{next}");
        }
    }
}
