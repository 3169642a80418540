//! One row: what was measured, what is asked of it, and where it stands.

use serde::{Serialize, Serializer};

use crate::spread::Spread;

/// What is asked of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Of the other's figure.
    Share,
    /// Of a whole.
    Percent,
    /// Times the other's figure.
    Times,
    Lines,
    Mebibytes,
    MegabytesPerSecond,
    Seconds,
    Objects,
    Calls,
    Microseconds,
}

/// Where a figure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// The aim is reached; without one, the floor.
    Aim,
    /// The floor is reached.
    Floor,
    Missed,
}

/// A measured row.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) measure: String,
    pub(crate) floor: Bound,
    pub(crate) aim: Option<Bound>,
    pub(crate) unit: Unit,
    /// Over the rounds.
    pub(crate) figure: Spread,
    /// The one that is held against floor and aim.
    pub(crate) judged: f64,
    /// What the figure was made of.
    pub(crate) details: Vec<String>,
    /// The commands that made it.
    pub(crate) commands: Vec<String>,
}

impl Bound {
    fn limit(self) -> f64 {
        match self {
            Self::AtLeast(limit) | Self::AtMost(limit) => limit,
        }
    }

    fn admits(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(limit) => figure >= limit,
            Self::AtMost(limit) => figure <= limit,
        }
    }

    /// In words, with its unit.
    pub(crate) fn words(self, unit: Unit) -> String {
        let word = match self {
            Self::AtLeast(_) => "at least",
            Self::AtMost(_) => "at most",
        };
        format!("{word} {}", unit.words(self.limit()))
    }
}

impl Unit {
    /// A figure with this unit.
    pub(crate) fn words(self, figure: f64) -> String {
        match self {
            Self::Share => format!("{figure:.2}"),
            Self::Percent => format!("{figure:.2} %"),
            Self::Times => format!("{figure:.2} times"),
            Self::Lines => format!("{figure:.0} lines"),
            Self::Mebibytes => format!("{figure:.1} MiB"),
            Self::MegabytesPerSecond => format!("{figure:.0} MB/s"),
            Self::Seconds => format!("{figure:.3} s"),
            Self::Objects => format!("{} objects", grouped(figure)),
            Self::Calls => format!("{} calls", grouped(figure)),
            Self::Microseconds => format!("{figure:.3} us"),
        }
    }
}

impl Row {
    /// Where it stands.
    pub(crate) fn standing(&self) -> Standing {
        match (self.floor.admits(self.judged), self.aim) {
            (false, _) => Standing::Missed,
            (true, Some(aim)) if !aim.admits(self.judged) => Standing::Floor,
            (true, _) => Standing::Aim,
        }
    }

    /// The judged figure as a multiple of the floor; `None` where the floor is nothing.
    pub(crate) fn of_floor(&self) -> Option<f64> {
        let limit = self.floor.limit();
        (limit > 0.0).then(|| self.judged / limit)
    }
}

/// A whole number with commas between the thousands.
pub(crate) fn grouped(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([match self {
            Self::AtLeast(limit) => ("at_least", limit),
            Self::AtMost(limit) => ("at_most", limit),
        }])
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Share => "share",
            Self::Percent => "percent",
            Self::Times => "times",
            Self::Lines => "lines",
            Self::Mebibytes => "MiB",
            Self::MegabytesPerSecond => "MB/s",
            Self::Seconds => "s",
            Self::Objects => "objects",
            Self::Calls => "calls",
            Self::Microseconds => "us",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(floor: Bound, aim: Option<Bound>, judged: f64) -> Row {
        Row {
            measure: String::new(),
            floor,
            aim,
            unit: Unit::Share,
            figure: Spread::of([judged]),
            judged,
            details: Vec::new(),
            commands: Vec::new(),
        }
    }

    #[test]
    fn a_row_stands_where_its_figure_is_between_floor_and_aim() {
        let (floor, aim) = (Bound::AtLeast(0.6), Some(Bound::AtLeast(0.85)));
        let standings = [0.5, 0.6, 0.9].map(|judged| row(floor, aim, judged).standing());
        assert_eq!(standings, [Standing::Missed, Standing::Floor, Standing::Aim]);
        let (floor, aim) = (Bound::AtMost(2.0), Some(Bound::AtMost(0.3)));
        let standings = [2.1, 2.0, 0.3].map(|judged| row(floor, aim, judged).standing());
        assert_eq!(standings, [Standing::Missed, Standing::Floor, Standing::Aim]);
        assert_eq!(row(Bound::AtMost(16.0), None, 3.0).standing(), Standing::Aim);
    }

    #[test]
    fn thousands_are_parted() {
        assert_eq!([0.0, 999.0, 1_000.4, 1_234_567.0].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
