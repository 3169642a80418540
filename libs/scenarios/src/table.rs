//! Figures as text for people.

use std::fmt::Write;

use penstock_simulator::Enforcement;

use crate::{
    Figure, Held, Judged,
    figure::{mean, worded},
};

/// One row for each case, one for the mean, and one line for each range.
pub fn table(figures: &[Figure], judged: &[Judged], held: &[Held]) -> String {
    let names =
        |judged: &Judged| format!("{}, seed {}", enforcement_name(judged.case.enforcement), judged.case.seed);
    let mut rows = vec![row("", figures.iter().map(ToString::to_string))];
    rows.extend(judged.iter().map(|judged| {
        row(&names(judged), figures.iter().map(|figure| worded(*figure, figure.of(&judged.measures))))
    }));
    if judged.len() > 1 {
        let means = figures.iter().map(|figure| {
            let values: Vec<_> = judged.iter().map(|judged| figure.of(&judged.measures)).collect();
            worded(*figure, mean(&values))
        });
        rows.push(row("mean", means));
    }
    rows.extend(held.iter().map(|held| {
        let holds = if held.holds { "holds" } else { "DOES NOT HOLD" };
        format!("{:26}{}: {holds}", held.figure.to_string(), held.bounds.worded(held.figure))
    }));
    rows.join("\n")
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> String {
    let mut row = format!("{name:26}");
    for cell in cells {
        let _ = write!(row, "{cell:>23}");
    }
    row.trim_end().to_owned()
}

/// What people call a way of enforcing.
pub fn enforcement_name(enforcement: Enforcement) -> String {
    match enforcement {
        Enforcement::MinuteBucket => "minute bucket".to_owned(),
        Enforcement::SecondBucket => "second bucket".to_owned(),
        Enforcement::FixedMinute => "fixed minute".to_owned(),
        Enforcement::FixedTenSeconds => "fixed ten seconds".to_owned(),
        Enforcement::SlidingMinute => "sliding minute".to_owned(),
        Enforcement::Bucket { seconds } => format!("bucket of {seconds} s"),
        Enforcement::FixedWindow { seconds } => format!("fixed {seconds} s"),
        Enforcement::SlidingWindow { seconds } => format!("sliding {seconds} s"),
    }
}
