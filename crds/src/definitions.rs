//! The custom resource definitions that a cluster is given. The files under `crds/yaml/`, and the copies that the chart
//! installs, are generated from here; a test fails when they differ, and `UPDATE_CRDS=1 cargo test -p penstock-crds
//! definitions` writes them anew.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt as _, core::Rule};
use serde_json::{Value, json};

use crate::{BatchJob, Provider, rules};

/// Every definition with the name of its file.
pub fn all() -> [(&'static str, Value); 2] {
    let mut batch_jobs = definition(&BatchJob::crd(), &rules::batch_job_name());
    schema(&mut batch_jobs)["properties"]["status"]["default"] =
        json!({ "observedGeneration": NOT_OBSERVED });
    let providers = definition(&Provider::crd(), &rules::provider_name());
    [("batchjobs.yaml", batch_jobs), ("providers.yaml", providers)]
}

/// What the API server writes as the observed generation of a job that is new. kstatus takes an object that says nothing of
/// itself for ready: `helm install --wait` would be done before the operator has looked. Flux marks its kinds in the same way.
const NOT_OBSERVED: i64 = -1;

fn schema(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// A definition as it is published, with the rule about the name, which is no part of a spec. Uninstalling the chart
/// keeps it, and with it every job.
fn definition(generated: &CustomResourceDefinition, name: &Rule) -> Value {
    let mut definition = json!(generated);
    schema(&mut definition)["x-kubernetes-validations"] = json!([name]);
    definition["metadata"]["annotations"] = json!({ "helm.sh/resource-policy": "keep" });
    tidy(&mut definition);
    definition
}

/// An absent field is left out, never null; whole bounds are written as integers; and a description is one line.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
            }
            if let Some(Value::String(description)) = fields.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            for bound in ["minimum", "maximum"] {
                if let Some(number) = fields.get_mut(bound) {
                    *number = whole(number);
                }
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The integer that a bound is, where it is one.
fn whole(number: &Value) -> Value {
    let text = number.to_string();
    text.strip_suffix(".0")
        .and_then(|digits| digits.parse::<i64>().ok())
        .map_or_else(|| number.clone(), Value::from)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{State, progress};

    #[test]
    fn the_committed_definitions_are_those_of_the_code() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in ["yaml", "../charts/penstock/files/crds"].map(|folder| root.join(folder)) {
            for (name, definition) in all() {
                let path = folder.join(name);
                let text = serde_saphyr::to_string(&definition).unwrap();
                if std::env::var_os("UPDATE_CRDS").is_some() {
                    fs::create_dir_all(&folder).unwrap();
                    fs::write(&path, &text).unwrap();
                }
                let committed = fs::read_to_string(&path).unwrap_or_default();
                assert_eq!(
                    committed,
                    text,
                    "{} is out of date: set UPDATE_CRDS=1 and run again",
                    path.display()
                );
            }
        }
    }

    /// Every schema inside a definition, with its path.
    fn schemas<'a>(path: String, schema: &'a Value, found: &mut Vec<(String, &'a Value)>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            schemas(format!("{path}.{name}"), property, found);
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(schema) = schema.get(inner) {
                schemas(format!("{path}[]"), schema, found);
            }
        }
        found.push((path, schema));
    }

    #[test]
    fn everything_is_bounded_and_nothing_is_a_fraction_unsigned_or_null() {
        for (name, definition) in all() {
            let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut found = Vec::new();
            schemas(String::new(), root, &mut found);
            for (path, schema) in found {
                let has = |key: &str| schema.get(key).is_some();
                let format = schema["format"].as_str().unwrap_or_default();
                let bounded = match schema["type"].as_str() {
                    Some("string") => has("maxLength") || has("enum") || format == "date-time",
                    Some("integer") => has("minimum") && !format.starts_with('u'),
                    Some("array") => has("maxItems") && has("x-kubernetes-list-type"),
                    Some("object") => has("properties") || has("maxProperties"),
                    Some("boolean") => true,
                    None => schema["x-kubernetes-int-or-string"] == true && has("maxLength"),
                    Some(_) => false,
                };
                assert!(bounded, "{name}{path}: {schema}");
                assert!(!has("nullable"), "{path}");
                let described = path.contains("conditions") || path.ends_with("[]") || path.is_empty();
                assert!(described || has("description") || path == ".status", "{path} is not described");
            }
        }
    }

    #[test]
    fn a_definition_is_small_enough_for_every_way_to_apply_it() {
        for (name, definition) in all() {
            let size = serde_saphyr::to_string(&definition).unwrap().len();
            assert!(size <= 100_000, "{name} has {size} bytes");
        }
    }

    #[test]
    fn a_line_of_kubectl_get_has_at_most_a_hundred_characters() {
        let (_, definition) = all().into_iter().next().unwrap();
        let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
        let plain = columns.iter().filter(|column| column.get("priority").is_none());
        let width = |column: &Value| {
            let name = column["name"].as_str().unwrap();
            let longest = match name {
                "State" => State::ALL.map(|state| state.to_string().len()).into_iter().max().unwrap(),
                "Progress" => progress::percent(1, 1).to_string().len(),
                "Done" => progress::done(9_999_999, 9_999_999).len(),
                "Failed" => "999999".len(),
                "Rate" => progress::rate(9_999).len(),
                "ETA" => progress::eta(10 * 86_400).len(),
                "Age" => "4h20m".len(),
                other => panic!("how wide does {other} get?"),
            };
            longest.max(name.len())
        };
        let name = "support-tickets-0714";
        let gaps = 3;
        let line: usize = plain.map(|column| gaps + width(column)).sum();
        assert!(name.len() + line <= 100, "{} characters", name.len() + line);
    }
}
