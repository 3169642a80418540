//! What holds for the documents that jobs share, whatever lies in the storage and whatever the clocks say.

use std::time::Duration;

use penstock_rate::{Dimension, Remembered, Sharing};
use proptest::prelude::*;

const MODELS: [&str; 3] = ["a", "b", ""];
const JOBS: [&str; 4] = ["1", "2", "3", "4"];

/// A number as it may stand in a document, as JSON.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        (0_u32..100_000).prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        prop::sample::select(vec!["1e300", "-0.0", "1e-300", "null", "\"7\"", "[]"]).prop_map(str::to_owned),
    ]
}

/// A document that follows its format but for its values.
fn document() -> impl Strategy<Value = Vec<u8>> {
    let models = prop::collection::vec((prop::sample::select(MODELS.to_vec()), number(), number()), 0..4);
    (models, any::<bool>()).prop_map(|(models, remembered)| {
        let models = models.iter().map(|(model, rpm, at)| {
            if remembered {
                format!(r#""{model}":{{"tokens":{{"per_minute":{rpm},"at_ms":{at}}}}}"#)
            } else {
                format!(r#""{model}":{{"1":{{"rpm":{rpm},"expires_ms":{at}}}}}"#)
            }
        });
        let format = if remembered { "rates/2" } else { "sharing/1" };
        let models = models.collect::<Vec<_>>().join(",");
        format!(r#"{{"format":"penstock.{format}","models":{{{models}}}}}"#).into_bytes()
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => document(), 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

/// A time that a job reads from its clock: near the present, or anything.
fn clock() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 1_000_000_u64..1_100_000, 1 => any::<u64>()]
}

fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![3 => 1.0..50_000.0, 1 => any::<f64>(), 1 => Just(f64::NAN)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_remembered_is_a_rate_that_somebody_can_have_found(
        bytes in bytes(),
        records in prop::collection::vec((prop::sample::select(MODELS.to_vec()), rate(), clock()), 0..20),
        now in clock(),
    ) {
        let mut remembered = Remembered::read(&bytes).unwrap_or_default();
        for (model, rpm, at) in records {
            remembered.record(model, &[(Dimension::Requests, rpm), (Dimension::InputTokens, 9.0 * rpm)].into(), at);
        }
        let written = Remembered::read(&remembered.write()).expect("it reads what it wrote");
        for model in MODELS {
            let found = remembered.found(model, now);
            prop_assert!(found.values().all(|rate| *rate > 0.0 && *rate <= 1e12), "{found:?}");
            prop_assert!(found.get(&Dimension::Requests).is_none_or(|rpm| *rpm <= 1e7), "{found:?}");
            prop_assert_eq!(written.found(model, now), found);
        }
    }

    #[test]
    fn what_jobs_learn_of_one_another_is_an_equal_part_of_what_they_told(
        bytes in bytes(),
        told in prop::collection::vec(
            (prop::sample::select(MODELS.to_vec()), prop::sample::select(JOBS.to_vec()), rate(), clock(), any::<u64>()),
            0..30,
        ),
        now in clock(),
    ) {
        let mut sharing = Sharing::read(&bytes).unwrap_or_default();
        for (model, job, rpm, at, every_ms) in &told {
            sharing.tell(model, job, *rpm, *at, Duration::from_millis(*every_ms));
        }
        prop_assert!(Sharing::read(&sharing.write()).is_ok_and(|written| written == sharing));
        for model in MODELS {
            let shared = sharing.of(model, "1", now);
            prop_assert!((1..=JOBS.len()).contains(&(shared.jobs.get() as usize)));
            prop_assert!(shared.mean_rpm.is_none_or(|mean| mean > 0.0 && mean <= 1e7), "{shared:?}");
        }
        for job in JOBS {
            sharing.leave(job);
        }
        prop_assert_eq!(sharing.of("a", "1", now).mean_rpm, None);
    }

    #[test]
    fn jobs_whose_clocks_differ_by_less_than_an_entry_lasts_hear_of_one_another(
        off_ms in -25_000_i64..25_000,
        ours in 1.0..1e6_f64,
        theirs in 1.0..1e6_f64,
    ) {
        let every = Duration::from_secs(10);
        let (here, there) = (1_000_000_000_u64, 1_000_000_000_u64.saturating_add_signed(off_ms));
        let mut sharing = Sharing::default();
        sharing.tell("a", "1", ours, here, every);
        sharing.tell("a", "2", theirs, there, every);
        for (job, now) in [("1", here), ("2", there)] {
            let shared = sharing.of("a", job, now);
            prop_assert_eq!(shared.jobs.get(), 2);
            prop_assert!(shared.mean_rpm.is_some_and(|mean| (mean * 2.0 - ours - theirs).abs() < 1e-3));
        }
    }
}
