//! The provider as the executor meets it: over real connections, against the double and against servers that misbehave
//! in ways the double does not.

#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

mod hostile;
mod native;
mod secrecy;
mod simulated;
mod tls;

use std::time::Duration;

use bytes::Bytes;
use penstock_batchfile::{Endpoint, Format};
use penstock_executor::{
    budget::Budget,
    provider::{Answer, Dialect, Disposition, Failure, Provider, ProviderError, classify},
};
use penstock_job::{
    CanonicalSpec, JobSpec,
    spec::{CanonicalInput, ProviderKind, ProviderSpec},
};
use penstock_rate::Verdict;

/// Long enough for anything that is going to happen at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// A job of one kind, and who answers it.
struct Setup {
    format: Format,
    endpoint: Endpoint,
    provider: ProviderSpec,
    request_timeout: Duration,
    in_flight: usize,
}

impl Setup {
    fn new(format: Format, endpoint: Endpoint, base_url: &str) -> Self {
        Self {
            format,
            endpoint,
            provider: ProviderSpec {
                kind: ProviderKind::OpenAiCompatible,
                base_url: Some(base_url.to_owned()),
                ..ProviderSpec::default()
            },
            request_timeout: PATIENCE,
            in_flight: 10,
        }
    }

    fn prompts(base_url: &str) -> Self {
        Self::new(Format::Prompts, Endpoint::ChatCompletions, base_url)
    }

    fn spec(&self) -> CanonicalSpec {
        let spec = JobSpec {
            model: Some("small".to_owned()),
            endpoint: Some(self.endpoint),
            provider: self.provider.clone(),
            ..JobSpec::default()
        };
        let input = CanonicalInput { uri: "/in.jsonl".to_owned(), generation: "1-1".to_owned() };
        spec.canonical(input, self.format).unwrap()
    }

    fn connect(&self) -> Result<Provider, ProviderError> {
        Provider::connect(&self.spec(), &self.provider, self.request_timeout, self.in_flight)
    }

    /// Sends one line under a budget with room for it.
    async fn ask(&self, provider: &Provider, line: &str) -> Result<Answer, Failure> {
        send(provider, &Budget::new(64 << 20), line).await
    }

    /// What became of a line, in one word and its code.
    async fn verdict(&self, provider: &Provider, line: &str) -> String {
        self.word(&self.ask(provider, line).await)
    }

    fn word(&self, outcome: &Result<Answer, Failure>) -> String {
        match classify(outcome, Dialect::of(&self.spec())) {
            Disposition::Succeeded(_) => "succeeded".to_owned(),
            Disposition::Failed(cause) => format!("failed {}", cause.code),
            Disposition::Retry { cause, .. } => format!("retry {}", cause.code),
            Disposition::Throttled { verdict: Verdict::Refused { dimension, .. }, .. } => {
                format!("throttled {dimension:?}")
            }
            Disposition::Throttled { verdict: Verdict::SlowDown { .. }, .. } => "slow down".to_owned(),
            Disposition::Throttled { cause, .. } => format!("overloaded {}", cause.code),
            Disposition::Blocked { reason, .. } => format!("blocked {reason}"),
        }
    }
}

async fn send(provider: &Provider, budget: &Budget, line: &str) -> Result<Answer, Failure> {
    let line = Bytes::copy_from_slice(line.as_bytes());
    let request = provider.prepare(&line).unwrap();
    let mut reservation = budget.reserve(line.len()).await;
    provider.send(&request, &mut reservation).await
}

/// A line of the format Prompts.
fn prompt(id: u32) -> String {
    format!(r#"{{"prompt_id":{id},"prompt":"Ticket {id}: the caf\u00e9's printer is on fire."}}"#)
}
