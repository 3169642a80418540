//! The search against servers that saturate, in virtual time, each kept busy for an hour by an endless backlog.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use proptest::prelude::*;

use super::*;

/// A server that decodes every running request at one speed, which may fall with their number.
#[derive(Clone, Copy)]
struct Server {
    slots: u32,
    /// Tokens per second of a request that runs alone.
    speed: f64,
    /// The number of running requests at which the speed is half of that; none: it never falls.
    half_at: Option<f64>,
    /// Mean of the time that an answer spends on its way, which varies from one to the next, in seconds.
    way: f64,
    /// Requests that may wait; the next one is answered with a 503.
    queue: u32,
}

const FIXED_SLOTS: Server = Server { slots: 64, speed: 50.0, half_at: None, way: 0.0, queue: u32::MAX };
const BATCHING: Server = Server { slots: 256, speed: 50.0, half_at: Some(96.0), way: 0.0, queue: u32::MAX };

impl Server {
    fn speed(&self, running: u32) -> f64 {
        self.speed / self.half_at.map_or(1.0, |half_at| 1.0 + f64::from(running) / half_at)
    }

    fn capacity(&self) -> f64 {
        f64::from(self.slots) * self.speed(self.slots)
    }
}

/// What an hour came to.
#[derive(Debug)]
struct Hour {
    /// Tokens as a share of the capacity.
    work: f64,
    /// The mean queue as a share of the slots.
    queue: f64,
    /// 503s as a share of all requests.
    overloaded: f64,
    /// Seconds until nine tenths of the capacity were first in use.
    nine_tenths: f64,
}

/// Output lengths, lognormal with median 200 and sigma 1, cut at 2,048; drawn from a small generator.
struct Lengths(u64);

impl Lengths {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 32).unwrap()) / f64::from(u32::MAX)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 2,048")]
    fn draw(&mut self) -> u32 {
        let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        (200.0 * normal.exp()).clamp(1.0, 2_048.0) as u32
    }
}

/// A request at the server or on its way back.
#[derive(Clone, Copy)]
struct Request {
    sent_at: f64,
    tokens: u32,
}

/// A running request, ordered by the decoded tokens at which it ends.
struct Running(f64, Request);

impl PartialEq for Running {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Running {}
impl PartialOrd for Running {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Running {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap()
}

/// Keeps the server busy for an hour. It tells its queue every two seconds if it is asked.
fn hour(knee: &mut Knee, seed: u64, asked: bool, server: impl Fn(f64) -> Server) -> Hour {
    let mut lengths = Lengths(seed);
    let mut now = 0.0_f64;
    let mut in_flight = 0_u32;
    // Tokens that a request would have by now which ran from the beginning.
    let mut decoded = 0.0_f64;
    let mut running: BinaryHeap<Reverse<Running>> = BinaryHeap::new();
    let mut waiting: VecDeque<Request> = VecDeque::new();
    let mut on_the_way: BinaryHeap<Reverse<Running>> = BinaryHeap::new();
    let mut refused: VecDeque<Request> = VecDeque::new();
    let mut next_reading = 2.0_f64;
    let (mut work, mut capacity, mut queued) = (0.0_f64, 0.0_f64, 0.0_f64);
    let (mut answers, mut overloads) = (0_u32, 0_u32);
    let mut nine_tenths = f64::INFINITY;
    while now < 3_600.0 {
        let server = server(now);
        while count(running.len()) < server.slots
            && let Some(request) = waiting.pop_front()
        {
            running.push(Reverse(Running(decoded + f64::from(request.tokens), request)));
        }
        while in_flight < knee.limit() {
            in_flight += 1;
            let request = Request { sent_at: now, tokens: lengths.draw() };
            if count(running.len()) < server.slots {
                running.push(Reverse(Running(decoded + f64::from(request.tokens), request)));
            } else if count(waiting.len()) < server.queue {
                waiting.push_back(request);
            } else {
                refused.push_back(request);
            }
        }
        let busy = count(running.len());
        let each = server.speed(busy);
        if f64::from(busy) * each >= 0.9 * server.capacity() {
            nine_tenths = nine_tenths.min(now);
        }
        let finished = running.peek().map(|Reverse(Running(end, _))| now + (end - decoded) / each);
        let told = refused.front().map(|request| request.sent_at + 0.14);
        let reading = asked.then_some(next_reading);
        let arrived = on_the_way.peek().map(|Reverse(Running(end, _))| *end);
        let next = [finished, arrived, told, reading].into_iter().flatten().fold(f64::INFINITY, f64::min);
        let passed = next - now;
        decoded += passed * each;
        work += passed * each * f64::from(busy);
        capacity += passed * server.capacity();
        queued += passed * f64::from(count(waiting.len())) / f64::from(server.slots);
        now = next;
        if finished == Some(now) {
            let Reverse(Running(_, request)) = running.pop().unwrap();
            let arrival = now - lengths.uniform().max(1e-9).ln() * server.way;
            on_the_way.push(Reverse(Running(arrival, request)));
        } else if arrived == Some(now) {
            let Reverse(Running(_, request)) = on_the_way.pop().unwrap();
            knee.succeeded(at(now), at(request.sent_at), request.tokens, in_flight);
            in_flight -= 1;
            answers += 1;
        } else if told == Some(now) {
            let request = refused.pop_front().unwrap();
            in_flight -= 1;
            overloads += 1;
            knee.overloaded(at(now), at(request.sent_at), in_flight);
        } else {
            let reading = Saturation { running: busy, waiting: count(waiting.len()) };
            knee.saturation(at(now), reading, in_flight);
            next_reading += 2.0;
        }
    }
    Hour {
        work: work / capacity,
        queue: queued / 3_600.0,
        overloaded: f64::from(overloads) / f64::from(answers + overloads),
        nine_tenths,
    }
}

fn searching() -> Knee {
    Knee::searching(16_384)
}

/// What three hours with different requests came to at worst.
fn worst(asked: bool, server: Server) -> Hour {
    let hours = (1..=3).map(|seed| hour(&mut searching(), seed, asked, |_| server));
    let worse = |one: Hour, other: Hour| Hour {
        work: one.work.min(other.work),
        queue: one.queue.max(other.queue),
        overloaded: one.overloaded.max(other.overloaded),
        nine_tenths: one.nine_tenths.max(other.nine_tenths),
    };
    hours.reduce(worse).unwrap()
}

#[test]
fn fixed_slots_are_filled_without_a_long_queue() {
    for slots in [64, 80, 90, 500] {
        let hour = worst(false, Server { slots, ..FIXED_SLOTS });
        assert!(hour.work > 0.97 && hour.queue < 0.25 && hour.nine_tenths < 90.0, "{slots}: {hour:?}");
    }
}

#[test]
fn batches_are_filled_as_far_as_that_yields_more() {
    let hour = worst(false, BATCHING);
    assert!(hour.work > 0.96 && hour.queue < 0.15 && hour.nine_tenths < 150.0, "{hour:?}");
}

#[test]
fn a_server_with_a_short_queue_is_hardly_ever_overloaded() {
    for server in [Server { queue: 16, ..FIXED_SLOTS }, Server { queue: 64, ..BATCHING }] {
        let hour = worst(false, server);
        assert!(hour.work > 0.97 && hour.queue < 0.2 && hour.overloaded < 0.0005, "{hour:?}");
    }
}

#[test]
fn who_is_told_the_queue_fills_the_server_at_once_and_keeps_the_queue_short() {
    let short = [Server { queue: 16, ..FIXED_SLOTS }, Server { queue: 64, ..BATCHING }];
    for server in [FIXED_SLOTS, BATCHING].into_iter().chain(short) {
        let hour = worst(true, server);
        assert!(hour.work > 0.99 && hour.queue < 0.1 && hour.nine_tenths < 20.0, "{hour:?}");
        assert!(hour.overloaded < 0.0005, "{hour:?}");
    }
}

#[test]
fn times_that_vary_by_themselves_cost_some_of_it_only() {
    for server in [Server { way: 2.0, ..FIXED_SLOTS }, Server { way: 2.0, ..BATCHING }] {
        let hour = worst(false, server);
        assert!(hour.work > 0.94 && hour.queue < 0.3, "{hour:?}");
    }
}

#[test]
fn a_server_that_shrinks_and_grows_is_followed() {
    let slots = |now: f64| {
        if now < 1_200.0 {
            64
        } else if now < 2_400.0 {
            32
        } else {
            96
        }
    };
    for asked in [false, true] {
        for seed in 1..=3 {
            let hour = hour(&mut searching(), seed, asked, |now| Server { slots: slots(now), ..FIXED_SLOTS });
            assert!(hour.work > if asked { 0.98 } else { 0.85 } && hour.queue < 0.5, "{hour:?}");
        }
    }
}

#[test]
fn where_the_readings_cease_the_search_takes_over() {
    let mut knee = Knee::unbounded(1_000);
    knee.saturation(at(0.0), Saturation { running: 200, waiting: 400 }, 600);
    assert_eq!((knee.limit(), knee.found()), (210, Some(210)));
    for second in 1..400 {
        for _ in 0..10 {
            knee.succeeded(at(f64::from(second)), at(f64::from(second) - 1.0), 100, knee.limit());
        }
    }
    // Each answer takes a second whatever is in flight: more is better.
    assert!(knee.limit() > 210, "{}", knee.limit());
}

#[test]
fn it_goes_on_where_it_stopped() {
    let mut knee = searching();
    hour(&mut knee, 1, false, |_| BATCHING);
    let mut resumed = Knee::resumed(Duration::ZERO, knee.found().unwrap(), 16_384);
    let again = hour(&mut resumed, 2, false, |_| BATCHING);
    assert!(again.nine_tenths < 60.0 && again.work > 0.98, "{again:?}");
    assert_eq!(Knee::unbounded(100).found(), None);
}

#[test]
fn a_server_that_was_taken_for_a_provider_is_searched_once_it_saturates() {
    for server in [FIXED_SLOTS, BATCHING] {
        let mut knee = Knee::unbounded(16_384);
        let hour = hour(&mut knee, 1, false, |_| server);
        assert!(hour.work > 0.97 && hour.queue < 2.5 && knee.found().is_some(), "{hour:?}");
    }
}

#[test]
fn without_a_search_only_overload_limits_it() {
    let mut knee = Knee::unbounded(1_000);
    for second in 1..5_000 {
        knee.succeeded(at(f64::from(second)), at(f64::from(second) - 1.0), 100, 1_000);
    }
    assert_eq!(knee.limit(), 1_000);
    // Each refusal closes its slot, answers open them again, up to 0.97 of what was too many for ten minutes.
    let refused_at = at(5_000.0);
    let change = knee.overloaded(refused_at, at(4_999.0), 199).unwrap();
    assert_eq!(change.to_string(), "at most 194 at once: the server was overloaded with 200");
    for in_flight in (150..199).rev() {
        knee.overloaded(refused_at, at(4_999.0), in_flight);
    }
    assert_eq!(knee.limit(), 150);
    for _ in 0..100 {
        knee.succeeded(at(5_001.0), refused_at, 100, knee.limit());
    }
    assert_eq!(knee.limit(), 194);
    for _ in 0..2_000 {
        knee.succeeded(at(5_600.0), refused_at, 100, knee.limit());
    }
    assert_eq!(knee.limit(), 1_000);
}

#[test]
fn what_is_held_back_elsewhere_teaches_nothing() {
    let mut knee = searching();
    for second in 0..10_000 {
        knee.succeeded(at(f64::from(second)), at(0.0), 100, 14);
    }
    assert_eq!(knee.limit(), START);
}

#[test]
fn a_queue_of_others_leaves_it_a_part() {
    let mut knee = Knee::resumed(Duration::ZERO, 100, 1_000);
    for _ in 0..100 {
        knee.saturation(at(1.0), Saturation { running: 200, waiting: 900 }, knee.limit());
    }
    assert_eq!(knee.limit(), START);
    let mut alone = Knee::unbounded(1_000);
    let change = alone.saturation(at(1.0), Saturation { running: 200, waiting: 800 }, 1_000).unwrap();
    assert_eq!(change.to_string(), "210 at once: 800 waited in the server's queue");
}

/// Something that happens to the search.
#[derive(Clone, Debug)]
enum Event {
    Succeeded { sent_at: u32, output_tokens: u32 },
    Overloaded { sent_at: u32 },
    Told(u32, u32),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (any::<u32>(), any::<u32>())
            .prop_map(|(sent_at, output_tokens)| Event::Succeeded { sent_at, output_tokens }),
        1 => any::<u32>().prop_map(|sent_at| Event::Overloaded { sent_at }),
        1 => (any::<u32>(), any::<u32>()).prop_map(|(running, waiting)| Event::Told(running, waiting)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_limit_is_between_one_and_the_most(
        most in any::<u32>(),
        found in prop::option::of(any::<u32>()),
        events in prop::collection::vec((0_u32..100_000, 0_u32..40, event()), 1..400),
    ) {
        let mut knee = found.map_or(Knee::searching(most), |found| Knee::resumed(Duration::ZERO, found, most));
        let mut now = Duration::ZERO;
        for (passed, off, event) in events {
            now += Duration::from_millis(passed.into());
            let in_flight = knee.limit().saturating_sub(off / 2).saturating_add(off % 2);
            match event {
                Event::Succeeded { sent_at, output_tokens } => {
                    knee.succeeded(now, Duration::from_millis(sent_at.into()), output_tokens, in_flight);
                }
                Event::Overloaded { sent_at } => {
                    knee.overloaded(now, Duration::from_millis(sent_at.into()), in_flight);
                }
                Event::Told(running, waiting) => {
                    knee.saturation(now, Saturation { running, waiting }, in_flight);
                }
            }
            prop_assert!((1..=most.max(1)).contains(&knee.limit()));
            prop_assert!(knee.found().is_some_and(|found| (1..=most.max(1)).contains(&found)));
        }
    }
}

#[test]
fn answers_that_may_have_waited_at_a_greater_number_are_not_measured_at_a_lesser_one() {
    let fallen = || Level { from_above: Some(FromAbove::default()), ..Level::at(100) };
    let mut level = fallen();
    assert!(
        (0..150).all(|_| level.is_foreign(at(10.0), at(10.0))),
        "those sent since then are short ones at first"
    );
    assert!((0..95).all(|_| level.is_foreign(at(20.0), at(9.0))));
    assert!(!level.is_foreign(at(21.0), at(21.0)) && !level.is_foreign(at(21.0), at(9.0)));

    let mut level = fallen();
    assert!((0..=600).all(|_| level.is_foreign(at(10.0), at(10.0))));
    assert!(!level.is_foreign(at(10.0), at(10.0)), "those before may never be answered");
}

#[test]
fn an_overload_after_which_one_goes_at_a_time_as_before_is_not_told_again() {
    let mut knee = Knee::unbounded(1_000);
    let told = knee.overloaded(at(1.0), at(0.0), 0).map(|change| change.to_string());
    assert_eq!(told.as_deref(), Some("at most 1 at once: the server was overloaded with 1"));
    for second in 2..10 {
        knee.succeeded(at(f64::from(second)), at(f64::from(second) - 0.5), 100, 1);
        assert_eq!(knee.overloaded(at(f64::from(second) + 0.5), at(f64::from(second)), 0), None);
    }
}
