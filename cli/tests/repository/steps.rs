//! The steps of the job protocol: each is announced by the code that makes it, and stands in the table of crashes.

use std::{collections::BTreeSet, path::Path};

use penstock_job::Step;

use crate::{documents::files, markdown::Page};

/// Validation knows nothing of steps: its writes tell them to whoever injects faults.
const TOLD: &str = "executor/src/injection.rs";

/// Whether validation makes a step, rather than the executor.
fn is_of_validation(step: Step) -> bool {
    step <= Step::CommitValidation
}

/// The text of a source file but for comments and for the tests at its end.
fn shipped(path: &Path) -> String {
    let text = crate::read(path);
    let code = text.split("#[cfg(test)]").next().expect("a text has a beginning");
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect()
}

#[test]
fn each_step_is_announced_where_it_is_made() {
    let (told, announced): (Vec<_>, Vec<_>) =
        files(Path::new("executor/src"), "rs").into_iter().partition(|path| path == Path::new(TOLD));
    let text = |paths: &[_]| paths.iter().map(|path: &std::path::PathBuf| shipped(path)).collect::<String>();
    let (told, announced) = (text(&told), text(&announced));
    for step in Step::ALL {
        let code = if is_of_validation(step) { &told } else { &announced };
        // The name is followed by something that ends it: `Step::End` is not `Step::Ending`.
        let found = code
            .split(&format!("Step::{step:?}"))
            .skip(1)
            .any(|rest| rest.starts_with(|next: char| !next.is_alphanumeric()));
        assert!(found, "nothing announces `{step}`, so no test can end a run there");
    }
}

#[test]
fn the_table_of_crashes_has_a_row_for_each_step_and_for_nothing_else() {
    let table = Page::read("docs/protocol.md").table(&["step", "after", "next"]);
    let documented: BTreeSet<&str> = table.iter().flat_map(|[steps, ..]| steps.split(", ")).collect();
    assert_eq!(documented, Step::ALL.into_iter().map(Step::name).collect());
}
