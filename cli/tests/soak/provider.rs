//! How the provider double treats a run: at its best, or with latencies, refusals and faults drawn from the seed.

use fastrand::Rng;
use penstock_simulator::{
    Distribution, Enforcement, Fault, FaultRule, Latency, LimitSettings, LogSettings, Moment, OutputLength,
    ProviderSettings, Quota, RateLimitHeaders, RetryAfter, ShareOf, Slots, WhenFull,
};

/// A provider that answers at once.
pub(crate) fn calm(seed: u64) -> ProviderSettings {
    ProviderSettings {
        seed,
        latency: Latency { start_ms: Distribution::Uniform { low: 1.0, high: 10.0 }, ..Latency::default() },
        output_length: OutputLength { tokens: Distribution::Constant(12.0), ..OutputLength::default() },
        log: LogSettings { entries_in_memory: 1_000_000, file: None },
        ..ProviderSettings::default()
    }
}

/// A provider with a bad day.
pub(crate) fn rough(random: &mut Rng) -> ProviderSettings {
    let mut settings = calm(random.u64(..));
    let median = 1.0 + 40.0 * random.f64();
    settings.latency.start_ms = match random.u8(0..3) {
        0 => Distribution::Constant(median),
        1 => Distribution::Uniform { low: 0.0, high: 2.0 * median },
        _ => Distribution::LogNormal { median, sigma: 0.8 },
    };
    settings.limits = LimitSettings {
        requests: (random.u8(0..3) == 0).then(|| Quota {
            per_minute: random.u64(6_000..60_000),
            enforcement: random
                .choice([Enforcement::SecondBucket, Enforcement::MinuteBucket, Enforcement::FixedTenSeconds])
                .unwrap(),
        }),
        retry_after: random
            .choice([RetryAfter::None, RetryAfter::Seconds, RetryAfter::Milliseconds, RetryAfter::HttpDate])
            .unwrap(),
        headers: random
            .choice([RateLimitHeaders::None, RateLimitHeaders::Honest, RateLimitHeaders::Doubled])
            .unwrap(),
        ..LimitSettings::default()
    };
    if random.u8(0..6) == 0 {
        let when_full = random.choice([WhenFull::Queue, WhenFull::Refuse]).unwrap();
        settings.slots = Some(Slots { at_once: random.u32(2..20), when_full });
    }
    for _ in 0..random.usize(0..6) {
        let rule = rule(random);
        settings.faults.push(rule);
    }
    settings
}

fn rule(random: &mut Rng) -> FaultRule {
    let (fault, most, of) = match random.u8(0..15) {
        0 => (Fault::RateLimited { wait_ms: random.u64(1..300) }, 0.05, ShareOf::Attempts),
        1 => (Fault::InternalError, 0.3, ShareOf::Attempts),
        2 => (Fault::Unavailable, 0.3, ShareOf::Attempts),
        3 => (Fault::BadGateway, 0.3, ShareOf::Attempts),
        4 => (Fault::Overloaded, 0.2, ShareOf::Attempts),
        5 => (Fault::SlowDown, 0.02, ShareOf::Attempts),
        6 => (Fault::Hang, 0.01, ShareOf::Attempts),
        7 => (Fault::TruncatedBody, 0.2, ShareOf::Attempts),
        8 => (Fault::DropBeforeAnswer, 0.2, ShareOf::Attempts),
        9 => (Fault::DropInBody, 0.2, ShareOf::Attempts),
        10 => (Fault::NotJson, 0.1, ShareOf::Attempts),
        11 => (Fault::SlowBody { total_ms: random.u64(10..300) }, 0.1, ShareOf::Attempts),
        12 => (Fault::OversizedBody { bytes: random.u64(10_000..2_000_000) }, 0.02, ShareOf::Attempts),
        13 => (Fault::FilteredAnswer, 0.2, ShareOf::Prompts),
        _ => (Fault::RejectedPrompt, 0.2, ShareOf::Prompts),
    };
    FaultRule {
        fault,
        share: most * random.f64(),
        of,
        from: Moment::default(),
        until: None,
        first_attempts: None,
        only_key: None,
    }
}
