//! What a user asks for: the job file, and its canonical form that decides a job's identity.

mod base_url;
mod budget;
mod canonical;
mod file;
mod prices;
mod provider_kind;
mod report;
pub mod text;

pub use base_url::{BaseUrl, BaseUrlError};
pub use budget::{Budget, BudgetError};
pub use canonical::{CanonicalInput, CanonicalProvider, CanonicalSpec, SpecError};
pub use file::{
    FormatChoice, JobSpec, KeySource, Limits, Metadata, ModelLimits, OnInvalid, ProviderSpec, RateMode,
    Retry, Route, Tls,
};
pub use prices::{Price, Prices};
pub use provider_kind::ProviderKind;
pub use report::ReportTo;

#[cfg(test)]
pub(crate) use canonical::tests;
