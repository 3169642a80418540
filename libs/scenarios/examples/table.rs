//! Prints the figures of scenarios under rules: `table [--seeds N] [--rules a,b] [NAME or FILE...]`, all that come with
//! the program if none is named.

use std::{env, error::Error, fs, process::ExitCode};

use penstock_scenarios::{NAMES, Rule, Scenario, named, table};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (mut seeds, mut rules, mut names) = (1, None, Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => seeds = arguments.next().ok_or("name a number of seeds")?.parse()?,
            "--rules" => {
                let list = arguments.next().ok_or("name rules")?;
                rules = Some(list.split(',').map(str::parse).collect::<Result<Vec<Rule>, _>>()?);
            }
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
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
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
