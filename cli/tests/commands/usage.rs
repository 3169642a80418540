//! What is wrong with a command line is told at once, with exit code 64.

use crate::world::World;

#[test]
fn usage_errors_exit_64_and_help_exits_0() {
    let world = World::new();
    for arguments in [
        &[][..],
        &["run"],
        &["run", "in.jsonl"],
        &["run", "in.jsonl", "--output", "out", "--rpm", "0"],
        &["run", "in.jsonl", "--output", "out", "--rate", "fast"],
        &["run", "in.jsonl", "--output", "out", "--share-every", "0s"],
        &["run", "in.jsonl", "--output", "out", "--provider", "gemini"],
        &["run", "in.jsonl", "--output", "out", "--json", "--quiet"],
        &["run", "in.jsonl", "--output", "out", "--deadline", "soon"],
        &["run", "in.jsonl", "--output", "out", "--api-key-env", "A", "--api-key-file", "b"],
        &["nonsense"],
    ] {
        world.say(arguments).ended(64);
    }
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"]] {
        world.say(arguments).ended(0);
    }
}

#[test]
fn what_must_be_corrected_first_exits_64_and_says_how() {
    let world = World::new();
    let input = world.prompts(3);
    let input = input.to_str().unwrap();
    let run = |further: &[&str]| {
        let arguments = [&["run", input, "--output", "out"], further].concat();
        world.say(&arguments).ended(64)
    };
    run(&[]).told("--model");
    run(&["--model", "m"]).told("OPENAI_API_KEY");
    run(&["--provider", "openai-compatible", "--model", "m"]).told("--base-url");
    run(&["--provider", "gemini", "--model", "m"]).told("GEMINI_API_KEY");
    run(&["--provider", "anthropic", "--model", "m"]).told("ANTHROPIC_API_KEY");
    run(&["--provider", "anthropic", "--model", "m", "--endpoint", "/v1/responses"])
        .told("/v1/chat/completions");
    run(&["--provider", "azure-openai", "--model", "m"]).told("--base-url");
    run(&["--provider", "azure-openai", "--model", "m", "--base-url", "http://127.0.0.1:1"])
        .told("AZURE_OPENAI_API_KEY");
    run(&["--provider", "gemini", "--model", "m", "--api-version", "v1"]).told("azure-openai");
    run(&["--provider", "simulated", "--endpoint", "/v1/embeddings"]).told("not text");
    run(&["--provider", "simulated", "--api-key-file", "none"]).told("none");
    world.say(&["run", "none.jsonl", "--output", "out"]).ended(64).told("none.jsonl");
    let openai = world.write("openai.jsonl", "{\"custom_id\": \"a\", \"body\": {\"model\": \"m\"}}\n");
    for flag in ["--system-prompt", "--max-output-tokens"] {
        let arguments =
            ["run", openai.to_str().unwrap(), "--output", "out", "--provider", "simulated", flag, "7"];
        world.say(&arguments).ended(64).told(flag);
    }
    assert!(!world.path("out/state.json").exists());
}
