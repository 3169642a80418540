//! `penstock status` on folders of all kinds, and foreign or damaged documents.

use crate::world::World;

#[test]
fn an_empty_folder_is_told_apart_from_a_finished_job() {
    let world = World::new();
    world.say(&["status", "out"]).ended(64).told("there is none");
    world.run(&world.prompts(5), &[]).ended(0);
    let status = world.say(&["status", "out"]).ended(0);
    assert!(status.stdout.starts_with("out: Completed\n"), "{}", status.stdout);
    assert!(status.stdout.contains("5 of 5 done (100.0 %)"), "{}", status.stdout);
}

#[test]
fn a_foreign_document_is_named_and_left_as_it_is() {
    let world = World::new();
    let input = world.prompts(5);
    std::fs::create_dir(world.path("out")).unwrap();
    let theirs = "{\"format\":\"theirs/9\"}";
    world.write("out/state.json", theirs);
    world.run(&input, &[]).ended(64).told("state.json").told("theirs/9");
    world.say(&["status", "out"]).ended(64).told("theirs/9");
    assert_eq!(world.read("out/state.json"), theirs);
    assert!(world.asked().is_empty());
}

#[test]
fn an_output_that_is_no_folder_is_refused() {
    let world = World::new();
    let input = world.prompts(5);
    world.write("out", "a file");
    world.run(&input, &[]).ended(64).told("out");
    assert_eq!(world.read("out"), "a file");
}
