//! The custom resource definitions that a cluster is given. The files under `crds/yaml/` are generated from here; a test
//! fails when they differ, and `UPDATE_CRDS=1 cargo test -p penstock-crds definitions` writes them anew.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt as _, core::Rule};
use serde_json::{Value, json};

use crate::{BatchJob, Provider, rules};

/// Every definition with the name of its file.
pub fn all() -> [(&'static str, Value); 2] {
    [
        ("batchjobs.yaml", definition(&BatchJob::crd(), &rules::batch_job_name())),
        ("providers.yaml", definition(&Provider::crd(), &rules::provider_name())),
    ]
}

/// A definition as it is published, with the rule about the name, which is no part of a spec. Uninstalling the chart
/// keeps it, and with it every job.
fn definition(generated: &CustomResourceDefinition, name: &Rule) -> Value {
    let mut definition = json!(generated);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([name]);
    definition["metadata"]["annotations"] = json!({ "helm.sh/resource-policy": "keep" });
    tidy(&mut definition);
    definition
}

/// An absent field is left out, never null; and whole bounds are written as integers.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
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

    #[test]
    fn the_committed_definitions_are_those_of_the_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("yaml");
        for (name, definition) in all() {
            let path = folder.join(name);
            let text = serde_saphyr::to_string(&definition).unwrap();
            if std::env::var_os("UPDATE_CRDS").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let committed = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(committed, text, "{} is out of date: set UPDATE_CRDS=1 and run again", path.display());
        }
    }
}
