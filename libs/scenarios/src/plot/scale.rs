//! Where a value lies in a picture.

/// A straight scale from values to pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// Puts `from` at `start` and `to` at `end`.
    pub(super) fn new(from: f64, to: f64, start: f64, end: f64) -> Self {
        // A scale without extent would divide by zero.
        Self { from, to: to.max(from + f64::MIN_POSITIVE.sqrt()), start, end }
    }

    /// From zero to the next round value above `most`.
    pub(super) fn rounded(most: f64, start: f64, end: f64) -> Self {
        let step = step(most);
        Self::new(0.0, (most / step).ceil() * step, start, end)
    }

    pub(super) fn at(self, value: f64) -> f64 {
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// The last value.
    pub(super) fn last(self) -> f64 {
        self.to
    }

    /// Where the last value lies.
    pub(super) fn last_position(self) -> f64 {
        self.end
    }

    /// Round values from the first to the last.
    pub(super) fn ticks(self) -> impl Iterator<Item = f64> {
        let step = step(self.to);
        (0..).map(move |tick| f64::from(tick) * step).take_while(move |value| *value <= self.to * 1.000_1)
    }
}

/// The distance of round values of which about four lie between 0 and `most`.
fn step(most: f64) -> f64 {
    let magnitude = 10_f64.powf((most / 4.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * magnitude);
    steps.into_iter().find(|step| most / step <= 4.5).unwrap_or(10.0 * magnitude)
}

/// A value with separators, and with as many decimals as it has.
pub(super) fn worded(value: f64) -> String {
    let text = format!("{value}");
    let (whole, decimals) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    decimals.map_or(grouped.clone(), |decimals| format!("{grouped}.{decimals}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounded_scale_ends_above_its_values_and_has_few_ticks() {
        for most in [1.0, 7.0, 11.0, 575.0, 34_500.0] {
            let scale = Scale::rounded(most, 100.0, 0.0);
            let ticks = scale.ticks().count();
            assert!(scale.last() >= most && scale.last() <= 1.5 * most, "{most} ends at {}", scale.last());
            assert!((3..=7).contains(&ticks), "{most} has {ticks} ticks");
        }
    }

    #[test]
    fn values_are_set_apart_by_thousands() {
        assert_eq!(["500", "30,000", "0.25"], [500.0, 30_000.0, 0.25].map(worded));
    }
}
