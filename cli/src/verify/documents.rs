//! The three documents against one another. Pure.

use penstock_job::{
    DocumentError, Identity, Receipt, State, Validation,
    document::Document,
    finals::{Final, decision},
    layout::is_final,
    receipt::Output,
    state::Phase,
};
use serde_json::{Value, json};

use super::{Contradiction, VerifyError};
use crate::output::OutputError;

/// A document that was damaged contradicts the receipt; one that another version wrote does not.
pub(super) fn understood<D: Document>(
    read: Result<Option<D>, OutputError>,
) -> Result<Option<D>, VerifyError> {
    read.map_err(|error| match error {
        OutputError::Document(
            DocumentError::NotAnObject { name, detail, .. } | DocumentError::Field { name, detail, .. },
        ) => Contradiction::of(name, format!("it was changed or damaged: {detail}")).into(),
        other => other.into(),
    })
}

/// What the receipt says of itself.
pub(super) fn check_receipt(receipt: &Receipt) -> Result<(), Contradiction> {
    let contradiction = |problem: String| Err(Contradiction::of(Receipt::NAME, problem));
    let Receipt { job, lines, outcomes, outputs, .. } = receipt;
    let identity = Identity::of(&job.spec);
    if identity != job.identity {
        return contradiction(format!(
            "job.identity is {}, but the hash of job.spec is {identity}",
            job.identity
        ));
    }
    if outcomes.total() != *lines {
        return contradiction(format!(
            "the outcomes add up to {}, but there are {lines} lines",
            outcomes.total()
        ));
    }
    if let Some(output) = outputs.iter().find(|output| !is_final(&output.name)) {
        return contradiction(format!("`{}` is not the name of a published file", output.name));
    }
    let finals: Vec<_> = outputs.iter().map(published).collect();
    let derived = decision(&job.identity, receipt.ending.reason(), outcomes, &finals);
    if derived != receipt.decision {
        return contradiction(format!(
            "decision is {}, but what it decides has the hash {derived}",
            receipt.decision
        ));
    }
    Ok(())
}

/// A published file without its sources, which are no part of the decision.
fn published(output: &Output) -> Final {
    Final {
        name: output.name.clone(),
        kind: output.kind,
        first_part: 0,
        parts: 0,
        rejected_files: 0,
        lines: output.lines,
        size_bytes: output.size_bytes,
        crc32c: output.crc32c,
        sha256: output.sha256.clone(),
    }
}

/// What validation found about the input.
pub(super) fn check_validation(receipt: &Receipt, validation: &Validation) -> Result<(), Contradiction> {
    let theirs = json!({
        "spec": validation.spec,
        "identity": validation.identity,
        "input": validation.input,
        "lines": validation.lines,
        "rejected": validation.rejected,
        "identity_sum": validation.identity_sum,
    });
    let ours = json!({
        "spec": receipt.job.spec,
        "identity": receipt.job.identity,
        "input": receipt.input,
        "lines": receipt.lines,
        "rejected": receipt.outcomes.rejected,
        "identity_sum": receipt.identity.expected,
    });
    agree(Validation::NAME, &theirs, &ours)
}

/// What was frozen: a receipt made from it again must be this one, but for who wrote it and when.
pub(super) fn check_state(
    receipt: &Receipt,
    validation: &Validation,
    state: &State,
) -> Result<(), Contradiction> {
    let generations = receipt.outputs.iter().map(|output| output.generation.clone());
    let remade = Receipt::of(state, validation, generations, receipt.written_at_ms);
    let Some(mut remade) = remade.filter(|_| state.phase == Phase::Finalizing) else {
        return Err(Contradiction::of(State::NAME, "nothing is frozen in it, but there is a receipt"));
    };
    remade.written_by = receipt.written_by;
    agree(State::NAME, &json!(remade), &json!(receipt))?;
    let settled = state.completed.len() + state.input.rejected;
    if settled == state.input.lines {
        Ok(())
    } else {
        let problem =
            format!("{settled} lines are completed or rejected, but there are {}", state.input.lines);
        Err(Contradiction::of(State::NAME, problem))
    }
}

/// Whether a document says the same as the receipt; names the first field where it does not.
fn agree(document: &str, theirs: &Value, receipt: &Value) -> Result<(), Contradiction> {
    match difference(theirs, receipt, "") {
        None => Ok(()),
        Some((field, theirs, receipt)) => Err(Contradiction::of(
            document,
            format!("it stands for `{field}` {theirs}, but the receipt has {receipt}"),
        )),
    }
}

/// The path of the first field in which two values differ, and both values.
fn difference(left: &Value, right: &Value, path: &str) -> Option<(String, String, String)> {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (left, right) {
        (Value::Object(lefts), Value::Object(rights)) => {
            let keys = lefts.keys().chain(rights.keys().filter(|key| !lefts.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let value = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                difference(&value(lefts), &value(rights), &below(key))
            })
        }
        (Value::Array(lefts), Value::Array(rights)) if lefts.len() == rights.len() => lefts
            .iter()
            .zip(rights)
            .enumerate()
            .find_map(|(index, (left, right))| difference(left, right, &format!("{path}[{index}]"))),
        _ => (left != right).then(|| (path.to_owned(), left.to_string(), right.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named_by_its_path_with_both_values() {
        let found = |left: Value, right: Value| difference(&left, &right, "");
        assert_eq!(found(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 2}]})), None);
        assert_eq!(
            found(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 3}]})),
            Some(("a[1].b".to_owned(), "2".to_owned(), "3".to_owned()))
        );
        assert_eq!(
            found(json!({}), json!({"a": 1})),
            Some(("a".to_owned(), "null".to_owned(), "1".to_owned()))
        );
        assert_eq!(
            found(json!({"a": []}), json!({"a": [1]})),
            Some(("a".to_owned(), "[]".to_owned(), "[1]".to_owned()))
        );
    }
}
