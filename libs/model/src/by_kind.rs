//! One value for each kind of part.

use std::ops::{Index, IndexMut};

use penstock_job::layout::Kind;

/// One value for results, one for errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ByKind<T> {
    results: T,
    errors: T,
}

impl<T> ByKind<T> {
    /// Both values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        [&self.results, &self.errors].into_iter()
    }

    /// Both values, to be changed.
    pub(crate) fn each_mut(&mut self) -> impl Iterator<Item = (Kind, &mut T)> {
        [(Kind::Results, &mut self.results), (Kind::Errors, &mut self.errors)].into_iter()
    }
}

impl<T> Index<Kind> for ByKind<T> {
    type Output = T;

    fn index(&self, kind: Kind) -> &T {
        match kind {
            Kind::Results => &self.results,
            Kind::Errors => &self.errors,
        }
    }
}

impl<T> IndexMut<Kind> for ByKind<T> {
    fn index_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Results => &mut self.results,
            Kind::Errors => &mut self.errors,
        }
    }
}
