//! `penstock simulate`: stands in for something that costs money.

mod provider;
mod rate;
mod storage;

pub(crate) use self::{
    provider::provider,
    rate::{RateError, rate},
    storage::storage,
};
