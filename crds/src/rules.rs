//! The rules that the API server holds manifests to, in CEL. Each message says what to do.
//!
//! They stand beside the schema, which bounds every string, list and map. What a rule would say of a Provider and a
//! BatchJob together, the operator says: a rule sees one object.

use kube::core::{Reason, Rule};
use schemars::Schema;
use serde_json::{Value, json};

use crate::names::MAX_NAME_LENGTH;

/// The fields of a BatchJob that may change.
const MUTABLE: [&str; 4] = ["cancel", "priority", "suspend", "ttlSecondsAfterFinished"];

const OBJECT_URI: &str = "'^(gs|s3)://[a-z0-9][a-z0-9._-]+/[^?#]+$'";
const BASE_URL: &str = "'^https?://[^/?#@]+(/[^?#@]*)?$'";

/// What is derived from the name of a BatchJob must fit into a label.
pub(crate) fn batch_job_name() -> Rule {
    Rule::new(format!(
        "self.metadata.name.size() <= {MAX_NAME_LENGTH} && !self.metadata.name.contains('.')"
    ))
    .message(&*format!(
        "`metadata.name` must have at most {MAX_NAME_LENGTH} characters and no '.', since names of pods are made \
         from it: choose a shorter name"
    ))
    .reason(Reason::FieldValueInvalid)
}

/// Rules of `BatchJob.spec`.
pub(crate) fn batch_job_spec(schema: &mut Schema) {
    let rules = [
        field("self.input.uri.matches(URI)", ".input.uri", "`input.uri` must name an object in a bucket: write gs://BUCKET/PATH or s3://BUCKET/PATH"),
        field("self.output.uri.matches(URI)", ".output.uri", "`output.uri` must name a path in a bucket: write gs://BUCKET/PATH or s3://BUCKET/PATH"),
        field("self.input.uri != self.output.uri", ".output.uri", "`output.uri` must not be `input.uri`: give the job a path of its own"),
        field("self.input.format != 'OpenAI' || !has(self.parameters)", ".parameters", "`parameters` must not be set with the format 'OpenAI', whose bodies are sent as they are: write them into the bodies"),
        field(
            "self.input.format != 'Prompts' || !has(self.endpoint) || !(self.endpoint in ['Embeddings', 'Moderations'])",
            ".endpoint",
            "`endpoint` must answer with text for the format 'Prompts': choose 'ChatCompletions', 'Responses' or 'Completions'",
        ),
        Rule::new("!oldSelf.cancel || self.cancel")
            .message("`cancel` must stay true: a cancelled job cannot go on; apply a BatchJob with another name and another output")
            .field_path(".cancel")
            .reason(Reason::FieldValueForbidden),
    ];
    let immutable = immutable_fields(schema);
    add(schema, rules.into_iter().chain(immutable));
}

/// A rule for each field that must not change, appear or go away.
fn immutable_fields(schema: &Schema) -> Vec<Rule> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields =
        schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|fields| fields.keys());
    let rule = |field: &String| {
        let same = format!("self.{field} == oldSelf.{field}");
        let rule = if required.contains(&field.as_str()) {
            same
        } else {
            format!("has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || {same})")
        };
        Rule::new(rule)
            .message(&*format!(
                "`{field}` must not change: apply a BatchJob with another `metadata.name` and another `output.uri` instead"
            ))
            .field_path(format!(".{field}"))
            .reason(Reason::FieldValueForbidden)
    };
    fields.filter(|field| !MUTABLE.contains(&field.as_str())).map(rule).collect()
}

/// One of the two must be set.
pub(crate) fn budget(schema: &mut Schema) {
    add(
        schema,
        [Rule::new("has(self.tokens) || has(self.cost)")
            .message("`budget` must set `tokens` or `cost`: set one, or leave `budget` out")],
    );
}

/// What the operator says itself must not be said by others.
pub(crate) fn executor(schema: &mut Schema) {
    let own = |field: &str| {
        Rule::new(format!("!has(self.{field}) || self.{field}.all(key, !key.startsWith('penstock.dev/'))"))
            .message(&*format!("`{field}` must not use keys under 'penstock.dev/', which the operator sets: choose another prefix"))
            .field_path(format!(".{field}"))
    };
    add(schema, [own("labels"), own("annotations")]);
}

/// As Kubernetes has them.
pub(crate) fn toleration(schema: &mut Schema) {
    add(
        schema,
        [
            Rule::new("self.operator != 'Exists' || !has(self.value)")
                .message("`value` must not be set with the operator 'Exists': leave it out"),
            Rule::new("has(self.key) || self.operator == 'Exists'")
                .message("`key` must be set with the operator 'Equal': set it, or write operator: Exists"),
            Rule::new("!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')")
                .message("`tolerationSeconds` must stand with the effect 'NoExecute': set `effect`, or leave the seconds out"),
        ],
    );
}

/// The name of a Provider is the value of a label.
pub(crate) fn provider_name() -> Rule {
    Rule::new("self.metadata.name.size() <= 63")
        .message("`metadata.name` must have at most 63 characters, since it becomes a label: choose a shorter name")
        .reason(Reason::FieldValueInvalid)
}

/// Rules of `Provider.spec`.
pub(crate) fn provider_spec(schema: &mut Schema) {
    let rules = [
        field(
            "!has(self.baseUrl) || self.baseUrl.matches(URL)",
            ".baseUrl",
            "`baseUrl` must be an http or https URL without user, query and fragment: write it like https://gateway.example.com/v1",
        ),
        field(
            "!has(self.routes) || self.routes.all(route, route.baseUrl.matches(URL))",
            ".routes",
            "`baseUrl` of each route must be an http or https URL without user, query and fragment: write it like http://vllm-0.vllm:8000",
        ),
        field(
            "self.kind in ['OpenAI', 'Gemini', 'Anthropic'] || has(self.baseUrl) || (has(self.routes) && self.routes.size() > 0)",
            ".baseUrl",
            "`baseUrl` must be set for this kind, which has no address of its own: set it, or set `routes`",
        ),
        field(
            "self.kind in ['OpenAICompatible', 'Simulated'] || has(self.apiKeySecretRef) || (has(self.routes) && self.routes.size() > 0)",
            ".apiKeySecretRef",
            "`apiKeySecretRef` must be set for this kind, which asks for a key: make a Secret with the key and name it here",
        ),
        field(
            "self.kind == 'AzureOpenAI' || !has(self.apiVersion)",
            ".apiVersion",
            "`apiVersion` must not be set for this kind: only 'AzureOpenAI' is asked for a version; leave it out",
        ),
        field(
            "self.kind == oldSelf.kind",
            ".kind",
            "`kind` must not change: make a Provider with another `metadata.name`",
        )
        .reason(Reason::FieldValueForbidden),
    ];
    add(schema, rules);
}

/// Exactly one of the two.
pub(crate) fn certificate_authority(schema: &mut Schema) {
    add(
        schema,
        [Rule::new("has(self.configMapKeyRef) != has(self.secretKeyRef)").message(
            "`certificateAuthority` must set exactly one of `configMapKeyRef` and `secretKeyRef`: leave the other out",
        )],
    );
}

/// A rule about one field. `URI` and `URL` in it stand for the patterns of both.
fn field(rule: &str, path: &str, message: &str) -> Rule {
    let rule = rule.replace("(URI)", &format!("({OBJECT_URI})")).replace("(URL)", &format!("({BASE_URL})"));
    Rule::new(rule).message(message).field_path(path)
}

fn add(schema: &mut Schema, rules: impl IntoIterator<Item = Rule>) {
    schema.insert("x-kubernetes-validations".to_owned(), json!(rules.into_iter().collect::<Vec<_>>()));
}
