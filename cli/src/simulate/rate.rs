//! `penstock simulate rate`: a rule against a scenario in virtual time, with its figures and a picture.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use penstock_job::ExitCode;
use penstock_scenarios::{
    Case, Figure, Held, Judged, NAMES, Rule, Scenario, ScenarioError, enforcement_name, named, plot, table,
};
use penstock_simulator::rate::Measures;
use serde::Serialize;
use thiserror::Error;

use crate::{arguments::RateArguments, error::CommandError, lines::Lines};

/// Why a scenario was not run.
#[derive(Debug, Error)]
pub(crate) enum RateError {
    /// It is neither the name of one that comes with the program nor a file.
    #[error(
        "read the scenario {name}: {source}; name a file, or one of those that `penstock simulate rate` lists"
    )]
    File {
        /// What was asked for.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// It says nothing that can be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It names no way of enforcing its limits.
    #[error("run the scenario: its list of enforcements is empty; name one there, or with --enforcement")]
    NoCase,
    /// The picture cannot be written.
    #[error("write the picture {path}: {source}; name a file that can be written")]
    Picture {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Everything that is known of a run, for programs.
#[derive(Debug, Serialize)]
struct Told<'a> {
    scenario: &'a str,
    about: &'a str,
    mode: Rule,
    cases: Vec<ToldCase<'a>>,
    ranges: &'a [Held],
    /// Whether all ranges hold.
    holds: bool,
}

/// One case and its figures.
#[derive(Debug, Serialize)]
struct ToldCase<'a> {
    #[serde(flatten)]
    case: Case,
    #[serde(flatten)]
    measures: &'a Measures,
}

/// Runs the scenario and tells its figures; [`ExitCode::Failed`] where a range does not hold.
pub(crate) fn rate(arguments: &RateArguments) -> Result<ExitCode, CommandError> {
    let mut stdout = Lines::stdout();
    let Some(name) = &arguments.scenario else {
        list(&mut stdout)?;
        return Ok(ExitCode::Completed);
    };
    let mut scenario = read(name)?;
    if let Some(enforcement) = arguments.enforcement {
        scenario.enforcements = vec![enforcement];
    }
    let mode = arguments.mode;
    let case = |enforcement| Case { enforcement, seed: arguments.seed };
    let judged: Vec<_> = scenario.enforcements.iter().map(|way| scenario.judge(mode, case(*way))).collect();
    let first = judged.first().ok_or(RateError::NoCase)?;
    if let Some(path) = &arguments.plot {
        draw(path, &scenario, mode, first)?;
    }
    let held = scenario.held(mode, &judged);
    let holds = held.iter().all(|held| held.holds);
    if arguments.json {
        let cases = judged.iter().map(|Judged { case, measures, .. }| ToldCase { case: *case, measures });
        let cases = cases.collect();
        stdout.json(&Told { scenario: name, about: &scenario.about, mode, cases, ranges: &held, holds });
    } else {
        stdout.text(&format!("{name}: {}", scenario.about));
        stdout.text(&table(&scenario.figures(), &judged, &held));
    }
    stdout.flush()?;
    Ok(if holds { ExitCode::Completed } else { ExitCode::Failed })
}

fn list(stdout: &mut Lines) -> Result<(), CommandError> {
    let width = NAMES.iter().map(|name| name.len()).max().unwrap_or_default();
    for name in NAMES {
        let scenario = read(name)?;
        stdout.text(&format!("{name:width$}  {}", scenario.about));
    }
    Ok(stdout.flush()?)
}

/// One that comes with the program, or a file.
fn read(name: &str) -> Result<Scenario, RateError> {
    if let Some(scenario) = named(name) {
        return Ok(scenario?);
    }
    let text =
        fs::read_to_string(name).map_err(|source| RateError::File { name: name.to_owned(), source })?;
    Ok(Scenario::read(&text)?)
}

fn draw(path: &Path, scenario: &Scenario, mode: Rule, judged: &Judged) -> Result<(), RateError> {
    let figures = scenario.figures();
    let worded = |figure: &Figure| Some(format!("{figure} {}", figure.worded(figure.of(&judged.measures)?)));
    let figures: Vec<_> = figures.iter().filter_map(worded).collect();
    let subtitle = format!("{mode}, {}: {}", enforcement_name(judged.case.enforcement), figures.join(", "));
    let picture = plot(&judged.course, &scenario.about, &subtitle);
    fs::write(path, picture).map_err(|source| RateError::Picture { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command, Simulation};

    fn run(flags: &str) -> Result<ExitCode, CommandError> {
        let words = ["penstock", "simulate", "rate"].into_iter().chain(flags.split_whitespace());
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Simulate(Simulation::Rate(arguments)) => rate(&arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_scenario_says_by_its_code_whether_its_ranges_hold_and_draws_its_course() {
        let folder = tempfile::tempdir().unwrap();
        let (file, picture) = (folder.path().join("a.yaml"), folder.path().join("a.svg"));
        for (least, code) in [(0.5, ExitCode::Completed), (0.9, ExitCode::Failed)] {
            let text = format!(
                "{{about: a, requests_per_minute: 60, expect: {{aimd: {{utilisation: {{least: {least}}}}}}}}}"
            );
            fs::write(&file, text).unwrap();
            let flags = format!(
                "{} --mode aimd --enforcement second_bucket --plot {}",
                file.display(),
                picture.display()
            );
            assert_eq!(run(&flags).unwrap(), code);
        }
        assert!(fs::read_to_string(picture).unwrap().contains("aimd, second bucket: utilisation"));
    }

    #[test]
    fn what_is_no_scenario_is_refused_with_the_way_to_find_one() {
        let message = run("no-such-scenario").unwrap_err().message();
        assert!(message.starts_with("failed to read the scenario no-such-scenario: "), "{message}");
        assert!(message.ends_with("one of those that `penstock simulate rate` lists"), "{message}");
    }
}
