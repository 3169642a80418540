//! The meter of a job: what its answers have taken over all of its runs, what those in flight are expected to take, and
//! whether its budget allows one more.
//!
//! An answer is counted when its record is appended, and expected to take its estimate until then, so nothing that was
//! sent is ever left out of the account.

mod refusal;

use std::sync::{Mutex, MutexGuard, PoisonError};

use penstock_job::{
    money::{Cost, Sum},
    spec::{Budget, JobSpec, Prices},
    usage::{Tokens, Usage},
};
use tokio::sync::watch;

pub(crate) use self::refusal::Refusal;

/// Tokens that one model took, by the name that requests have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paid {
    pub(crate) model: std::sync::Arc<str>,
    pub(crate) tokens: Tokens,
}

/// What a job has used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens of all its runs.
    pub tokens: Tokens,
    /// How many of them earlier runs had used up.
    pub before: u64,
    /// What they cost; `None` where a price is not known.
    pub cost: Option<Cost>,
    /// What it may use up.
    pub budget: Budget,
}

/// Why nothing more is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exhaustion {
    /// How much of what is used up.
    pub(crate) evidence: String,
    /// The budget that is reached; `None` where it is a price that is missing.
    pub(crate) reached: Option<Budget>,
}

/// What a request in flight is expected to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    tokens: u64,
    amount: Sum,
}

/// Counts what a job uses up.
#[derive(Debug)]
pub(crate) struct Meter {
    budget: Budget,
    prices: Option<Prices>,
    /// Tokens of earlier runs.
    before: u64,
    account: Mutex<Account>,
    exhausted: watch::Sender<Option<Exhaustion>>,
}

#[derive(Debug, Default)]
struct Account {
    used: Tokens,
    amount: Sum,
    /// A model that took tokens and has no price: what they cost is not in the amount.
    unpriced: Option<String>,
    in_flight: Expected,
}

impl Meter {
    /// A meter that goes on from what earlier runs have used up.
    pub(crate) fn new(spec: &JobSpec, usage: &Usage) -> Self {
        let mut account = Account { unpriced: usage.unpriced().map(str::to_owned), ..Account::default() };
        let prices = usage.prices.clone();
        for (model, tokens) in usage.models.iter() {
            account.used.add(tokens);
            if let Some(price) = price(prices.as_ref(), model) {
                account.amount = account.amount.plus(price.of(tokens));
            }
        }
        let before = account.used.total();
        let account = Mutex::new(account);
        let meter =
            Self { budget: spec.budget, prices, before, account, exhausted: watch::Sender::new(None) };
        if let Some(reached) = usage.reached {
            meter.exhaust(&if reached.cost.is_some() { Refusal::Cost } else { Refusal::Tokens });
        }
        meter
    }

    /// Whether anything is bounded.
    pub(crate) fn is_bounded(&self) -> bool {
        self.budget.is_set()
    }

    /// An answer was paid for, and its record is appended.
    pub(crate) fn count(&self, paid: &Paid) {
        let mut account = self.account();
        account.used.add(paid.tokens);
        match price(self.prices.as_ref(), &paid.model) {
            Some(price) => account.amount = account.amount.plus(price.of(paid.tokens)),
            None if paid.tokens.total() > 0 => {
                account.unpriced.get_or_insert_with(|| paid.model.to_string());
            }
            None => {}
        }
    }

    /// Whether one more request that takes so many tokens stays within the budget, together with those in flight.
    pub(crate) fn admit(&self, model: &str, tokens: Tokens) -> Result<(), Refusal> {
        let account = self.account();
        let expected = self.expected(model, tokens);
        if let Some(most) = self.budget.tokens {
            let after =
                account.used.total().saturating_add(account.in_flight.tokens).saturating_add(expected.tokens);
            if after > most.get() {
                return Err(Refusal::Tokens);
            }
        }
        if let Some(most) = self.budget.cost {
            let unpriced = account.unpriced.as_deref();
            let lacks_price = unpriced.or(price(self.prices.as_ref(), model).is_none().then_some(model));
            if let Some(model) = lacks_price {
                return Err(Refusal::NoPrice(model.to_owned()));
            }
            if account.amount.plus(account.in_flight.amount).plus(expected.amount) > most.into() {
                return Err(Refusal::Cost);
            }
        }
        Ok(())
    }

    /// A request that is expected to take so many tokens goes out.
    pub(crate) fn sent(&self, model: &str, tokens: Tokens) -> Expected {
        let expected = self.expected(model, tokens);
        let in_flight = &mut self.account().in_flight;
        in_flight.tokens = in_flight.tokens.saturating_add(expected.tokens);
        in_flight.amount = in_flight.amount.plus(expected.amount);
        expected
    }

    /// It has ended; what it took is counted.
    pub(crate) fn ended(&self, expected: Expected) {
        let in_flight = &mut self.account().in_flight;
        in_flight.tokens = in_flight.tokens.saturating_sub(expected.tokens);
        in_flight.amount = in_flight.amount.minus(expected.amount);
    }

    /// What is used up so far.
    pub(crate) fn spent(&self) -> Spent {
        let account = self.account();
        let cost = self.cost(&account);
        Spent { tokens: account.used, before: self.before, cost, budget: self.budget }
    }

    /// Nothing more is sent, since nothing is in flight and no line was admitted.
    pub(crate) fn exhaust(&self, refusal: &Refusal) {
        let evidence = refusal.evidence(&self.spent());
        self.exhausted.send_replace(Some(Exhaustion { evidence, reached: refusal.reached(&self.budget) }));
    }

    /// Whether nothing more is sent.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.borrow().is_some()
    }

    /// Completes when nothing more is sent.
    pub(crate) async fn exhausted(&self) -> Exhaustion {
        let mut exhausted = self.exhausted.subscribe();
        // The sender is `self`, so the channel stays open.
        let found = exhausted.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        match found {
            Some(exhaustion) => exhaustion,
            None => std::future::pending().await,
        }
    }

    fn expected(&self, model: &str, tokens: Tokens) -> Expected {
        let amount = price(self.prices.as_ref(), model).map_or(Sum::ZERO, |price| price.of(tokens));
        Expected { tokens: tokens.total(), amount }
    }

    fn cost(&self, account: &Account) -> Option<Cost> {
        let prices = self.prices.as_ref().filter(|_| account.unpriced.is_none())?;
        Some(Cost { amount: account.amount, currency: prices.currency })
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        // Nothing panics while it holds this lock, and plain values cannot be left half written.
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn price<'a>(prices: Option<&'a Prices>, model: &str) -> Option<&'a penstock_job::spec::Price> {
    prices?.models.get(model)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn spec(budget: &serde_json::Value) -> JobSpec {
        let spec = json!({
            "budget": budget,
            "prices": {"models": {"m": {"input_per_million_tokens": "1", "output_per_million_tokens": "10"}}},
        });
        serde_json::from_value(spec).unwrap()
    }

    fn meter(budget: &serde_json::Value) -> Meter {
        let spec = spec(budget);
        Meter::new(&spec, &Usage { prices: spec.prices.clone(), ..Usage::default() })
    }

    fn tokens(input: u64, output: u64) -> Tokens {
        Tokens { input, cached_input: 0, output }
    }

    fn paid(model: &str, tokens: Tokens) -> Paid {
        Paid { model: model.into(), tokens }
    }

    #[test]
    fn what_is_in_flight_counts_as_its_estimate_and_then_as_what_it_took() {
        let meter = meter(&json!({"tokens": 100}));
        assert_eq!(meter.admit("m", tokens(60, 40)), Ok(()));
        let expected = meter.sent("m", tokens(60, 0));
        assert_eq!(meter.admit("m", tokens(40, 1)), Err(Refusal::Tokens));
        assert_eq!(meter.admit("m", tokens(40, 0)), Ok(()));
        meter.count(&paid("m", tokens(10, 10)));
        meter.ended(expected);
        assert_eq!(meter.admit("m", tokens(40, 40)), Ok(()));
        assert_eq!(meter.admit("m", tokens(40, 41)), Err(Refusal::Tokens));
    }

    #[test]
    fn money_is_kept_to_the_last_token() {
        let meter = meter(&json!({"cost": "0.0001"}));
        meter.count(&paid("m", tokens(50, 4)));
        assert_eq!(meter.admit("m", tokens(10, 0)), Ok(()));
        assert_eq!(meter.admit("m", tokens(11, 0)), Err(Refusal::Cost));
        assert_eq!(meter.spent().cost.unwrap().amount.to_string(), "0.00009");
    }

    #[test]
    fn under_a_budget_in_money_no_model_without_a_price_is_asked() {
        let priced = meter(&json!({"cost": "1"}));
        assert_eq!(priced.admit("n", tokens(1, 0)), Err(Refusal::NoPrice("n".to_owned())));
        priced.count(&paid("n", tokens(1, 0)));
        assert_eq!(
            priced.admit("m", tokens(1, 0)),
            Err(Refusal::NoPrice("n".to_owned())),
            "it has cost something"
        );
        assert_eq!(priced.spent().cost, None);
        assert_eq!(meter(&json!({"tokens": 9})).admit("n", tokens(1, 0)), Ok(()), "tokens need no price");
    }

    #[tokio::test]
    async fn a_budget_that_an_earlier_run_has_reached_is_used_up_from_the_start() {
        let spec = spec(&json!({"tokens": 100}));
        let mut usage = Usage { reached: Some(spec.budget), prices: spec.prices.clone(), ..Usage::default() };
        usage.models.count("m", tokens(60, 50));
        let meter = Meter::new(&spec, &usage);
        let Exhaustion { evidence, reached } = meter.exhausted().await;
        assert_eq!((evidence.as_str(), reached), ("used 110 of 100 tokens", Some(spec.budget)));
    }

    proptest! {
        #[test]
        fn the_meter_and_the_stored_usage_arrive_at_one_cost(
            answers in prop::collection::vec((prop::bool::ANY, 0_u64..1 << 40, 0_u64..1 << 40), 0..30),
        ) {
            let meter = meter(&json!({}));
            let mut usage = Usage { prices: meter.prices.clone(), ..Usage::default() };
            for (is_priced, input, output) in answers {
                let model = if is_priced { "m" } else { "n" };
                meter.count(&paid(model, tokens(input, output)));
                usage.models.count(model, tokens(input, output));
            }
            prop_assert_eq!(meter.spent().cost, usage.cost());
            prop_assert_eq!(meter.spent().tokens, usage.models.total());
            let spec = JobSpec::default();
            let before = usage.models.total().total();
            prop_assert_eq!(Meter::new(&spec, &usage).spent(), Spent { before, ..meter.spent() });
        }
    }
}
