//! Prints figures of scenarios under rules: `table [--seeds N] [--rules a,b] [SCENARIO...]`.

use std::{env, error::Error, time::Instant};

use penstock_scenarios::{Figure, NAMES, Rule, Scenario, named};

const FIGURES: [Figure; 3] = [Figure::Utilisation, Figure::Refused, Figure::TimeTo90Percent];

fn main() -> Result<(), Box<dyn Error>> {
    let (mut seeds, mut rules, mut names) = (1, Rule::ALL.to_vec(), Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => seeds = arguments.next().ok_or("name a number of seeds")?.parse()?,
            "--rules" => {
                let list = arguments.next().ok_or("name rules")?;
                rules = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
        names = NAMES.iter().map(|name| (*name).to_owned()).collect();
    }
    for name in names {
        let scenario = match named(&name) {
            Some(scenario) => scenario?,
            None => Scenario::read(&std::fs::read_to_string(&name)?)?,
        };
        println!("{name}: {}", scenario.about);
        for rule in &rules {
            for case in scenario.cases(seeds) {
                let began = Instant::now();
                let judged = scenario.judge(*rule, case);
                let figures = FIGURES.map(|figure| {
                    figure.of(&judged.measures).map_or("never".to_owned(), |value| figure.worded(value))
                });
                println!(
                    "  {rule:9} {:22} {:9} {:8} {:8} {:9} requests, {:.2} s",
                    format!("{:?} {}", case.enforcement, case.seed),
                    figures[0],
                    figures[1],
                    figures[2],
                    judged.measures.sent,
                    began.elapsed().as_secs_f64()
                );
            }
        }
    }
    Ok(())
}
