//! What the operator wrote, by the API server's audit log.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::Deserialize;

/// How often something was written, as in `patch batchjobs/status`.
pub(crate) type Writes = BTreeMap<String, u64>;

/// What of a line of the log says what was written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    object_ref: Object,
    response_status: Status,
}

#[derive(Debug, Deserialize)]
struct Object {
    resource: String,
    subresource: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Status {
    code: u16,
}

/// What was written until now.
pub(crate) fn writes(log: &Path) -> io::Result<Writes> {
    Ok(read(&fs::read_to_string(log)?))
}

/// What came on top of what was `before`.
pub(crate) fn since(before: &Writes, now: &Writes) -> Writes {
    let more = |(what, count): (&String, &u64)| {
        let more = count - before.get(what).copied().unwrap_or_default();
        (more > 0).then(|| (what.clone(), more))
    };
    now.iter().filter_map(more).collect()
}

/// Writes that were taken. The lease belongs to the process and not to a job, and a review is stored nowhere.
fn read(text: &str) -> Writes {
    let mut writes = Writes::new();
    for entry in text.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok()) {
        let object = entry.object_ref;
        let is_stored = !matches!(object.resource.as_str(), "leases" | "tokenreviews");
        if is_stored && entry.response_status.code < 300 {
            let below = object.subresource.map(|name| format!("/{name}")).unwrap_or_default();
            *writes.entry(format!("{} {}{below}", entry.verb, object.resource)).or_default() += 1;
        }
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_taken_and_stored_is_counted() {
        let line = |verb, resource, code| {
            format!(
                r#"{{"verb":"{verb}","objectRef":{{"resource":"{resource}"}},"responseStatus":{{"code":{code}}}}}"#
            )
        };
        let text = [
            line("create", "jobs", 201),
            line("create", "jobs", 409),
            line("create", "tokenreviews", 201),
            line("update", "leases", 200),
            r#"{"verb":"patch","objectRef":{"resource":"batchjobs","subresource":"status"},"responseStatus":{"code":200}}"#
                .to_owned(),
        ];
        let writes = read(&text.join("\n"));
        let expected = [("create jobs".to_owned(), 1), ("patch batchjobs/status".to_owned(), 1)];
        assert_eq!(writes, Writes::from(expected.clone()));
        let before = Writes::from([expected[0].clone()]);
        assert_eq!(since(&before, &writes), Writes::from([expected[1].clone()]));
    }
}
