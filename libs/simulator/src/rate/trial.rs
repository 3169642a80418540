//! Controllers meet a provider: the events, in the order of a virtual clock.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    num::NonZeroU32,
    time::Duration,
};

use super::{
    Answer, Controller, Course, Job, JobCourse, Outcome, Provider, Wish,
    batch::Running,
    provider::{Admitted, Request, Service},
};
use crate::limit::{LimitSettings, Quota};

/// A wake-up that is due at once again and again moves the clock by this much each time.
const SHORTEST_NAP: Duration = Duration::from_millis(1);

const SECOND: Duration = Duration::from_secs(1);

/// Everything that decides a course, apart from the controllers.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Against what.
    pub provider: Provider,
    /// For whom; one controller each.
    pub jobs: Vec<Job>,
    /// How many seconds it lasts; it ends earlier when every job has finished.
    pub seconds: u32,
    /// Every so many seconds the jobs learn each other's rate.
    pub exchange_seconds: Option<NonZeroU32>,
    /// Every so many seconds the jobs read how full the server is.
    pub saturation_seconds: Option<NonZeroU32>,
    /// Decides every draw.
    pub seed: u64,
}

impl Trial {
    /// The sustained limit of requests a minute, from each moment on at which it changes.
    pub fn requests_per_minute(&self) -> Vec<(Duration, f64)> {
        self.per_minute(|limits| limits.requests)
    }

    /// The sustained limit of tokens a minute likewise.
    pub fn tokens_per_minute(&self) -> Vec<(Duration, f64)> {
        self.per_minute(|limits| limits.tokens)
    }

    fn per_minute(&self, quota: impl Fn(LimitSettings) -> Option<Quota>) -> Vec<(Duration, f64)> {
        let starts =
            self.provider.steps.iter().map(|step| Duration::from_secs_f64(step.after_minutes * 60.0));
        let limits = [Duration::ZERO].into_iter().chain(starts).filter_map(|from| {
            let quota = quota(self.provider.limits_at(from))?;
            Some((from, quota.sustained_per_minute()))
        });
        limits.collect()
    }
}

/// Lets the jobs run, each under its controller.
///
/// # Panics
///
/// If there are not as many controllers as jobs.
pub fn run(trial: &Trial, controllers: &mut [Box<dyn Controller>]) -> Course {
    assert_eq!(trial.jobs.len(), controllers.len(), "each job needs a controller");
    let mut meeting = Meeting::new(trial, controllers);
    meeting.hold(Duration::from_secs(trial.seconds.into()));
    meeting.course
}

/// One job and how far it is.
struct Party<'a> {
    job: Job,
    controller: &'a mut Box<dyn Controller>,
    begins_at: Duration,
    begun: bool,
    wish: Wish,
    next_index: u64,
    /// How many are still to be sent, refused ones again.
    left: Option<u64>,
    in_flight: u32,
}

impl Party<'_> {
    /// When it sends or wakes next, unless something happens before.
    fn due(&self) -> Option<Duration> {
        if !self.begun {
            return Some(self.begins_at);
        }
        let may_send = self.left != Some(0) && self.in_flight < self.job.most_in_flight;
        let send_at = self.wish.send_at.filter(|_| may_send);
        [send_at, self.wish.wake_at].into_iter().flatten().min()
    }

    fn is_finished(&self) -> bool {
        self.left == Some(0) && self.in_flight == 0
    }
}

/// An answer on its way.
struct Arrival {
    at: Duration,
    /// Makes the order of equal times the order of sending.
    sequence: u64,
    party: usize,
    answer: Answer,
    admitted: Option<Admitted>,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

struct Meeting<'a> {
    trial: &'a Trial,
    service: Service,
    batch: Option<Running<(usize, Admitted)>>,
    parties: Vec<Party<'a>>,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    sequence: u64,
    now: Duration,
    next_second: Duration,
    course: Course,
}

impl<'a> Meeting<'a> {
    fn new(trial: &'a Trial, controllers: &'a mut [Box<dyn Controller>]) -> Self {
        let begins_at = |job: &Job| Duration::from_secs_f64(job.begins_after_minutes * 60.0);
        let parties = trial.jobs.iter().zip(controllers).map(|(job, controller)| Party {
            job: *job,
            controller,
            begins_at: begins_at(job),
            begun: false,
            wish: Wish::default(),
            next_index: 0,
            left: job.requests,
            in_flight: 0,
        });
        let jobs =
            trial.jobs.iter().map(|job| JobCourse { began_at: begins_at(job), ..JobCourse::default() });
        Self {
            trial,
            service: Service::new(&trial.provider, trial.seed),
            batch: trial.provider.batch.map(Running::new),
            parties: parties.collect(),
            arrivals: BinaryHeap::new(),
            sequence: 0,
            now: Duration::ZERO,
            next_second: Duration::ZERO,
            course: Course {
                slots: trial.provider.batch.map(|batch| batch.slots),
                jobs: jobs.collect(),
                ..Course::default()
            },
        }
    }

    /// Goes from event to event until the time is over or nothing is left to do.
    fn hold(&mut self, length: Duration) {
        while !self.parties.iter().all(Party::is_finished) {
            let arrival = self.arrivals.peek().map(|Reverse(arrival)| arrival.at);
            let finished = self.batch.as_ref().and_then(Running::due);
            let (party, party_due) = self.first_party();
            let due = [Some(self.next_second), arrival, finished, party_due].into_iter().flatten().min();
            let Some(due) = due.map(|due| due.max(self.now)).filter(|due| *due < length) else { break };
            self.now = due;
            // What has happened is told before anybody acts.
            if self.next_second <= due {
                self.begin_second();
            } else if finished.is_some_and(|at| at <= due) {
                self.finish_one();
            } else if arrival.is_some_and(|at| at <= due) {
                self.deliver();
            } else {
                self.act(party);
            }
        }
        self.sample();
        let seconds = self.now.as_secs_f64();
        let capacity = self.trial.provider.batch.map(super::Batch::capacity);
        if let (Some(batch), Some(capacity)) = (&mut self.batch, capacity) {
            self.course.work = Some(batch.done(self.now) / (capacity * seconds));
        }
    }

    /// The party that acts first, and when.
    fn first_party(&self) -> (usize, Option<Duration>) {
        let due = self.parties.iter().enumerate().filter_map(|(index, party)| Some((party.due()?, index)));
        due.min().map_or((0, None), |(due, index)| (index, Some(due)))
    }

    /// Begins, sends or wakes, whichever is due.
    fn act(&mut self, index: usize) {
        let now = self.now;
        let party = &mut self.parties[index];
        if !party.begun {
            party.begun = true;
            party.wish = party.controller.start(now);
        } else if party.wish.wake_at.is_some_and(|at| at <= now) {
            party.wish = party.controller.woken(now);
            party.wish.wake_at = party.wish.wake_at.map(|at| at.max(now + SHORTEST_NAP));
        } else {
            self.send(index);
        }
    }

    fn send(&mut self, index: usize) {
        let now = self.now;
        let party = &mut self.parties[index];
        let request = Request {
            index: party.next_index,
            input_tokens: self.service.draw_tokens(party.job.input_tokens),
            max_tokens: party.job.max_tokens,
        };
        party.next_index += 1;
        party.in_flight += 1;
        party.left = party.left.map(|left| left - 1);
        let in_flight = party.in_flight;
        let turned_away = self.receive(index, request);
        self.course.jobs[index].sent(turned_away.as_ref(), in_flight);
        let party = &mut self.parties[index];
        party.wish = party.controller.departed(now, request.index, request.input_tokens, request.max_tokens);
    }

    /// The provider decides. `Some`: the request is turned away, with this answer.
    fn receive(&mut self, party: usize, request: Request) -> Option<Answer> {
        let turned_away = match self.service.receive(self.now, request) {
            Err(refusal) => refusal,
            Ok(admitted) => {
                let Some(batch) = &mut self.batch else {
                    self.announce(self.now + admitted.work, party, admitted.answer, Some(admitted));
                    return None;
                };
                match batch.take(self.now, admitted.work.as_secs_f64(), (party, admitted)) {
                    Ok(()) => return None,
                    Err((_, admitted)) => Service::turn_away(&admitted),
                }
            }
        };
        let at = self.now + self.service.refusal_delay();
        self.announce(at, party, turned_away, None);
        Some(turned_away)
    }

    fn announce(&mut self, at: Duration, party: usize, answer: Answer, admitted: Option<Admitted>) {
        self.sequence += 1;
        self.arrivals.push(Reverse(Arrival { at, sequence: self.sequence, party, answer, admitted }));
    }

    /// The saturating server is through with a request.
    fn finish_one(&mut self) {
        let finished = self.batch.as_mut().and_then(|batch| batch.finish(self.now));
        if let Some((party, admitted)) = finished {
            self.announce(self.now, party, admitted.answer, Some(admitted));
        }
    }

    fn deliver(&mut self) {
        let Some(Reverse(Arrival { party: index, answer, admitted, .. })) = self.arrivals.pop() else {
            return;
        };
        if let Some(admitted) = admitted {
            self.service.complete(self.now, &admitted);
        }
        let (party, course) = (&mut self.parties[index], &mut self.course.jobs[index]);
        party.in_flight -= 1;
        if matches!(answer.outcome, Outcome::Refused { .. } | Outcome::Overloaded) {
            party.left = party.left.map(|left| left + 1);
        }
        course.answered(self.now, &answer);
        if party.is_finished() {
            course.finished_at = Some(self.now);
        }
        party.wish = party.controller.answered(self.now, &answer);
    }

    /// A second begins: limits step, what was is written down, jobs hear of one another and of the server.
    fn begin_second(&mut self) {
        let second = self.next_second.as_secs();
        if second > 0 {
            self.sample();
        }
        self.next_second += SECOND;
        self.service.adjust(self.now);
        for course in &mut self.course.jobs {
            course.begin_second();
        }
        let is_due =
            |every: Option<NonZeroU32>| every.is_some_and(|every| second.is_multiple_of(every.get().into()));
        if is_due(self.trial.exchange_seconds) {
            self.exchange();
        }
        if is_due(self.trial.saturation_seconds) {
            self.tell_saturation();
        }
    }

    /// Writes down the second that ends.
    fn sample(&mut self) {
        let (requests, tokens) = self.service.sustained();
        self.course.requests_limit.push(requests);
        self.course.tokens_limit.push(tokens);
        self.course.charged_tokens.push(self.service.charged_tokens());
        if let Some(batch) = &self.batch {
            self.course.running.push(batch.running());
            self.course.waiting.push(batch.waiting());
        }
        for (party, course) in self.parties.iter().zip(&mut self.course.jobs) {
            course.in_flight.push(party.in_flight);
            course.target.push(party.controller.per_minute().filter(|_| party.begun));
        }
    }

    /// Each job that has begun and not finished learns how many they are, and the mean of their rates.
    fn exchange(&mut self) {
        let now = self.now;
        let present = |party: &Party<'_>| party.begun && !party.is_finished();
        let rates: Vec<_> = self
            .parties
            .iter()
            .filter(|party| present(party))
            .map(|party| party.controller.shared_per_minute())
            .collect();
        let Some(jobs) = u32::try_from(rates.len()).ok().and_then(NonZeroU32::new) else { return };
        // Who has told no rate yet sends nothing yet.
        let sum = |rates: &[Option<f64>]| rates.iter().flatten().sum::<f64>() / f64::from(jobs.get());
        let mean = rates.iter().any(Option::is_some).then(|| sum(&rates));
        for party in self.parties.iter_mut().filter(|party| present(party)) {
            if let Some(wish) = party.controller.shared(now, jobs, mean) {
                party.wish = wish;
            }
        }
    }

    fn tell_saturation(&mut self) {
        let Some(batch) = &self.batch else { return };
        let (running, waiting) = (batch.running(), batch.waiting());
        for party in self.parties.iter_mut().filter(|party| party.begun) {
            if let Some(wish) = party.controller.saturation(self.now, running, waiting) {
                party.wish = wish;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use super::*;
    use crate::limit::{Enforcement, Quota};

    /// What controllers were told, in order.
    type Told = Rc<RefCell<Vec<String>>>;

    /// Sends every tenth of a second; before the first time it wants to be woken at once, again and again.
    struct Steady {
        told: Told,
        per_minute: Option<f64>,
    }

    impl Steady {
        fn wish(now: Duration) -> Wish {
            Wish { send_at: Some(now + Duration::from_millis(100)), wake_at: None }
        }
    }

    impl Controller for Steady {
        fn start(&mut self, now: Duration) -> Wish {
            Wish { send_at: Some(now), wake_at: Some(now) }
        }

        fn departed(&mut self, now: Duration, _index: u64, _input: u32, _max: u32) -> Wish {
            Self::wish(now)
        }

        fn answered(&mut self, now: Duration, answer: &Answer) -> Wish {
            self.told.borrow_mut().push(format!("{} {:?}", answer.index, answer.outcome));
            Self::wish(now)
        }

        fn woken(&mut self, now: Duration) -> Wish {
            Wish { send_at: Some(now), wake_at: Some(now) }
        }

        fn shared(&mut self, now: Duration, jobs: NonZeroU32, mean: Option<f64>) -> Option<Wish> {
            self.told.borrow_mut().push(format!("{} s: {jobs} jobs, mean {mean:?}", now.as_secs()));
            None
        }

        fn saturation(&mut self, now: Duration, running: u32, waiting: u32) -> Option<Wish> {
            self.told.borrow_mut().push(format!("{} s: {running} and {waiting}", now.as_secs()));
            None
        }

        fn shared_per_minute(&self) -> Option<f64> {
            self.per_minute
        }
    }

    fn trial(per_minute: u64, jobs: Vec<Job>) -> Trial {
        let mut provider = Provider::default();
        let quota = Quota { per_minute, enforcement: Enforcement::SecondBucket };
        provider.limits.requests = Some(quota);
        Trial { provider, jobs, seconds: 60, exchange_seconds: None, saturation_seconds: None, seed: 1 }
    }

    fn steady(trial: &Trial) -> (Course, Vec<String>) {
        let told = Told::default();
        let controller = |_| Box::new(Steady { told: Rc::clone(&told), per_minute: Some(600.0) }) as Box<_>;
        let mut controllers: Vec<Box<dyn Controller>> = trial.jobs.iter().map(controller).collect();
        let course = run(trial, &mut controllers);
        let told = told.take();
        (course, told)
    }

    fn sum(counts: &[u32]) -> u32 {
        counts.iter().sum()
    }

    #[test]
    fn a_job_with_an_end_sends_what_was_refused_again_and_gets_every_answer() {
        let job = Job { requests: Some(20), ..Job::default() };
        let (course, told) = steady(&trial(60, vec![job]));
        let job = &course.jobs[0];
        assert!(job.finished_at.is_some());
        assert_eq!(job.answers, 20);
        assert_eq!(sum(&job.sent), 20 + sum(&job.refused));
        assert!(sum(&job.refused) > 100, "{} refused", sum(&job.refused));
        assert_eq!(told.iter().filter(|told| told.contains("Succeeded")).count(), 20);
    }

    #[test]
    fn a_seed_decides_the_whole_course() {
        let mut trial = trial(300, vec![Job::default()]);
        let (course, told) = steady(&trial);
        assert_eq!(steady(&trial), (course.clone(), told));
        trial.seed = 2;
        assert_ne!(steady(&trial).0, course);
    }

    #[test]
    fn jobs_that_have_begun_learn_how_many_they_are_and_the_mean_of_their_rates() {
        let later = Job { begins_after_minutes: 0.5, ..Job::default() };
        let mut trial = trial(300, vec![Job::default(), later]);
        trial.exchange_seconds = NonZeroU32::new(20);
        let (_, mut told) = steady(&trial);
        told.retain(|told| told.contains("jobs"));
        assert_eq!(
            told,
            [
                "20 s: 1 jobs, mean Some(600.0)",
                "40 s: 2 jobs, mean Some(600.0)",
                "40 s: 2 jobs, mean Some(600.0)"
            ]
        );
    }

    #[test]
    fn a_saturating_server_tells_how_full_it_is() {
        let mut trial = trial(600, vec![Job::default()]);
        trial.provider.batch = Some(super::super::Batch { slots: 2, half_speed_at: None, queue: Some(3) });
        trial.saturation_seconds = NonZeroU32::new(30);
        let (course, told) = steady(&trial);
        assert!(told.contains(&"30 s: 2 and 3".to_owned()), "{told:?}");
        assert!(sum(&course.jobs[0].overloaded) > 100);
        assert!(course.work.is_some_and(|work| work > 0.95), "{:?}", course.work);
    }
}
