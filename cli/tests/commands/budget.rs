//! What a run with a budget says and exits with. How it is kept is tested with the executor.

use penstock_job::receipt::Receipt;

use crate::world::World;

/// At 80 tokens or so for each line.
const LINES: usize = 60;

#[test]
fn a_run_ends_at_its_budget_and_goes_on_with_a_larger_one() {
    let world = World::new();
    let input = world.prompts(LINES);
    let run = |budget| world.run(&input, &["--max-in-flight", "2", "--token-budget", budget]);
    run("1500").ended(64).told("of 1,500 tokens").told("larger");
    let asked = world.asked().len();
    assert!(asked > 1 && asked < LINES, "{asked} lines were asked");
    let status = world.say(&["status", "out"]).ended(0).stdout;
    assert!(status.contains("Stopped · CostCapReached") && status.contains("larger budget"), "{status}");
    run("1500").ended(64).told("of 1,500 tokens");
    assert_eq!(world.asked().len(), asked, "nothing more is sent");
    run("1000000").ended(0).told("completed: 60 lines").told("tokens");
    assert_eq!(world.asked().len(), LINES, "each line is asked once");
}

#[test]
fn a_job_with_prices_tells_what_it_cost() {
    let world = World::new();
    let input = world.prompts(LINES);
    let job = world.write(
        "job.yaml",
        "prices: {models: {simulated: {input_per_million_tokens: '1000', output_per_million_tokens: '2000'}}}\n",
    );
    let priced = ["--job", job.to_str().unwrap()];
    let ended = world.run(&input, &[&priced[..], &["--cost-budget", "1000", "--json"]].concat()).ended(0);
    let finished = ended.json().pop().unwrap();
    let receipt: Receipt = serde_json::from_str(&world.read("out/receipt.json")).unwrap();
    let tokens = receipt.usage.models.total();
    let thousandths = tokens.input + 2 * tokens.output;
    let bill = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    assert_eq!(receipt.cost.unwrap().amount, bill.parse().unwrap());
    assert_eq!(finished["cost"], serde_json::to_value(receipt.cost).unwrap());
    let cost = receipt.cost.unwrap().to_string();
    world.run(&input, &priced).ended(0).told("already completed").told(&cost);
    let status = world.say(&["status", "out"]).ended(0).stdout;
    assert!(status.contains(&cost), "{status}");
}

#[test]
fn a_budget_in_money_without_prices_is_refused_before_anything_is_sent() {
    let world = World::new();
    let input = world.prompts(LINES);
    world.run(&input, &["--cost-budget", "1.50"]).ended(64).told("`prices`");
    world.run(&input, &["--cost-budget", "1,50"]).ended(64).told("12.50");
    assert_eq!(world.asked().len(), 0);
}
