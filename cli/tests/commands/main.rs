//! Drives the real binary against the simulated provider, whose log is the witness of what was sent.

#![cfg(test)]

mod budget;
mod cancel;
mod folder;
mod run;
mod sharing;
mod stop;
mod url;
mod usage;
mod validate;
mod verify;
mod world;
