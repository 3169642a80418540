//! A running server, asked over real connections.

mod anthropic;
mod azure;
mod client;
mod dialects;
mod faults;
mod gemini;
mod limits;
mod serving;
mod shutdown;
mod witness;
