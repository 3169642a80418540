//! A store that fails on demand, for tests of whatever uses one.
//!
//! A plan decides for each call, so a test says which write of which object goes wrong, and how; the same plan goes
//! wrong in the same places each time.

use std::fmt;
use std::mem;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::store::{Page, Store};

/// How a call goes wrong. The caller gets [`Unavailable`](ErrorKind::Unavailable), and from [`Fault::Refused`]
/// [`Refused`](ErrorKind::Refused). A read has nothing to apply, so each of these only fails it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The store will not, as one that is full or read-only.
    Refused,
    /// The write is lost.
    Before,
    /// The write is applied, and its answer is lost.
    After,
    /// The write lands when that many further calls have been made, or at [`FaultyStore::land`], under the
    /// precondition that it was sent with.
    Late {
        /// How many calls come first.
        calls: u64,
    },
    /// The write is given to the keeper of [`FaultyStore::keeping`], who may let it land when this process is gone. Without
    /// a keeper it is lost.
    Kept,
}

/// One call, as a plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// How many calls came before.
    pub number: u64,
    /// What is done; an upload is a `Create`, a look at an object a `Read`.
    pub action: Action,
    /// The object, or the prefix of a listing.
    pub object: &'a str,
}

type Plan = Box<dyn Fn(&Call<'_>) -> Option<Fault> + Send + Sync>;
type Keeper = Box<dyn Fn(Write) + Send + Sync>;
type Watcher = Box<dyn Fn(&str) + Send + Sync>;

/// A store whose calls go wrong by a plan.
pub struct FaultyStore<S> {
    inner: S,
    plan: Plan,
    keep: Keeper,
    watch: Watcher,
    compose_limit: Option<usize>,
    calls: AtomicU64,
    late: Mutex<Vec<LateWrite>>,
}

#[derive(Debug)]
struct LateWrite {
    due: u64,
    write: Write,
}

/// A write with all that it needs to be applied later.
#[derive(Debug)]
pub enum Write {
    /// See [`Store::create`]; an upload is one, too.
    Create(ObjectName, Bytes),
    /// See [`Store::replace`].
    Replace(ObjectName, Bytes, Generation),
    /// See [`Store::compose`].
    Compose(ObjectName, Vec<(ObjectName, Generation)>),
    /// See [`Store::delete`].
    Delete(ObjectName, Generation),
}

/// A plan in which one call in `one_in` goes wrong, in a way that the seed decides.
///
/// # Panics
/// If `one_in` is 0.
pub fn seeded(seed: u64, one_in: u64) -> impl Fn(&Call<'_>) -> Option<Fault> + Send + Sync {
    assert!(one_in > 0, "one call in 0 cannot go wrong");
    move |call| {
        let draw = mixed(seed ^ mixed(call.number));
        let way = mixed(draw);
        draw.is_multiple_of(one_in).then(|| match way % 3 {
            0 => Fault::Before,
            1 => Fault::After,
            _ => Fault::Late { calls: 1 + mixed(way) % 8 },
        })
    }
}

/// The finaliser of splitmix64: spreads near numbers over all 64 bits.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl<S: Store> FaultyStore<S> {
    /// Lets the calls to `inner` go wrong as `plan` says.
    pub fn new(inner: S, plan: impl Fn(&Call<'_>) -> Option<Fault> + Send + Sync + 'static) -> Self {
        let (calls, late) = (AtomicU64::new(0), Mutex::default());
        let compose_limit = inner.compose_limit();
        let (plan, keep, watch) = (Box::new(plan), Box::new(drop), Box::new(|_: &str| {}));
        Self { inner, plan, keep, watch, compose_limit, calls, late }
    }

    /// Gives writes that meet [`Fault::Kept`] to `keep`.
    #[must_use]
    pub fn keeping(self, keep: impl Fn(Write) + Send + Sync + 'static) -> Self {
        Self { keep: Box::new(keep), ..self }
    }

    /// Tells `watch` of each object that was looked at, and each prefix that was listed, once the store has answered.
    #[must_use]
    pub fn watching(self, watch: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { watch: Box::new(watch), ..self }
    }

    /// Says that one compose call takes at most so many sources, as some stores do.
    #[must_use]
    pub fn composing_at_most(self, sources: usize) -> Self {
        Self { compose_limit: Some(sources), ..self }
    }

    /// The store behind the faults.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Applies, in the order in which they were sent, all writes that have not landed yet. Those whose precondition
    /// no longer holds change nothing.
    pub async fn land(&self) {
        self.land_due(u64::MAX).await;
    }

    async fn land_due(&self, now: u64) {
        let due: Vec<_> = {
            let mut late = self.late();
            let (due, rest) = mem::take(&mut *late).into_iter().partition(|write| write.due <= now);
            *late = rest;
            due
        };
        for LateWrite { write, .. } in due {
            // Its sender has had its answer; a precondition that failed meanwhile is nobody's error.
            drop(write.apply(&self.inner).await);
        }
    }

    fn late(&self) -> MutexGuard<'_, Vec<LateWrite>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, lets land what is due, and asks the plan.
    async fn next_call(&self, action: Action, object: &str) -> (u64, Option<Fault>) {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        self.land_due(number).await;
        (number, (self.plan)(&Call { number, action, object }))
    }

    async fn read<T>(
        &self,
        action: Action,
        object: &str,
        read: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let (_, fault) = self.next_call(action, object).await;
        let answer = match fault {
            None => read.await,
            Some(fault) => Err(injected(fault, action, object)),
        };
        (self.watch)(object);
        answer
    }

    /// The metadata is `None` for a deletion.
    async fn write(&self, action: Action, write: Write) -> Result<Option<ObjectMeta>> {
        let object = write.target().to_string();
        let (number, fault) = self.next_call(action, &object).await;
        let Some(fault) = fault else { return write.apply(&self.inner).await };
        match fault {
            Fault::Refused | Fault::Before => {}
            Fault::After => drop(write.apply(&self.inner).await?),
            Fault::Kept => (self.keep)(write),
            Fault::Late { calls } => {
                self.late().push(LateWrite { due: number.saturating_add(calls), write });
            }
        }
        Err(injected(fault, action, &object))
    }

    async fn write_object(&self, action: Action, write: Write) -> Result<ObjectMeta> {
        let written = self.write(action, write).await?;
        Ok(written.expect("invariant: every write but a deletion has metadata"))
    }
}

impl Write {
    /// Does it, under the precondition that it was made with. The metadata is `None` for a deletion.
    pub async fn apply(self, store: &dyn Store) -> Result<Option<ObjectMeta>> {
        match self {
            Self::Create(name, content) => store.create(&name, content).await.map(Some),
            Self::Replace(name, content, generation) => {
                store.replace(&name, content, &generation).await.map(Some)
            }
            Self::Compose(target, sources) => store.compose(&target, &sources).await.map(Some),
            Self::Delete(name, generation) => store.delete(&name, &generation).await.map(|()| None),
        }
    }

    fn target(&self) -> &ObjectName {
        match self {
            Self::Create(name, _)
            | Self::Replace(name, ..)
            | Self::Compose(name, _)
            | Self::Delete(name, _) => name,
        }
    }
}

async fn content_of(source: &Path) -> Result<Bytes> {
    let content = tokio::fs::read(source).await;
    content.map(Bytes::from).map_err(|answer| StorageError::io(Action::Read, source.display(), &answer))
}

fn injected(fault: Fault, action: Action, object: &str) -> StorageError {
    StorageError::new(
        if fault == Fault::Refused { ErrorKind::Refused } else { ErrorKind::Unavailable },
        action,
        object,
        "the test wants it so",
        "see its plan of faults",
    )
}

impl<S: fmt::Debug> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FaultyStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl<S: Store> Store for FaultyStore<S> {
    fn mutation_interval(&self) -> Duration {
        self.inner.mutation_interval()
    }

    fn compose_limit(&self) -> Option<usize> {
        self.compose_limit
    }

    /// Of the store behind the faults; still each deletion meets a fault of its own.
    fn generations_are_digests(&self) -> bool {
        self.inner.generations_are_digests()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn deletes_at_once(&self) -> NonZeroUsize {
        self.inner.deletes_at_once()
    }

    async fn head(&self, name: &ObjectName) -> Result<Option<ObjectMeta>> {
        self.read(Action::Read, name.as_str(), self.inner.head(name)).await
    }

    async fn get(&self, name: &ObjectName, limit_bytes: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        self.read(Action::Read, name.as_str(), self.inner.get(name, limit_bytes)).await
    }

    async fn read_range(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes> {
        self.read(Action::Read, name.as_str(), self.inner.read_range(name, generation, range)).await
    }

    async fn create(&self, name: &ObjectName, content: Bytes) -> Result<ObjectMeta> {
        self.write_object(Action::Create, Write::Create(name.clone(), content)).await
    }

    async fn replace(
        &self,
        name: &ObjectName,
        content: Bytes,
        generation: &Generation,
    ) -> Result<ObjectMeta> {
        self.write_object(Action::Replace, Write::Replace(name.clone(), content, generation.clone())).await
    }

    /// The file goes through as it is, unless a fault is due: then its bytes are taken now, since it may be gone when
    /// they land.
    async fn upload(&self, name: &ObjectName, source: &Path, checksum: Checksum) -> Result<ObjectMeta> {
        let (number, fault) = self.next_call(Action::Create, name.as_str()).await;
        let Some(fault) = fault else { return self.inner.upload(name, source, checksum).await };
        match fault {
            Fault::Refused | Fault::Before => {}
            Fault::After => drop(self.inner.upload(name, source, checksum).await?),
            Fault::Late { calls } => {
                let write = Write::Create(name.clone(), content_of(source).await?);
                self.late().push(LateWrite { due: number.saturating_add(calls), write });
            }
            Fault::Kept => (self.keep)(Write::Create(name.clone(), content_of(source).await?)),
        }
        Err(injected(fault, Action::Create, name.as_str()))
    }

    async fn list(&self, prefix: &str, start_after: Option<&str>) -> Result<Page> {
        self.read(Action::List, prefix, self.inner.list(prefix, start_after)).await
    }

    /// No call of its own: what comes of it shows in the compose.
    async fn announce(&self, first: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<()> {
        self.inner.announce(first, sources).await
    }

    async fn compose(&self, target: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<ObjectMeta> {
        self.write_object(Action::Compose, Write::Compose(target.clone(), sources.to_vec())).await
    }

    async fn delete(&self, name: &ObjectName, generation: &Generation) -> Result<()> {
        self.write(Action::Delete, Write::Delete(name.clone(), generation.clone())).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    fn name() -> ObjectName {
        ObjectName::from_static("state.json")
    }

    fn first_write(fault: Fault) -> FaultyStore<MemoryStore> {
        FaultyStore::new(MemoryStore::new(), move |call| (call.number == 0).then_some(fault))
    }

    #[tokio::test]
    async fn a_fault_before_loses_the_write_and_one_after_loses_only_the_answer() {
        for (fault, applied) in [(Fault::Before, false), (Fault::After, true)] {
            let store = first_write(fault);
            assert!(store.create(&name(), Bytes::from_static(b"1")).await.unwrap_err().ambiguous());
            assert_eq!(store.head(&name()).await.unwrap().is_some(), applied, "{fault:?}");
        }
    }

    #[tokio::test]
    async fn a_late_write_lands_after_its_calls_or_when_told() {
        let store = first_write(Fault::Late { calls: 2 });
        store.create(&name(), Bytes::from_static(b"1")).await.unwrap_err();
        assert_eq!(store.head(&name()).await.unwrap(), None);
        assert!(store.head(&name()).await.unwrap().is_some());

        let store = first_write(Fault::Late { calls: u64::MAX });
        store.create(&name(), Bytes::from_static(b"1")).await.unwrap_err();
        store.land().await;
        assert!(store.inner().head(&name()).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_late_write_keeps_its_precondition() {
        let store = first_write(Fault::Late { calls: u64::MAX });
        store.create(&name(), Bytes::from_static(b"late")).await.unwrap_err();
        store.create(&name(), Bytes::from_static(b"first")).await.unwrap();
        store.land().await;
        assert_eq!(store.get(&name(), 9).await.unwrap().unwrap().1, "first");
    }

    #[tokio::test]
    async fn a_kept_write_lands_when_its_keeper_applies_it() {
        let (kept, received) = std::sync::mpsc::channel();
        let store = first_write(Fault::Kept).keeping(move |write| kept.send(write).unwrap());
        store.create(&name(), Bytes::from_static(b"1")).await.unwrap_err();
        assert_eq!(store.head(&name()).await.unwrap(), None);
        received.recv().unwrap().apply(store.inner()).await.unwrap();
        assert!(store.head(&name()).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_watcher_hears_of_a_read_once_it_was_made() {
        let (made, order) = std::sync::mpsc::channel();
        let told = made.clone();
        let within = FaultyStore::new(MemoryStore::new(), |_| None)
            .watching(move |object| made.send(format!("{object} was read")).unwrap());
        let store = FaultyStore::new(within, |_| None)
            .watching(move |object| told.send(format!("{object} was told")).unwrap());
        store.head(&name()).await.unwrap();
        drop(store);
        assert_eq!(order.iter().collect::<Vec<_>>(), ["state.json was read", "state.json was told"]);
    }

    #[test]
    fn a_seed_goes_wrong_in_every_way_at_its_rate_and_the_same_each_time() {
        let faults = |seed| {
            let plan = seeded(seed, 10);
            (0..10_000)
                .map(|number| plan(&Call { number, action: Action::Create, object: "a" }))
                .collect::<Vec<_>>()
        };
        assert_eq!(faults(7), faults(7));
        assert_ne!(faults(7), faults(8));
        let hits: Vec<_> = faults(7).into_iter().flatten().collect();
        assert!((800..1_200).contains(&hits.len()), "{} of 10000", hits.len());
        for way in [Fault::Before, Fault::After, Fault::Late { calls: 1 }] {
            assert!(
                hits.iter().any(|hit| mem::discriminant(hit) == mem::discriminant(&way)),
                "never {way:?}"
            );
        }
    }
}
