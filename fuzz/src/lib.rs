//! What holds for any bytes that come from outside: one function per place where they enter.
//!
//! Each function takes bytes and panics when a promise about them is broken. `fuzz_targets/` hands them what libFuzzer
//! makes up (`make fuzz`), and the tests hand them the files of `corpus/` (`make test`), so that nothing that was once
//! found comes back. Inputs are cut to a few kilobytes: promises do not depend on length, and the time of a run shows
//! where something takes more than linear time.

mod answer;
mod documents;
mod input;
mod job_file;
mod learner;
mod line;
mod lines;
mod records;

pub use answer::provider_answer;
pub use documents::{ordinal_set, receipt, state, validation};
pub use input::whole_input;
pub use job_file::{job_file, job_file_key};
pub use learner::learner_memory;
pub use line::line_validation;
pub use lines::line_reader;
pub use records::{part_name, record_head};

/// Takes any bytes, and panics when a promise about them is broken.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also that of its program and of its folder in `corpus/`.
pub const TARGETS: [(&str, Target); 13] = [
    ("job_file", job_file),
    ("job_file_key", job_file_key),
    ("learner_memory", learner_memory),
    ("line_reader", line_reader),
    ("line_validation", line_validation),
    ("ordinal_set", ordinal_set),
    ("part_name", part_name),
    ("provider_answer", provider_answer),
    ("receipt", receipt),
    ("record_head", record_head),
    ("state", state),
    ("validation", validation),
    ("whole_input", whole_input),
];

/// The beginning of `data`, at most `most` bytes.
fn bounded(data: &[u8], most: usize) -> &[u8] {
    &data[..data.len().min(most)]
}
