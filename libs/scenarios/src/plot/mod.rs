//! A course as a picture: what was allowed, aimed at, sent and refused over time.
//!
//! Owns what is drawn; `svg` owns how a shape is written, `scale` where a value lies.

mod scale;
mod svg;

use penstock_simulator::rate::{Course, JobCourse};

use self::{
    scale::{Scale, worded},
    svg::{Anchor, Drawing},
};

/// Size of a picture, in pixels; it may be scaled.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 84.0;
const RATE_HEIGHT: f64 = 260.0;
const STRIP_HEIGHT: f64 = 72.0;
const GAP: f64 = 52.0;
const BOTTOM: f64 = 44.0;

/// The most points of a line: about one for two pixels.
const POINTS: usize = 432;

/// Colours that differ in lightness too, on white.
const INK: &str = "#1f2937";
const FAINT: &str = "#6b7280";
const GRID: &str = "#e5e7eb";
const LIMIT: &str = "#9ca3af";
const LIMIT_AREA: &str = "#f3f4f6";
const TARGET: &str = "#1d4ed8";
const REFUSED: &str = "#dc2626";
const WAITING: &str = "#d97706";
const JOBS: [&str; 5] = ["#0d9488", "#7c3aed", "#d97706", "#0369a1", "#be185d"];

/// Draws a course as an SVG document under a title and a line of words below it.
pub fn plot(course: &Course, title: &str, subtitle: &str) -> String {
    let seconds = course.requests_limit.len();
    let end = f64::from(u32::try_from(seconds).unwrap_or(u32::MAX));
    let time = Scale::new(0.0, end, LEFT, WIDTH - RIGHT);
    let bins = Bins::new(seconds);
    let strip_top = TOP + RATE_HEIGHT + GAP;
    let height = strip_top + STRIP_HEIGHT + BOTTOM;
    let mut drawing = Drawing::new(WIDTH, height);
    // A long title is written smaller, so that it stays on the page.
    let size = (1_650.0 / amount(title.chars().count().max(1))).min(18.0).round();
    drawing.text(LEFT - 48.0, 30.0, Anchor::Start, size, INK, title);
    drawing.text(LEFT - 48.0, 52.0, Anchor::Start, 13.0, FAINT, subtitle);
    rates(&mut drawing, course, time, &bins);
    if course.slots.is_some() {
        places(&mut drawing, course, time, &bins, strip_top);
    } else {
        refusals(&mut drawing, course, time, &bins, strip_top);
    }
    minutes(&mut drawing, time, end, [TOP, TOP + RATE_HEIGHT], false);
    minutes(&mut drawing, time, end, [strip_top, strip_top + STRIP_HEIGHT], true);
    drawing.finish()
}

/// Seconds joined so that each point has room.
struct Bins {
    seconds: usize,
    width: usize,
}

impl Bins {
    fn new(seconds: usize) -> Self {
        Self { seconds, width: seconds.div_ceil(POINTS).max(1) }
    }

    /// The middle of each bin in seconds, and the mean of the values in it.
    fn means<'a>(&self, value: impl Fn(usize) -> f64 + 'a) -> impl Iterator<Item = (f64, f64)> + 'a {
        let (seconds, width) = (self.seconds, self.width);
        (0..seconds / width).map(move |bin| {
            let span = bin * width..(bin + 1) * width;
            let middle = amount(span.start) + amount(width) / 2.0;
            (middle, span.map(&value).sum::<f64>() / amount(width))
        })
    }
}

/// The upper part: requests per minute.
fn rates(drawing: &mut Drawing, course: &Course, time: Scale, bins: &Bins) {
    let admitted: Vec<Vec<f64>> =
        course.jobs.iter().map(|job| job.admitted().map(f64::from).collect()).collect();
    let per_minute =
        |job: usize, second: usize| 60.0 * admitted[job].get(second).copied().unwrap_or_default();
    let limits = || course.requests_limit.iter().copied().flatten();
    let highest_rate = (0..course.jobs.len())
        .flat_map(|job| bins.means(move |second| per_minute(job, second)))
        .map(|(_, rate)| rate);
    let highest_limit = limits().fold(0.0, f64::max);
    // A short burst may be cut off, the limit may not.
    let most_shown = if highest_limit > 0.0 { 1.8 * highest_limit } else { f64::INFINITY };
    let highest = highest_rate.fold(1.15 * highest_limit, f64::max).min(most_shown).max(1.0);
    let rate = Scale::rounded(highest, TOP + RATE_HEIGHT, TOP);
    grid(drawing, rate, time, "requests per minute");
    let mut legend = Legend::new();
    if highest_limit > 0.0 {
        let points: Vec<_> = course
            .requests_limit
            .iter()
            .enumerate()
            .map(|(second, limit)| (time.at(amount(second)), rate.at(limit.unwrap_or_default())))
            .collect();
        drawing.area(&points, rate.at(0.0), LIMIT_AREA);
        drawing.line(&points, LIMIT, 1.5);
        legend.entry(drawing, LIMIT, "limit");
    }
    if let [job] = course.jobs.as_slice()
        && job.target.iter().any(Option::is_some)
    {
        drawing.line(&targets(job, time, rate, bins), TARGET, 1.25);
        legend.entry(drawing, TARGET, "target");
    }
    let several = course.jobs.len() > 1;
    for (index, job) in course.jobs.iter().enumerate() {
        let colour = JOBS[index % JOBS.len()];
        let began = usize::try_from(job.began_at.as_secs()).unwrap_or(usize::MAX);
        let points: Vec<_> = bins
            .means(|second| per_minute(index, second))
            .filter(|(middle, _)| *middle >= amount(began))
            .map(|(middle, value)| (time.at(middle), rate.at(value.min(rate.last()))))
            .collect();
        drawing.line(&points, colour, 1.25);
        let name = if several { format!("admitted, job {}", index + 1) } else { "admitted".to_owned() };
        if index < JOBS.len() {
            legend.entry(drawing, colour, &name);
        }
    }
}

fn targets(job: &JobCourse, time: Scale, rate: Scale, bins: &Bins) -> Vec<(f64, f64)> {
    let known = job.target.iter().enumerate().step_by(bins.width);
    known
        .filter_map(|(second, target)| {
            Some((time.at(amount(second)), rate.at(target.as_ref()?.min(rate.last()))))
        })
        .collect()
}

/// The lower part where requests are refused: how many, of all jobs.
fn refusals(drawing: &mut Drawing, course: &Course, time: Scale, bins: &Bins, top: f64) {
    let refused = |second: usize| {
        let counts = course.jobs.iter().filter_map(|job| job.refused.get(second));
        60.0 * f64::from(counts.sum::<u32>())
    };
    let bars: Vec<_> = bins.means(refused).collect();
    let highest = bars.iter().map(|(_, value)| *value).fold(1.0, f64::max);
    let scale = Scale::rounded(highest, top + STRIP_HEIGHT, top);
    grid(drawing, scale, time, "refused per minute");
    let width = (time.at(amount(bins.width)) - time.at(0.0)).max(1.0);
    for (middle, value) in bars.into_iter().filter(|(_, value)| *value > 0.0) {
        drawing.bar(time.at(middle) - width / 2.0, scale.at(value), width, scale.at(0.0), REFUSED);
    }
}

/// The lower part where a server saturates: how many requests are there, and how many of them wait.
fn places(drawing: &mut Drawing, course: &Course, time: Scale, bins: &Bins, top: f64) {
    let at = |counts: &[u32], second: usize| f64::from(counts.get(second).copied().unwrap_or_default());
    let slots = f64::from(course.slots.unwrap_or_default());
    let there: Vec<_> =
        bins.means(|second| at(&course.running, second) + at(&course.waiting, second)).collect();
    let highest = there.iter().map(|(_, value)| *value).fold(slots, f64::max);
    let scale = Scale::rounded(highest, top + STRIP_HEIGHT, top);
    grid(drawing, scale, time, "requests at the server, and its slots");
    let points = |values: Vec<(f64, f64)>| {
        values.into_iter().map(|(middle, value)| (time.at(middle), scale.at(value))).collect::<Vec<_>>()
    };
    drawing.line(&[(time.at(0.0), scale.at(slots)), (time.last_position(), scale.at(slots))], LIMIT, 1.5);
    drawing.line(&points(there), WAITING, 1.25);
}

/// Lines at round values, with their names at the left and that of the axis above.
fn grid(drawing: &mut Drawing, scale: Scale, time: Scale, name: &str) {
    for value in scale.ticks() {
        let y = scale.at(value);
        drawing.line(&[(time.at(0.0), y), (time.last_position(), y)], GRID, 1.0);
        drawing.text(LEFT - 8.0, y + 4.0, Anchor::End, 11.0, FAINT, &worded(value));
    }
    drawing.text(LEFT, scale.last_position() - 8.0, Anchor::Start, 11.0, FAINT, name);
}

/// The axis of time.
fn minutes(drawing: &mut Drawing, time: Scale, seconds: f64, [_, bottom]: [f64; 2], named: bool) {
    drawing.line(&[(time.at(0.0), bottom), (time.last_position(), bottom)], LIMIT, 1.0);
    let step = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0];
    let step = step.into_iter().find(|step| seconds / 60.0 / step <= 8.0).unwrap_or(240.0);
    let ticks = (0..).map(|tick| f64::from(tick) * step).take_while(|minute| minute * 60.0 <= seconds + 1.0);
    for minute in ticks {
        let x = time.at(minute * 60.0);
        drawing.line(&[(x, bottom), (x, bottom + 4.0)], LIMIT, 1.0);
        let unit = if minute == 0.0 { " min" } else { "" };
        drawing.text(x, bottom + 17.0, Anchor::Middle, 11.0, FAINT, &format!("{}{unit}", worded(minute)));
    }
    if named {
        drawing.text(time.last_position(), bottom + 34.0, Anchor::End, 11.0, FAINT, "time since the start");
    }
}

/// Which colour is what, from the right.
struct Legend {
    right: f64,
}

impl Legend {
    fn new() -> Self {
        Self { right: WIDTH - RIGHT }
    }

    fn entry(&mut self, drawing: &mut Drawing, colour: &str, name: &str) {
        let start = self.right - 6.8 * amount(name.chars().count());
        drawing.text(start, TOP - 10.0, Anchor::Start, 12.0, INK, name);
        drawing.line(&[(start - 22.0, TOP - 14.0), (start - 6.0, TOP - 14.0)], colour, 3.0);
        self.right = start - 38.0;
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds and pixels stay far below 2^53")]
fn amount(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Rule, named};

    fn course(name: &str) -> Course {
        let scenario = named(name).unwrap().unwrap();
        let case = Case { enforcement: scenario.enforcements[0], seed: 1 };
        scenario.judge(Rule::Aimd, case).course
    }

    #[test]
    fn a_picture_shows_the_limit_what_was_admitted_and_what_was_refused() {
        let picture = plot(&course("steady-500"), "steady & quiet", "");
        for part in
            ["steady &amp; quiet", LIMIT_AREA, JOBS[0], TARGET, REFUSED, "requests per minute", "60</text>"]
        {
            assert!(picture.contains(part), "{part} is missing");
        }
        assert!(picture.len() < 60_000, "{} bytes", picture.len());
        assert!(!picture.contains("NaN"));
    }

    #[test]
    fn nothing_that_happened_is_a_picture_too() {
        assert!(plot(&Course::default(), "", "").ends_with("</svg>\n"));
    }
}
