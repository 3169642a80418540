//! The command line of Penstock.
//!
//! A tour:
//!
//! | module | owns |
//! |---|---|
//! | [`arguments`] | what can be said on the command line |
//! | [`run`], [`validate`], [`verify`], [`status`], [`cancel`], [`simulate`], [`url`] | one command each |
//! | [`view`] | what a run shows of itself while it goes on, and its last lines |
//! | [`attend`], [`signals`] | work beside its view, and how signals stop it |
//! | [`output`] | the documents of an output, read without changing anything |
//! | [`error`] | how a command fails, and its exit code |
//! | [`spec_file`] | job files and settings files |
//! | [`logs`], [`lines`] | log lines on stderr, data lines on stdout |
//!
//! What a job is and how it is run is told by the libraries and the executor; here it is put together and shown.

mod arguments;
mod attend;
mod cancel;
mod commands;
#[cfg(test)]
mod documented;
mod error;
mod lines;
mod logs;
mod output;
mod run;
mod signals;
mod simulate;
mod spec_file;
mod status;
mod url;
mod validate;
mod verify;
mod view;
mod why;

use std::process::ExitCode;

use clap::Parser;
use penstock_job::ExitCode as Code;

/// Gives memory back; how it is tuned stands in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    penstock_executor::raise_open_files();
    match arguments::Arguments::try_parse() {
        Ok(arguments) => commands::execute(arguments.command).into(),
        Err(refusal) => {
            let code = if refusal.use_stderr() { Code::Configuration } else { Code::Completed };
            // Nobody is left to be told that the terminal is gone.
            let _ = refusal.print();
            code.into()
        }
    }
}
