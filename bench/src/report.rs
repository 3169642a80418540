//! How rows are shown: each when it is measured, and all of them as a table at the end.

use std::io::{self, Write};

use serde::Serialize;

use crate::{
    machine::Machine,
    row::{Row, Standing},
};

/// Shows rows on stdout.
#[derive(Debug)]
pub(crate) struct Report {
    json: bool,
    rows: Vec<Row>,
}

/// One line of the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Machine(&'a Machine),
    Row {
        #[serde(flatten)]
        row: &'a Row,
        standing: Standing,
    },
}

impl Report {
    /// Begins with the machine.
    pub(crate) fn begin(json: bool) -> io::Result<Self> {
        let machine = Machine::look();
        let mut stdout = io::stdout().lock();
        if json {
            writeln!(stdout, "{}", serde_json::to_string(&Line::Machine(&machine))?)?;
        } else {
            writeln!(stdout, "{machine}")?;
        }
        Ok(Self { json, rows: Vec::new() })
    }

    /// One more row.
    pub(crate) fn add(&mut self, row: Row) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if self.json {
            let line = Line::Row { row: &row, standing: row.standing() };
            writeln!(stdout, "{}", serde_json::to_string(&line)?)?;
        } else {
            writeln!(stdout, "\n{}\n  {}", row.measure, figure(&row))?;
            for detail in &row.details {
                writeln!(stdout, "  {detail}")?;
            }
            for command in &row.commands {
                writeln!(stdout, "  $ {command}")?;
            }
        }
        stdout.flush()?;
        self.rows.push(row);
        Ok(())
    }

    /// Ends with all rows in one Markdown table.
    pub(crate) fn end(self) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "\n| measure | floor | aim | measured | measured / floor | reached |")?;
        writeln!(stdout, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let floor = row.floor.words(row.unit);
            let aim = row.aim.map_or_else(String::new, |aim| aim.words(row.unit));
            let reached = match row.standing() {
                Standing::Aim => "aim",
                Standing::Floor => "floor",
                Standing::Missed => "no",
            };
            let of_floor = row.of_floor().map_or_else(String::new, |times| format!("{times:.2}"));
            let (measure, figure) = (&row.measure, figure(row));
            writeln!(stdout, "| {measure} | {floor} | {aim} | {figure} | {of_floor} | {reached} |")?;
        }
        stdout.flush()
    }
}

/// The judged figure, with the spread behind it where there is one.
fn figure(row: &Row) -> String {
    let judged = row.unit.words(row.judged);
    let spread = row.figure;
    if spread.rounds == 1 {
        return judged;
    }
    let [least, median, most] = [spread.least, spread.median, spread.most].map(|value| row.unit.words(value));
    format!("{judged} ({least} / {median} / {most} in {} rounds)", spread.rounds)
}
