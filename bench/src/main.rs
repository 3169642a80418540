//! Measures what Penstock promises of its speed, memory and waste, on the machine that it runs on.
//!
//! | module | owns |
//! |---|---|
//! | [`arguments`] | what can be said on the command line |
//! | [`rows`] | the rows, one module for each subject |
//! | [`row`], [`spread`], [`report`] | one measured row, the spread of its rounds, and how rows are shown |
//! | [`server`], [`answering`] | a server that gives every request one answer, and the handle on its process |
//! | [`served`] | what such handles have in common: a server that is told on stdin |
//! | [`cluster`] | a Kubernetes API without nodes, the operator in it, and a stand-in for its pods |
//! | [`bucket`] | the storage double in a process of its own, and what its log says of a job |
//! | [`reading`] | an input read to its end, as a job does and with a bare client |
//! | [`simulated`] | the provider double in a process of its own, and its log |
//! | [`reqwest_loop`] | the bare client that Penstock is measured against |
//! | [`process`], [`patience`] | other programs: started on chosen cores, measured, awaited |
//! | [`workplace`], [`input`] | the folder in which rows work, and the inputs that they share |
//! | [`machine`] | the shape of this machine |
//! | [`error`] | how a measurement fails |
//!
//! Every row drives the released binary from outside. Nothing here is a test: no figure fails a build.

mod answering;
mod arguments;
mod bucket;
mod cluster;
mod error;
mod input;
mod machine;
mod patience;
mod process;
mod reading;
mod report;
mod reqwest_loop;
mod row;
mod rows;
mod served;
mod server;
mod simulated;
mod spread;
mod workplace;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    arguments::{Arguments, Command},
    error::BenchError,
};

/// The allocator of the measured binary, so that the bare client differs from it only in what it does.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("penstock-bench: failed to {error}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> Result<(), BenchError> {
    match command {
        Command::Rows(arguments) => rows::measure(&arguments),
        Command::Serve(arguments) => server::serve(arguments.text_bytes),
        Command::Loop(arguments) => reqwest_loop::run(&arguments),
        Command::Bucket(arguments) => bucket::serve(&arguments),
        Command::Read(arguments) => reading::run(&arguments),
    }
}
