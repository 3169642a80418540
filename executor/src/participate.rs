//! The loop in which a job takes part in shared state: tells the other jobs on its key what it sends, hears what they
//! do, starts from what earlier jobs have found out, and leaves what it has found out itself.
//!
//! Dispatch waits for none of it. Whatever goes wrong is said once, and the rate is learned alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use penstock_job::Identity;
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    dispatch::Pacing,
    provider::{Account, Provider},
    shared_state::{ModelRate, SharedState, SharedStateError},
};

/// How often what was found out is left for later jobs; a job that is killed loses no more.
const NOTE_EVERY: Duration = Duration::from_mins(1);
/// The least time between two rounds, however many models are new.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// How long a job that leaves may take to say so.
const FAREWELL: Duration = Duration::from_millis(500);
/// Hexadecimal digits of the identity by which jobs know one another.
const NAME_DIGITS: usize = 16;

/// How a job takes part in shared state.
#[derive(Debug, Clone)]
pub struct Participation {
    /// The state that it shares.
    pub state: Arc<dyn SharedState>,
    /// How often it tells what it sends.
    pub every: Duration,
}

/// One job that takes part.
#[derive(Debug)]
pub(crate) struct Participant {
    participation: Participation,
    /// What the others call this job.
    name: String,
    provider: Provider,
    pacing: Arc<Pacing>,
    /// Models that earlier jobs were asked about.
    recalled: BTreeSet<Arc<str>>,
    /// Accounts at which this job counts.
    told: BTreeSet<Account>,
    noted: Instant,
    has_warned: bool,
}

impl Participant {
    pub(crate) fn new(
        participation: Participation,
        identity: &Identity,
        provider: Provider,
        pacing: Arc<Pacing>,
    ) -> Self {
        Self {
            participation,
            name: identity.prefix(NAME_DIGITS).to_owned(),
            provider,
            pacing,
            recalled: BTreeSet::new(),
            told: BTreeSet::new(),
            noted: Instant::now(),
            has_warned: false,
        }
    }

    /// Takes part until `done`.
    pub(crate) async fn take_part(mut self, done: CancellationToken) {
        let mut models = self.pacing.model_count();
        let mut ticks = tokio::time::interval(self.participation.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                // A newcomer takes its part at once. The count outlives this loop, so it cannot be closed.
                _ = models.changed() => {}
                () = done.cancelled() => break,
            }
            let round = async {
                self.round().await;
                tokio::time::sleep(LEAST_PAUSE).await;
            };
            tokio::select! {
                () = round => {}
                () = done.cancelled() => break,
            }
        }
        if timeout(FAREWELL, self.leave()).await.is_err() {
            tracing::debug!("shared state did not hear in time that this job has left");
        }
    }

    async fn round(&mut self) {
        for (account, rates) in self.by_account(self.pacing.rates(), |rate| &rate.model) {
            self.recall(&account, &rates).await;
            self.exchange(account, &rates).await;
        }
        if self.noted.elapsed() >= NOTE_EVERY {
            self.note().await;
        }
    }

    /// Asks what earlier jobs have found out about models that are new here.
    async fn recall(&mut self, account: &Account, rates: &[ModelRate]) {
        for ModelRate { model, .. } in rates {
            if !self.recalled.insert(Arc::clone(model)) {
                continue;
            }
            match self.participation.state.remembered(account, model).await {
                Ok(found) if found.is_empty() => {}
                Ok(found) => self.pacing.recall(model, &found),
                Err(error) => self.warn(&error),
            }
        }
    }

    async fn exchange(&mut self, account: Account, rates: &[ModelRate]) {
        let Participation { state, every } = &self.participation;
        // Also when nothing is heard: it may have been written all the same.
        self.told.insert(account.clone());
        match state.exchange(&account, &self.name, rates, *every).await {
            Ok(heard) => {
                for (ModelRate { model, .. }, shared) in rates.iter().zip(heard) {
                    self.pacing.share(model, shared);
                }
            }
            Err(error) => self.warn(&error),
        }
    }

    async fn note(&mut self) {
        self.noted = Instant::now();
        for (account, found) in self.by_account(self.pacing.found(), |limits| &limits.model) {
            if let Err(error) = self.participation.state.remember(&account, &found).await {
                self.warn(&error);
            }
        }
    }

    async fn leave(&mut self) {
        self.note().await;
        for account in std::mem::take(&mut self.told) {
            if let Err(error) = self.participation.state.leave(&account, &self.name).await {
                self.warn(&error);
            }
        }
    }

    /// What is known of models, by whose limits they use up.
    fn by_account<T>(&self, known: Vec<T>, model: impl Fn(&T) -> &str) -> BTreeMap<Account, Vec<T>> {
        let mut accounts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for known in known {
            if let Some(account) = self.provider.account(model(&known)) {
                accounts.entry(account).or_default().push(known);
            }
        }
        accounts
    }

    fn warn(&mut self, error: &SharedStateError) {
        if self.has_warned {
            tracing::debug!("failed to {error}");
        } else {
            self.has_warned = true;
            tracing::warn!("failed to {error}; the rate is learned without the other jobs on this key");
        }
    }
}
