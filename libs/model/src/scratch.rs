//! The files in the scratch folder of a machine (R3). A later incarnation copies their records first, stores these anew, and
//! deletes the files only then; meanwhile their owner, if it lives, goes on with them.

use std::collections::BTreeMap;

use penstock_job::{Epoch, layout::Kind};

use crate::{
    by_kind::ByKind,
    lines::Lines,
    storage::{Incarnation, Part},
};

/// Incarnations that recover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Takers(u16);

impl Takers {
    /// Whether an incarnation is among them.
    pub const fn contains(self, number: Incarnation) -> bool {
        self.0 & (1 << number) != 0
    }

    const fn with(self, number: Incarnation) -> Self {
        Self(self.0 | (1 << number))
    }

    const fn shared_with(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl FromIterator<Incarnation> for Takers {
    fn from_iter<I: IntoIterator<Item = Incarnation>>(numbers: I) -> Self {
        numbers.into_iter().fold(Self::default(), Self::with)
    }
}

/// What later incarnations have done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Taken {
    /// These have copied its records, and will delete it once the copies are stored; mostly nobody.
    By(Takers),
    /// Nobody finds it any more. Its owner may still append to it, but not upload it.
    Deleted,
}

impl Default for Taken {
    fn default() -> Self {
        Self::By(Takers::default())
    }
}

/// A part under construction; a file exists once there is a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Open {
    /// Its records.
    pub lines: Lines,
    /// Who has copied them.
    pub taken: Taken,
}

/// A part that is not known to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Closed {
    /// What is being uploaded.
    pub part: Part,
    /// Who has copied its records.
    pub taken: Taken,
}

/// The files of a living incarnation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Files {
    /// Those under construction.
    pub open: ByKind<Open>,
    /// Those that are being uploaded.
    pub closed: ByKind<Option<Closed>>,
}

impl Files {
    /// The lines of one kind that their owner has records of, whether or not anybody else can find them.
    pub fn of_kind(&self, kind: Kind) -> Lines {
        self.open[kind].lines.and(self.closed[kind].map_or(Lines::NONE, |closed| closed.part.lines))
    }

    /// The lines of both kinds.
    pub fn lines(&self) -> Lines {
        Kind::ALL.into_iter().map(|kind| self.of_kind(kind)).collect()
    }

    /// Each file's kind, records and takers.
    fn each(&mut self) -> impl Iterator<Item = (Kind, Lines, &mut Taken)> {
        let Self { open, closed } = self;
        let open = open.each_mut().filter(|(_, open)| !open.lines.is_empty());
        let closed = closed.each_mut().filter_map(|(kind, closed)| Some((kind, closed.as_mut()?)));
        open.map(|(kind, open)| (kind, open.lines, &mut open.taken))
            .chain(closed.map(|(kind, closed)| (kind, closed.part.lines, &mut closed.taken)))
    }

    /// `number` copies the records that it finds.
    pub(crate) fn copied_by(&mut self, number: Incarnation) -> ByKind<Lines> {
        let mut records = ByKind::<Lines>::default();
        for (kind, lines, taken) in self.each() {
            if let Taken::By(takers) = taken {
                *takers = takers.with(number);
                records[kind] = records[kind].and(lines);
            }
        }
        records
    }

    /// `number` deletes the files that it has copied.
    pub(crate) fn deleted_by(&mut self, number: Incarnation) {
        for (.., taken) in self.each() {
            if matches!(taken, Taken::By(takers) if takers.contains(number)) {
                *taken = Taken::Deleted;
            }
        }
    }

    /// Only these will still delete anything.
    pub(crate) fn only_taken_by(&mut self, recovering: Takers) {
        for (.., taken) in self.each() {
            if let Taken::By(takers) = taken {
                *takers = takers.shared_with(recovering);
            }
        }
    }

    /// What stays when their owner ends.
    pub(crate) fn left_behind(mut self, epoch: Epoch) -> Left {
        let mut left = Left::default();
        for (kind, lines, taken) in self.each() {
            if let Taken::By(takers) = *taken {
                left.add(epoch, takers, kind, lines);
            }
        }
        left
    }
}

/// The files that an incarnation has left behind; the default when there is none. Whoever recovers takes all of them, so
/// those that the same incarnations have copied are one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Left {
    epoch: Epoch,
    records: BTreeMap<Takers, ByKind<Lines>>,
}

impl Left {
    fn add(&mut self, epoch: Epoch, takers: Takers, kind: Kind, lines: Lines) {
        self.epoch = epoch;
        let records = &mut self.records.entry(takers).or_default()[kind];
        *records = records.and(lines);
    }

    /// The epoch in their names.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// `number` copies all records.
    pub(crate) fn copied_by(&mut self, number: Incarnation) -> ByKind<Lines> {
        self.regroup(|takers| Some(takers.with(number)));
        let mut all = ByKind::<Lines>::default();
        for records in self.records.values() {
            for kind in Kind::ALL {
                all[kind] = all[kind].and(records[kind]);
            }
        }
        all
    }

    /// `number` deletes the files that it has copied.
    pub(crate) fn deleted_by(&mut self, number: Incarnation) {
        self.regroup(|takers| (!takers.contains(number)).then_some(takers));
    }

    /// Only these will still delete anything.
    pub(crate) fn only_taken_by(&mut self, recovering: Takers) {
        self.regroup(|takers| Some(takers.shared_with(recovering)));
    }

    fn regroup(&mut self, takers: impl Fn(Takers) -> Option<Takers>) {
        let Self { epoch, records } = std::mem::take(self);
        for (before, records) in records {
            let Some(after) = takers(before) else { continue };
            for kind in Kind::ALL {
                self.add(epoch, after, kind, records[kind]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Epoch = Epoch(1);

    /// A file with a record of line 0, copied by the incarnations 1 and 2; later one of the other kind, with line 1.
    fn files() -> Files {
        let mut files = Files::default();
        files.open[Kind::Results].lines = Lines::one(0);
        for number in [1, 2] {
            assert_eq!(files.copied_by(number)[Kind::Results], Lines::one(0));
        }
        files.open[Kind::Errors].lines = Lines::one(1);
        files
    }

    #[test]
    fn whoever_is_done_first_deletes_what_it_has_copied_and_nothing_else() {
        for number in [1, 2] {
            let mut files = files();
            files.deleted_by(number);
            assert_eq!(files.lines(), Lines::first(2), "its owner still has both");
            let mut left = files.left_behind(OWNER);
            files.deleted_by(3 - number);
            assert_eq!(left, files.left_behind(OWNER));
            let found = left.copied_by(3);
            assert_eq!((found[Kind::Results], found[Kind::Errors]), (Lines::NONE, Lines::one(1)));
        }
    }

    #[test]
    fn who_does_not_recover_any_more_deletes_nothing() {
        let only_second: Takers = [2].into_iter().collect();
        let mut files = files();
        let mut left = files.left_behind(OWNER);
        files.only_taken_by(only_second);
        left.only_taken_by(only_second);
        assert_eq!(left, files.left_behind(OWNER));
        left.deleted_by(1);
        assert_eq!(left.copied_by(3)[Kind::Results], Lines::one(0));
        left.deleted_by(2);
        assert_eq!(left.copied_by(3)[Kind::Results], Lines::NONE);
        left.deleted_by(3);
        assert_eq!(left, Left::default());
    }
}
