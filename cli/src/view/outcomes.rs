//! What became of the lines, in words. Pure.

use penstock_job::state::Outcomes;

use super::quantity::grouped;

/// Each outcome with its word, in the order in which they are told.
pub(crate) fn named(outcomes: &Outcomes) -> [(&'static str, u64); 6] {
    let Outcomes { succeeded, failed, rejected, expired, cancelled, abandoned } = *outcomes;
    [
        ("succeeded", succeeded),
        ("failed", failed),
        ("rejected", rejected),
        ("expired", expired),
        ("cancelled", cancelled),
        ("abandoned", abandoned),
    ]
}

/// `succeeded 6,118 · failed 0 · rejected 2`. What did not occur is left out, but for success and failure.
pub(crate) fn counts(outcomes: &Outcomes) -> String {
    let told = named(outcomes).into_iter().enumerate().filter(|(index, (_, count))| *index < 2 || *count > 0);
    told.map(|(_, (word, count))| format!("{word} {}", grouped(count))).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_that_did_not_occur_are_left_out() {
        let outcomes = Outcomes { succeeded: 6_118, rejected: 2, ..Outcomes::default() };
        assert_eq!(counts(&outcomes), "succeeded 6,118 · failed 0 · rejected 2");
    }
}
