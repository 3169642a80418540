//! Prints the figures of scenarios under rules: `table [--seeds N] [--rules a,b] [NAME or FILE...]`, all that come with
//! the program if none is named; with `--generated N` also of so many providers that are drawn, from
//! the seed `--from S` on.

use std::{env, error::Error, fs, process::ExitCode};

use penstock_scenarios::{NAMES, Rule, Scenario, Survey, named, table};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (mut seeds, mut rules, mut names) = (1, None, Vec::new());
    let (mut drawn, mut first): (Option<u64>, u64) = (None, 0);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => seeds = arguments.next().ok_or("name a number of seeds")?.parse()?,
            "--generated" => drawn = Some(arguments.next().ok_or("name a number of providers")?.parse()?),
            "--from" => first = arguments.next().ok_or("name a seed")?.parse()?,
            "--rules" => {
                let list = arguments.next().ok_or("name rules")?;
                rules = Some(list.split(',').map(str::parse).collect::<Result<Vec<Rule>, _>>()?);
            }
            _ => names.push(argument),
        }
    }
    if names.is_empty() && drawn.is_none() {
        names = NAMES.iter().map(|name| (*name).to_owned()).collect();
    }
    let mut all_hold = true;
    for name in names {
        let scenario = match named(&name) {
            Some(scenario) => scenario?,
            None => Scenario::read(&fs::read_to_string(&name)?)?,
        };
        println!("{name}: {}", scenario.about);
        let of_file = || scenario.expect.keys().copied().collect();
        for rule in rules.clone().unwrap_or_else(of_file) {
            let judged: Vec<_> =
                scenario.cases(seeds).into_iter().map(|case| scenario.judge(rule, case)).collect();
            let held = scenario.held(rule, &judged);
            all_hold &= held.iter().all(|held| held.holds);
            println!("{rule}\n{}\n", table(&scenario.figures(), &judged, &held));
        }
    }
    for steps in drawn.iter().flat_map(|_| [false, true]) {
        for rule in rules.clone().unwrap_or_else(|| Rule::ALL.to_vec()) {
            let survey = Survey::of(rule, first..first + drawn.unwrap_or_default(), steps);
            let percent = |percentile| 100.0 * survey.percentile(percentile);
            println!(
                "{rule}, {} drawn providers{}: utilisation p1 {:.1} %, p5 {:.1} %, median {:.1} %; {:.2} % refused; worst {:.3?}",
                survey.utilisations.len(),
                if steps { " with steps" } else { "" },
                percent(1),
                percent(5),
                percent(50),
                100.0 * survey.mean_refused,
                &survey.utilisations[..survey.utilisations.len().min(5)],
            );
        }
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
