//! probe
use std::collections::VecDeque;
use super::charged::Charged;
use super::slots::Slots;
use crate::event::Cost;

#[derive(Clone, Debug)]
pub(super) struct Ways {
    charged: [Charged; 3],
    seen: VecDeque<[f64; 4]>,
}

impl Ways {
    pub(super) fn new() -> Self {
        Self { charged: std::array::from_fn(|_| Charged::new(Slots::new())), seen: VecDeque::new() }
    }
    pub(super) fn sent(&mut self, now: f64, cost: Cost) {
        let (i, m) = (f64::from(cost.input_tokens), f64::from(cost.output_tokens));
        for (c, x) in self.charged.iter_mut().zip([i + m, i + m, i]) { c.add(now, x); }
    }
    pub(super) fn succeeded(&mut self, now: f64, cost: Cost, out: f64) {
        let m = f64::from(cost.output_tokens);
        self.charged[1].add(now, 1e-9); self.charged[1].add(now, out - m);
        self.charged[2].add(now, out);
    }
    pub(super) fn refused(&mut self, now: f64, sent_at: f64, cost: Cost, first: bool) {
        let (i, m) = (f64::from(cost.input_tokens), f64::from(cost.output_tokens));
        for (c, x) in self.charged.iter_mut().zip([i + m, i + m, i]) { c.add(sent_at, -x); }
        if !first { return }
        let got: Vec<_> = self.charged.iter_mut().map(|c| c.exhausted(sent_at)).collect();
        if let [Some(a), Some(b), Some(c)] = got[..] {
            self.seen.push_back([a.seconds, a.rate * a.seconds, b.rate * a.seconds, c.rate * a.seconds]);
            if self.seen.len() > 8 { self.seen.pop_front(); }
            if std::env::var_os("TRACE").is_some() {
                let s: f64 = self.seen.iter().map(|x| x[0]).sum();
                let spread = |k: usize| {
                    let c: f64 = self.seen.iter().map(|x| x[k]).sum();
                    let l = c / s;
                    let e: f64 = self.seen.iter().map(|x| (x[k] - l * x[0]).abs()).sum();
                    (100.0 * e / c.max(1.0)).round()
                };
                eprintln!("{now:9.3} ways over {:.1} s: {:?}  spread {} {} {} of {}", a.seconds, [a.rate, b.rate, c.rate].map(|r| (r * 60.0) as i64), spread(1), spread(2), spread(3), self.seen.len());
            }
        }
    }
}
