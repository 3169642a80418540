//! Shared state in a storage: two small documents for each account, changed by compare-and-swap.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use penstock_rate::{Dimension, DocumentError, Remembered, Shared, Sharing};
use penstock_storage::{Action, ErrorKind, Generation, ObjectName, Store};

use super::{ModelLimits, ModelRate, SharedState, SharedStateError};
use crate::{
    clock::now_ms,
    output::{jitter, object_name, within},
    provider::Account,
};

/// Longest time for one call.
const CALL: Duration = Duration::from_secs(5);
/// Largest document: a thousand models with a thousand jobs each would be larger, and nobody has them.
const DOCUMENT_LIMIT: u64 = 16 << 20;
/// How often a write is tried that others get ahead of, with waits of up to 10, 20, … 1,280 ms.
const ATTEMPTS: u32 = 8;

/// Shared state in a storage of its own. Clones share it.
#[derive(Debug, Clone)]
pub struct StoredState {
    store: Arc<dyn Store>,
}

impl StoredState {
    /// Shared state below the root of `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    async fn read(&self, name: &ObjectName) -> Result<Option<(Generation, Bytes)>, SharedStateError> {
        let read = within(CALL, Action::Read, name, self.store.get(name, DOCUMENT_LIMIT)).await?;
        Ok(read.map(|(meta, bytes)| (meta.generation, bytes)))
    }

    /// Changes a document until nobody else has changed it meanwhile.
    async fn change(
        &self,
        name: &ObjectName,
        change: impl Fn(Option<&[u8]>) -> Vec<u8> + Send,
    ) -> Result<Bytes, SharedStateError> {
        for attempt in 0..ATTEMPTS {
            let found = self.read(name).await?;
            let content = Bytes::from(change(found.as_ref().map(|(_, bytes)| bytes.as_ref())));
            let written = match found {
                None => within(CALL, Action::Create, name, self.store.create(name, content.clone())).await,
                Some((generation, _)) => {
                    let replacing = self.store.replace(name, content.clone(), &generation);
                    within(CALL, Action::Replace, name, replacing).await
                }
            };
            match written {
                Ok(_) => return Ok(content),
                Err(error) if matches!(error.kind(), ErrorKind::Exists | ErrorKind::Changed) => {
                    let longest = self.store.mutation_interval().max(Duration::from_secs(2));
                    tokio::time::sleep(jitter(Duration::from_millis(10), longest, attempt)).await;
                }
                // Whether it was applied shows next time: to say the same twice changes nothing.
                Err(error) => return Err(error.into()),
            }
        }
        Err(SharedStateError::Contended(name.to_string()))
    }
}

#[async_trait]
impl SharedState for StoredState {
    async fn remembered(
        &self,
        account: &Account,
        model: &str,
    ) -> Result<BTreeMap<Dimension, f64>, SharedStateError> {
        let found = self.read(&remembered(account)).await?;
        let rates = found.map(|(_, bytes)| opened(Remembered::read(&bytes))).unwrap_or_default();
        Ok(rates.found(model, now_ms()))
    }

    async fn remember(&self, account: &Account, found: &[ModelLimits]) -> Result<(), SharedStateError> {
        let change = |bytes: Option<&[u8]>| {
            let mut rates = bytes.map(|bytes| opened(Remembered::read(bytes))).unwrap_or_default();
            for ModelLimits { model, found } in found {
                rates.record(model, found, now_ms());
            }
            rates.write()
        };
        self.change(&remembered(account), change).await?;
        Ok(())
    }

    async fn exchange(
        &self,
        account: &Account,
        job: &str,
        own: &[ModelRate],
        every: Duration,
    ) -> Result<Vec<Shared>, SharedStateError> {
        let change = |bytes: Option<&[u8]>| {
            let mut sharing = bytes.map(|bytes| opened(Sharing::read(bytes))).unwrap_or_default();
            for ModelRate { model, rpm } in own {
                sharing.tell(model, job, *rpm, now_ms(), every);
            }
            sharing.write()
        };
        let written = self.change(&sharing(account), change).await?;
        let sharing = opened(Sharing::read(&written));
        Ok(own.iter().map(|rate| sharing.of(&rate.model, job, now_ms())).collect())
    }

    async fn leave(&self, account: &Account, job: &str) -> Result<(), SharedStateError> {
        let change = |bytes: Option<&[u8]>| {
            let mut sharing = bytes.map(|bytes| opened(Sharing::read(bytes))).unwrap_or_default();
            sharing.leave(job);
            sharing.write()
        };
        self.change(&sharing(account), change).await?;
        Ok(())
    }
}

fn remembered(account: &Account) -> ObjectName {
    object_name(&format!("remembered/{account}.json"))
}

fn sharing(account: &Account) -> ObjectName {
    object_name(&format!("sharing/{account}.json"))
}

/// A document, or an empty one in the place of one that cannot be read.
fn opened<D: Default>(document: Result<D, DocumentError>) -> D {
    document.unwrap_or_else(|error| {
        tracing::warn!("failed to {error}");
        D::default()
    })
}

#[cfg(test)]
mod tests {
    use penstock_job::spec::{BaseUrl, ProviderKind};
    use penstock_storage::{
        MemoryStore,
        faults::{Fault, FaultyStore},
    };

    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn account() -> Account {
        Account::new(ProviderKind::OpenAi, &BaseUrl::parse("http://provider").unwrap(), Some(b"sk-secret"))
    }

    fn rates(rpm: f64) -> [ModelRate; 1] {
        [ModelRate { model: "m".into(), rpm }]
    }

    fn limits(of: Dimension, per_minute: f64) -> [ModelLimits; 1] {
        [ModelLimits { model: "m".into(), found: BTreeMap::from([(of, per_minute)]) }]
    }

    #[tokio::test]
    async fn what_one_job_found_out_the_next_one_hears_and_the_key_is_nowhere() {
        let store = MemoryStore::new();
        let state = StoredState::new(Arc::new(store.clone()));
        assert_eq!(state.remembered(&account(), "m").await.unwrap(), BTreeMap::new());
        state.remember(&account(), &limits(Dimension::Requests, 3_480.0)).await.unwrap();
        state.remember(&account(), &limits(Dimension::Requests, 3_500.0)).await.unwrap();
        state.remember(&account(), &limits(Dimension::OutputTokens, 80_000.0)).await.unwrap();
        let both = BTreeMap::from([(Dimension::Requests, 3_500.0), (Dimension::OutputTokens, 80_000.0)]);
        assert_eq!(state.remembered(&account(), "m").await.unwrap(), both);
        let objects = store.list("", None).await.unwrap().objects;
        assert_eq!(objects.len(), 1);
        let (_, bytes) = store.get(&objects[0].name, 1_000).await.unwrap().unwrap();
        for text in [objects[0].name.as_str(), str::from_utf8(&bytes).unwrap()] {
            assert!(!text.contains("secret"), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_that_write_at_once_all_end_up_in_the_document() {
        let state = StoredState::new(Arc::new(MemoryStore::new()));
        let jobs: Vec<_> = (0..10)
            .map(|job| {
                let state = state.clone();
                tokio::spawn(async move {
                    state.exchange(&account(), &format!("job-{job}"), &rates(60.0), EVERY).await
                })
            })
            .collect();
        for job in jobs {
            job.await.unwrap().unwrap();
        }
        let heard = state.exchange(&account(), "job-0", &rates(60.0), EVERY).await.unwrap();
        assert_eq!((heard[0].jobs.get(), heard[0].mean_rpm), (10, Some(60.0)));
        state.leave(&account(), "job-1").await.unwrap();
        let heard = state.exchange(&account(), "job-0", &rates(60.0), EVERY).await.unwrap();
        assert_eq!(heard[0].jobs.get(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_that_somebody_else_keeps_changing_is_given_up_with_advice() {
        let store = MemoryStore::new();
        let name = sharing(&account());
        let state = StoredState::new(Arc::new(store.clone()));
        let change = |bytes: Option<&[u8]>| {
            // Somebody is always faster.
            let (store, name, absent) = (store.clone(), name.clone(), bytes.is_none());
            futures_util::FutureExt::now_or_never(async move {
                if absent {
                    store.create(&name, Bytes::new()).await
                } else {
                    let found = store.head(&name).await?.expect("it was created");
                    store.replace(&name, Bytes::new(), &found.generation).await
                }
            })
            .expect("memory answers at once")
            .unwrap();
            Vec::new()
        };
        let refused = state.change(&name, change).await.unwrap_err().to_string();
        assert!(refused.contains("--share-every"), "{refused}");
    }

    #[tokio::test]
    async fn a_store_that_fails_is_an_error_and_a_damaged_document_is_begun_anew() {
        let broken = FaultyStore::new(MemoryStore::new(), |_| Some(Fault::Refused));
        let state = StoredState::new(Arc::new(broken));
        assert!(state.remember(&account(), &limits(Dimension::Requests, 1.0)).await.is_err());
        let store = MemoryStore::new();
        store.create(&remembered(&account()), Bytes::from_static(b"not JSON")).await.unwrap();
        let state = StoredState::new(Arc::new(store));
        assert_eq!(state.remembered(&account(), "m").await.unwrap(), BTreeMap::new());
        state.remember(&account(), &limits(Dimension::Requests, 1.0)).await.unwrap();
        assert_eq!(
            state.remembered(&account(), "m").await.unwrap(),
            BTreeMap::from([(Dimension::Requests, 1.0)])
        );
    }
}
