//! What a stored record says of the tokens that were paid for it. For records of a process that is gone: whoever gets an
//! answer itself counts what the answer says. Pure.

use std::{collections::BTreeSet, sync::Arc};

use penstock_batchfile::{Format, Json};
use penstock_job::{
    CanonicalSpec,
    spec::Prices,
    usage::{Tokens, Usage},
};

use crate::{meter::Paid, provider::Dialect};

/// Reads records of one job, and says which model each was paid for.
#[derive(Debug)]
pub(crate) struct PaidRecords {
    dialect: Dialect,
    format: Format,
    /// The job's model, which lines without one have.
    model: Option<Arc<str>>,
    /// Names of models as requests have them.
    known: BTreeSet<Arc<str>>,
    /// Where there are prices, the model to charge when nobody can say which it was: the job's, else the dearest.
    charged: Option<Arc<str>>,
}

impl PaidRecords {
    pub(crate) fn of(spec: &CanonicalSpec, usage: &Usage) -> Self {
        let model: Option<Arc<str>> = spec.model.as_deref().map(Into::into);
        let priced = usage.prices.iter().flat_map(|prices| prices.models.keys());
        let used = usage.models.iter().map(|(model, _)| model).filter(|model| !model.is_empty());
        let known = priced.map(String::as_str).chain(used).map(Into::into).chain(model.clone()).collect();
        let charged = usage.prices.as_ref().and_then(|prices| {
            let own = model.clone().filter(|model| prices.models.contains_key(&**model));
            own.or_else(|| dearest(prices))
        });
        Self { dialect: Dialect::of(spec), format: spec.format, model, known, charged }
    }

    /// What a record says was paid for it; `None` where it says nothing of tokens.
    pub(crate) fn read(&self, record: &[u8]) -> Option<Paid> {
        let text = str::from_utf8(record).ok()?;
        match self.format {
            Format::Prompts => {
                let (_, [tokens]) = Json::object(text, &["tokens"])?;
                let [input, cached_input, output] = tokens?.members(&["input", "cached_input", "output"])?;
                let tokens = counted([input, cached_input, output].map(|count| count?.get().parse().ok()))?;
                Some(Paid { model: self.model.clone()?, tokens })
            }
            Format::OpenAi => {
                let (_, [response]) = Json::object(text, &["response"])?;
                let [body] = response?.members(&["body"])?;
                let used = self.dialect.used(body?.get().as_bytes());
                let tokens = counted([used.input, used.cached_input, used.output])?;
                let [model] = body?.members(&["model"])?;
                let answered = model.and_then(Json::text);
                let own = || self.model.clone().unwrap_or_default();
                Some(Paid { model: answered.map_or_else(own, |answered| self.asked(&answered)), tokens })
            }
        }
    }

    /// The model as the request named it. Answers name it otherwise: with a version, or what a deployment serves.
    fn asked(&self, answered: &str) -> Arc<str> {
        let named =
            self.known.iter().filter(|name| is_version_of(answered, name)).max_by_key(|name| name.len());
        named.or(self.charged.as_ref()).map_or_else(|| answered.into(), Arc::clone)
    }
}

/// What a provider counted of one answer; `None` where it counted nothing.
pub(crate) fn counted([input, cached_input, output]: [Option<u64>; 3]) -> Option<Tokens> {
    (input.is_some() || output.is_some()).then(|| Tokens {
        input: input.unwrap_or(0),
        cached_input: cached_input.unwrap_or(0),
        output: output.unwrap_or(0),
    })
}

/// `gpt-5.4-mini-2026-03-17` is a version of `gpt-5.4-mini`.
fn is_version_of(answered: &str, name: &str) -> bool {
    let rest = answered.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@', ':']))
}

fn dearest(prices: &Prices) -> Option<Arc<str>> {
    prices.models.iter().max_by_key(|(_, price)| **price).map(|(model, _)| model.as_str().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use penstock_job::{JobSpec, spec::CanonicalInput};

    use super::*;

    fn records(format: Format, model: Option<&str>, prices: &[(&str, &str)]) -> PaidRecords {
        let mut spec = JobSpec { model: model.map(str::to_owned), ..JobSpec::default() };
        spec.provider.base_url = Some("http://gateway".to_owned());
        let input = CanonicalInput { uri: "in.jsonl".to_owned(), generation: "1".to_owned() };
        let canonical = spec.canonical(input, format).unwrap();
        let models: serde_json::Map<_, _> = prices
            .iter()
            .map(|(model, price)| {
                let price = json!({"input_per_million_tokens": price, "output_per_million_tokens": price});
                ((*model).to_owned(), price)
            })
            .collect();
        let prices = (!models.is_empty()).then(|| serde_json::from_value(json!({"models": models})).unwrap());
        PaidRecords::of(&canonical, &Usage { prices, ..Usage::default() })
    }

    fn paid(model: &str, input: u64, cached_input: u64, output: u64) -> Paid {
        Paid { model: model.into(), tokens: Tokens { input, cached_input, output } }
    }

    #[test]
    fn a_record_of_either_format_tells_what_was_paid() {
        let prompts = records(Format::Prompts, Some("m"), &[]);
        let read = |text: &str| prompts.read(text.as_bytes());
        assert_eq!(
            read(
                r#"{"prompt_id":7,"ordinal":6,"response":"a","tokens":{"input":9,"cached_input":4,"output":40}}"#
            ),
            Some(paid("m", 9, 4, 40))
        );
        assert_eq!(read(r#"{"tokens":{"input":9,"output":null}}"#), Some(paid("m", 9, 0, 0)));
        assert_eq!(read(r#"{"tokens":{"input":null,"output":null}}"#), None);
        assert_eq!(read(r#"{"prompt_id":7,"ordinal":6,"outcome":"failed"}"#), None);
        let openai = records(Format::OpenAi, Some("m"), &[]);
        let read = |text: &str| openai.read(text.as_bytes());
        assert_eq!(
            read(
                r#"{"response":{"body":{"model":"m-1","usage":{"prompt_tokens":8,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}}}}"#
            ),
            Some(paid("m", 8, 3, 2))
        );
        assert_eq!(read(r#"{"response":null,"error":{}}"#), None);
        assert_eq!(read(r#"{"response":{"body":null},"error":{}}"#), None);
    }

    #[test]
    fn an_answers_name_of_its_model_leads_to_the_one_that_was_asked() {
        let prices = [("gpt", "1"), ("gpt-mini", "9"), ("other", "2")];
        for (model, prices, answered, asked) in [
            (None, &prices[..], "gpt", "gpt"),
            (None, &prices[..], "gpt-mini-2026-03-17", "gpt-mini"),
            (None, &prices[..], "gpt-2026-03-17", "gpt"),
            (Some("other"), &prices[..], "gptx", "other"),
            (Some("deployment"), &prices[..], "gptx", "gpt-mini"),
            (Some("deployment"), &[], "gptx", "gptx"),
            (None, &prices[..], "gptx", "gpt-mini"),
            (None, &[], "gptx", "gptx"),
        ] {
            let records = records(Format::OpenAi, model, prices);
            assert_eq!(&*records.asked(answered), asked, "{model:?} {answered}");
        }
    }
}
