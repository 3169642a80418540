//! A running server, asked over real connections.

mod client;
mod faults;
mod limits;
mod serving;
mod shutdown;
mod witness;
