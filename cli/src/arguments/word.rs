//! Arguments that are one of a few words. The words are those of the job file, and are parsed by the same code.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::{DeserializeOwned, IntoDeserializer, value::Error};

/// `--format`.
pub(super) const FORMATS: &[&str] = &["auto", "prompts", "openai"];
/// `--provider`.
pub(super) const PROVIDERS: &[&str] =
    &["openai", "openai-compatible", "gemini", "anthropic", "azure-openai", "simulated"];
/// `--rate`.
pub(super) const RATES: &[&str] = &["adaptive", "fixed", "aimd"];
/// `simulate rate --enforcement`.
pub(super) const ENFORCEMENTS: &[&str] =
    &["minute_bucket", "second_bucket", "fixed_minute", "fixed_ten_seconds", "sliding_minute"];
/// `--on-invalid`.
pub(super) const ON_INVALID: &[&str] = &["skip", "fail"];

/// Accepts exactly `words`, which help and completion name.
pub(super) fn parser<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| {
        let word: serde::de::value::StringDeserializer<Error> = word.into_deserializer();
        T::deserialize(word)
    })
}

#[cfg(test)]
mod tests {
    use penstock_job::spec::{FormatChoice, OnInvalid, ProviderKind, RateMode};
    use serde::Serialize;

    use super::*;

    /// The words of a type are those that it writes in a job file.
    fn check<T: DeserializeOwned + Serialize>(words: &[&str]) {
        for word in words {
            let value: T = serde_json::from_value((*word).into()).unwrap();
            assert_eq!(serde_json::to_value(value).unwrap(), *word);
        }
    }

    #[test]
    fn each_word_is_one_of_the_job_file() {
        check::<FormatChoice>(FORMATS);
        check::<ProviderKind>(PROVIDERS);
        check::<RateMode>(RATES);
        check::<OnInvalid>(ON_INVALID);
        check::<penstock_simulator::Enforcement>(ENFORCEMENTS);
    }
}
