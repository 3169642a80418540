//! Why a budget admits no further request, and how that is told. Pure.

use penstock_job::{money::Sum, spec::Budget};

use super::Spent;

/// Why a budget admits no further request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It would take more tokens than there may be.
    Tokens,
    /// It would cost more than it may.
    Cost,
    /// Nobody can say what this model costs, and money is bounded.
    NoPrice(String),
}

impl Refusal {
    /// What of the budget is reached.
    pub(super) fn reached(&self, budget: &Budget) -> Option<Budget> {
        match self {
            Self::Tokens => Some(Budget { cost: None, ..*budget }),
            Self::Cost => Some(Budget { tokens: None, ..*budget }),
            Self::NoPrice(_) => None,
        }
    }

    /// How much of what is used up.
    pub(super) fn evidence(&self, spent: &Spent) -> String {
        const NEXT: &str = ", and another request would go past that";
        let Spent { tokens, cost, budget, .. } = spent;
        let most_cost = budget.cost.unwrap_or_default();
        let currency = cost.map(|cost| cost.currency).unwrap_or_default();
        match self {
            Self::Tokens => {
                let most = budget.tokens.map_or(0, std::num::NonZero::get);
                let next = if tokens.total() < most { NEXT } else { "" };
                format!("used {} of {} tokens{next}", grouped(tokens.total()), grouped(most))
            }
            Self::Cost => {
                let amount = cost.map(|cost| cost.amount).unwrap_or_default();
                let next = if amount < Sum::from(most_cost) { NEXT } else { "" };
                format!("used {currency} {} of {most_cost}{next}", amount.rounded())
            }
            Self::NoPrice(model) => {
                let used = cost.map_or_else(String::new, |cost| {
                    format!("; used {currency} {} of {most_cost}", cost.amount.rounded())
                });
                format!("the model `{model}` has no price, so nobody can say what its lines would cost{used}")
            }
        }
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| str::from_utf8(group).expect("invariant: digits are text"))
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use penstock_job::{
        money::{Cost, Currency},
        usage::Tokens,
    };

    use super::*;

    fn spent(tokens: u64, cost: Option<&str>) -> Spent {
        let cost = cost.map(|amount| Cost { amount: amount.parse().unwrap(), currency: Currency::default() });
        let budget = Budget { tokens: 1_000_000.try_into().ok(), cost: "12.50".parse().ok() };
        Spent { tokens: Tokens { input: tokens, ..Tokens::default() }, before: 0, cost, budget }
    }

    #[test]
    fn the_evidence_says_how_much_of_what_is_used() {
        for (refusal, spent, told) in [
            (Refusal::Tokens, spent(1_003_200, None), "used 1,003,200 of 1,000,000 tokens"),
            (
                Refusal::Tokens,
                spent(999_100, None),
                "used 999,100 of 1,000,000 tokens, and another request would go past that",
            ),
            (Refusal::Cost, spent(1, Some("12.503")), "used USD 12.51 of 12.50"),
            (
                Refusal::Cost,
                spent(1, Some("12.4999")),
                "used USD 12.50 of 12.50, and another request would go past that",
            ),
            (
                Refusal::NoPrice("x".to_owned()),
                spent(1, Some("1.00")),
                "the model `x` has no price, so nobody can say what its lines would cost; used USD 1.00 of 12.50",
            ),
        ] {
            assert_eq!(refusal.evidence(&spent), told);
        }
    }

    #[test]
    fn only_what_is_used_up_is_reached() {
        let budget = spent(0, None).budget;
        assert_eq!(Refusal::Tokens.reached(&budget), Some(Budget { tokens: budget.tokens, cost: None }));
        assert_eq!(Refusal::Cost.reached(&budget), Some(Budget { tokens: None, cost: budget.cost }));
        assert_eq!(Refusal::NoPrice("x".to_owned()).reached(&budget), None);
    }
}
