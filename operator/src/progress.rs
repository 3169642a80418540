//! The progress call, from the operator's side: who may report, what was said, and what is answered.

mod authority;
mod caller;
mod directives;
mod listener;
mod reports;
mod server;

pub use self::{
    authority::{Authority, AuthorityError},
    caller::Reviewer,
    reports::{Heard, Reports},
    server::{Progress, report_url, serve_progress},
};
