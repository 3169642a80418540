//! Shapes as SVG text.

use std::fmt::Write;

/// A document that is being written.
#[derive(Debug)]
pub(super) struct Drawing {
    text: String,
}

/// Which end of a text stands at its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Drawing {
    /// A white page.
    pub(super) fn new(width: f64, height: f64) -> Self {
        let mut drawing = Self { text: String::new() };
        drawing.shape(format_args!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif"><rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>"##
        ));
        drawing
    }

    /// Points joined by straight lines.
    pub(super) fn line(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        if points.len() > 1 {
            let path = path(points);
            self.shape(format_args!(
                r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>"#
            ));
        }
    }

    /// What lies between points and a level.
    pub(super) fn area(&mut self, points: &[(f64, f64)], level: f64, colour: &str) {
        if let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) {
            let path = path(points);
            self.shape(format_args!(
                r#"<path d="{path}L{last:.1} {level:.1}L{first:.1} {level:.1}Z" fill="{colour}"/>"#
            ));
        }
    }

    /// A bar from `top` down to `bottom`.
    pub(super) fn bar(&mut self, left: f64, top: f64, width: f64, bottom: f64, colour: &str) {
        let height = bottom - top;
        self.shape(format_args!(
            r#"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
        ));
    }

    /// A line of words with its base at `y`.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, size: f64, colour: &str, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        self.shape(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{words}</text>"#
        ));
    }

    /// The whole document.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn shape(&mut self, shape: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{shape}").expect("invariant: a string takes any text");
    }
}

/// A path through points. A point in the middle of a level stretch is left out.
fn path(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    let level = |one: f64, other: f64| (one - other).abs() < 0.05;
    for (index, &(x, y)) in points.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| points.get(before));
        let after = points.get(index + 1);
        if let (Some((_, before)), Some((_, after))) = (before, after)
            && level(*before, y)
            && level(y, *after)
        {
            continue;
        }
        let command = if index == 0 { 'M' } else { 'L' };
        write!(path, "{command}{x:.1} {y:.1}").expect("invariant: a string takes any text");
    }
    path
}
