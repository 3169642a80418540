//! From a `BatchJob` and its `Provider` to the job file that an executor reads, and the files that its pod needs. Pure.
//!
//! Whether Secrets and objects are there is for the operator to see.

mod limits;
mod money;
mod mounted;
mod parameters;
mod provider;
mod words;

use penstock_job::{
    JobSpec,
    money::{CurrencyError, DecimalError},
    spec::Metadata,
};
use thiserror::Error;

use crate::{
    batch_job::{BatchJob, PartialResults, UnknownFields},
    provider::Provider,
};

pub use mounted::{FileSource, MountedFile, PROVIDER_FILES};

/// A job as an executor gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The job file; the operator adds whom the executor reports to.
    pub spec: JobSpec,
    /// The files that the job file names, each once.
    pub files: Vec<MountedFile>,
}

/// Why a BatchJob and a Provider do not make a job. The schema lets most of it not come so far.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// A field of a request's body is not JSON.
    #[error(
        "read `spec.parameters.body.{field}`: {detail}; write JSON there, such as '7', 'true' or '\"text\"'"
    )]
    Body {
        /// Which field.
        field: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A parameter is not a number.
    #[error("read `spec.parameters.{field}`: `{text}` is not a decimal number; write one such as \"0.2\"")]
    Fraction {
        /// Which parameter.
        field: &'static str,
        /// What stands there.
        text: String,
    },
    /// A parameter is said twice.
    #[error(
        "take `spec.parameters.{0}`: it stands in `spec.parameters.body` as well; leave one of the two out"
    )]
    Twice(&'static str),
    /// A number is out of bounds.
    #[error("use `{field}` {value}: write a number from 1 to {most}")]
    OutOfBounds {
        /// Which field.
        field: &'static str,
        /// What stands there.
        value: i64,
        /// The highest that makes sense.
        most: i64,
    },
    /// An amount of money is none.
    #[error("{source} (in `{field}`)")]
    Amount {
        /// Which field.
        field: &'static str,
        /// What stands there.
        source: DecimalError,
    },
    /// A currency is none.
    #[error("{0} (in `spec.prices.currency` of the Provider)")]
    Currency(CurrencyError),
    /// Money is bounded, and nothing has a price.
    #[error(
        "keep to `spec.budget.cost`: the Provider has no `spec.prices`; add them there, or apply the job with \
         `spec.budget.tokens` instead"
    )]
    NoPrices,
    /// Money is bounded, and the job's model has no price.
    #[error(
        "keep to `spec.budget.cost`: `spec.prices` of the Provider has none for the model `{0}`; add it there, or apply the \
         job with `spec.budget.tokens` instead"
    )]
    NoPrice(String),
}

/// The job that a BatchJob describes, answered by this Provider.
pub fn resolve(job: &BatchJob, provider: &Provider) -> Result<Resolved, ResolveError> {
    let spec = &job.spec;
    let (budget, prices) = money::resolve(spec, &provider.spec)?;
    let (answering, files) = provider::resolve(&provider.spec);
    let parameters = spec.parameters.clone().unwrap_or_default();
    let name = |text: &Option<String>| text.clone().unwrap_or_default();
    let resolved = JobSpec {
        input: Some(spec.input.uri.clone()),
        output: Some(spec.output.uri.clone()),
        format: spec.input.format.into(),
        strict: spec.input.unknown_fields == UnknownFields::Reject,
        on_invalid: spec.input.on_invalid.into(),
        max_line_bytes: limits::within(
            "spec.input.maxLineBytes",
            spec.input.max_line_bytes.into(),
            64 << 20,
        )?,
        provider: answering,
        model: spec.model.clone(),
        endpoint: spec.endpoint.map(Into::into),
        system_prompt: parameters.system_prompt.clone(),
        max_output_tokens: limits::positive("spec.parameters.maxOutputTokens", parameters.max_output_tokens)?,
        parameters: parameters::body(&parameters)?,
        run: spec.run.clone(),
        limits: limits::resolve(spec, &provider.spec)?,
        budget,
        prices,
        keep_parts: spec.output.partial_results == PartialResults::Keep,
        metadata: Metadata {
            uid: name(&job.metadata.uid),
            namespace: name(&job.metadata.namespace),
            name: name(&job.metadata.name),
        },
        ..JobSpec::default()
    };
    Ok(Resolved { spec: resolved, files })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const JOB: &str = "
apiVersion: penstock.dev/v1alpha1
kind: BatchJob
metadata: {name: nightly, namespace: evals, uid: 7b0c}
spec:
  input: {uri: gs://b/in.jsonl, format: Prompts, onInvalid: Fail, unknownFields: Reject, maxLineBytes: 2048}
  output: {uri: gs://b/out, partialResults: Keep}
  providerRef: {name: gateway}
  model: m
  endpoint: Responses
  parameters: {systemPrompt: Be brief., maxOutputTokens: 9, temperature: '0.2', topP: '1', body: {seed: '7', stop: '[\"END\"]'}}
  run: second
  rate: {mode: AIMD, requestsPerMinute: 500, maxInFlight: 64, perModel: [{model: m, tokensPerMinute: 10}, {model: n, maxInFlight: 3}]}
  retries: {maxAttempts: 3}
  completionWindowSeconds: 86400
  budget: {tokens: 5000000, cost: '12.5'}
";

    const PROVIDER: &str = "
apiVersion: penstock.dev/v1alpha1
kind: Provider
metadata: {name: gateway, namespace: evals}
spec:
  kind: OpenAICompatible
  baseUrl: https://gateway/v1
  apiKeySecretRef: {name: keys}
  tls:
    certificateAuthority: {configMapKeyRef: {name: keys, key: ca.pem}}
    clientCertificateSecretRef: {name: client}
  routes:
  - {model: m, baseUrl: 'http://vllm:8000', apiKeySecretRef: {name: keys, key: api-key}}
  limits: {requestsPerMinute: 100, tokensPerMinute: 9000, perModel: [{model: m, tokensPerMinute: 20, maxInFlight: 4}]}
  timeouts: {requestSeconds: 30}
  retries: {maxAttempts: 5, firstWaitSeconds: 2, longestWaitSeconds: 20}
  prices:
    currency: EUR
    models: [{model: m, inputPerMillionTokens: '0.25', cachedInputPerMillionTokens: '0.025', outputPerMillionTokens: '2'}]
";

    fn parse<T: serde::de::DeserializeOwned>(yaml: &str) -> T {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_budget_in_money_that_nobody_could_keep_to_is_refused_before_anything_is_spent() {
        let job: BatchJob = parse(JOB);
        let priced: Provider = parse(PROVIDER);
        let with = |change: &dyn Fn(&mut BatchJob, &mut Provider)| {
            let (mut job, mut provider) = (job.clone(), priced.clone());
            change(&mut job, &mut provider);
            resolve(&job, &provider).map(|_| ())
        };
        let no_price = ResolveError::NoPrice("other".to_owned());
        assert_eq!(with(&|_, provider| provider.spec.prices = None), Err(ResolveError::NoPrices));
        assert_eq!(with(&|job, _| job.spec.model = Some("other".to_owned())), Err(no_price));
        assert_eq!(with(&|job, _| job.spec.model = None), Ok(()), "lines name models of their own");
        let tokens = Some(crate::batch_job::Budget { tokens: Some(1), cost: None });
        let of_tokens = with(&|job, provider| {
            job.spec.budget.clone_from(&tokens);
            provider.spec.prices = None;
        });
        assert_eq!(of_tokens, Ok(()), "tokens need no price");
    }

    #[test]
    fn a_job_and_its_provider_become_one_job_file() {
        let resolved = resolve(&parse(JOB), &parse(PROVIDER)).unwrap();
        let below = |path: &str| format!("{PROVIDER_FILES}/{path}");
        let expected = json!({
            "input": "gs://b/in.jsonl", "output": "gs://b/out", "format": "prompts", "strict": true,
            "on_invalid": "fail", "max_line_bytes": 2048, "model": "m", "endpoint": "/v1/responses",
            "provider": {
                "kind": "openai-compatible", "base_url": "https://gateway/v1", "api_version": null,
                "api_key": { "file": below("secret/keys/api-key") },
                "tls": {
                    "ca_file": below("config-map/keys/ca.pem"),
                    "client_certificate_file": below("secret/client/tls.crt"),
                    "client_key_file": below("secret/client/tls.key"),
                },
                "routes": { "m": {
                    "base_url": "http://vllm:8000", "api_key": { "file": below("secret/keys/api-key") },
                    "tls": { "ca_file": null, "client_certificate_file": null, "client_key_file": null },
                } },
            },
            "system_prompt": "Be brief.", "max_output_tokens": 9,
            "parameters": { "temperature": 0.2, "top_p": 1, "seed": 7, "stop": ["END"] },
            "run": "second",
            "limits": {
                "rate": "aimd", "rpm": 100, "tpm": 9000, "max_in_flight": 64,
                "per_model": {
                    "m": { "rpm": null, "tpm": 10, "max_in_flight": 4 },
                    "n": { "rpm": null, "tpm": null, "max_in_flight": 3 },
                },
                "max_attempts": 3, "retry": { "base_ms": 2000, "cap_ms": 20000 },
                "deadline_seconds": 86400, "request_timeout_seconds": 30, "drain_seconds": 10, "checkpoint_seconds": 30,
            },
            "budget": { "tokens": 5_000_000, "cost": "12.50" },
            "prices": { "currency": "EUR", "models": { "m": {
                "output_per_million_tokens": "2.00", "input_per_million_tokens": "0.25",
                "cached_input_per_million_tokens": "0.025",
            } } },
            "keep_parts": true, "report": null,
            "metadata": { "uid": "7b0c", "namespace": "evals", "name": "nightly" },
        });
        assert_eq!(serde_json::to_value(&resolved.spec).unwrap(), expected);
        let paths: Vec<_> = resolved.files.iter().map(|file| file.path.display().to_string()).collect();
        let named = [
            "secret/keys/api-key",
            "config-map/keys/ca.pem",
            "secret/client/tls.crt",
            "secret/client/tls.key",
        ];
        assert_eq!(paths, named.map(below), "each file once");
    }

    #[test]
    fn what_is_not_said_is_as_in_a_job_file_that_does_not_say_it() {
        let job = "{apiVersion: a, kind: BatchJob, metadata: {name: n}, spec: {input: {uri: i}, output: {uri: o}, providerRef: {name: p}}}";
        let provider = "{apiVersion: a, kind: Provider, metadata: {name: p}, spec: {kind: OpenAI}}";
        let resolved = resolve(&parse(job), &parse(provider)).unwrap();
        let expected = JobSpec {
            input: Some("i".to_owned()),
            output: Some("o".to_owned()),
            metadata: Metadata { name: "n".to_owned(), ..Metadata::default() },
            ..JobSpec::default()
        };
        assert_eq!(resolved, Resolved { spec: expected, files: Vec::new() });
    }

    #[test]
    fn what_cannot_be_a_job_is_refused_by_the_name_of_the_field() {
        for (from, to, named) in [
            ("seed: '7'", "seed: 'seven'", "`spec.parameters.body.seed`"),
            ("seed: '7'", "temperature: '1'", "`spec.parameters.temperature`"),
            ("temperature: '0.2'", "temperature: warm", "`warm`"),
            ("maxAttempts: 3", "maxAttempts: 0", "`retries.maxAttempts` 0"),
            ("cost: '12.5'", "cost: '12,5'", "`spec.budget.cost`"),
            ("tokens: 5000000", "tokens: 0", "`spec.budget.tokens` 0"),
            ("inputPerMillionTokens: '0.25'", "inputPerMillionTokens: free", "`inputPerMillionTokens`"),
            ("currency: EUR", "currency: Euro", "`spec.prices.currency`"),
            ("maxLineBytes: 2048", "maxLineBytes: -1", "`spec.input.maxLineBytes` -1"),
            (
                "completionWindowSeconds: 86400",
                "completionWindowSeconds: -3",
                "`spec.completionWindowSeconds` -3",
            ),
        ] {
            assert!(JOB.contains(from) || PROVIDER.contains(from), "{from}");
            let [job, provider] = [JOB, PROVIDER].map(|manifest| manifest.replace(from, to));
            let refused = resolve(&parse(&job), &parse(&provider)).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }
}
