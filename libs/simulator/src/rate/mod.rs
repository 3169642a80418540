//! Providers in virtual time: an hour of requests against hidden limits, in a second.
//!
//! The limits are enforced by the very code of the HTTP double. A [`Controller`] says when it wants to send, a
//! [`Trial`] says against what, and [`run`] lets them meet and writes down the [`Course`], from which the
//! [`Measures`] are taken. Nothing here judges: which figures are good enough is the business of who asks.
//!
//! One file a subject: `provider` decides about one request, `batch` is a server that saturates instead of refusing,
//! `trial` moves the clock, `course` counts, `measures` computes.

mod batch;
mod controller;
mod course;
mod job;
mod measures;
mod provider;
mod trial;

pub use batch::Batch;
pub use controller::{Answer, Controller, Outcome, Wish};
pub use course::{Course, JobCourse};
pub use job::Job;
pub use measures::{Measures, Settled};
pub use provider::{Provider, Step};
pub use trial::{Trial, run};

pub use crate::limit::{Claim, Dimension};
