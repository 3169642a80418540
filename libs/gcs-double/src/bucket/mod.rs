//! The state of the service: buckets, objects, and what may be done to them. Pure: it is told the time.
//!
//! Owns generations, preconditions, listing, composing and the limit on how often a name changes. What it
//! refuses, it refuses as the real service does; the words are in [`Refusal`].

mod compose;
mod list;
mod moment;
mod object;
mod precondition;
mod refusal;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

pub(crate) use self::{
    compose::{Composition, Source},
    list::{ListRequest, Page},
    object::{Change, CustomChange, Edit},
};
pub(crate) use self::{
    moment::Moment,
    object::{Generation, Metadata, NewObject, Object},
    precondition::Preconditions,
    refusal::{Kind, Refusal},
};
use crate::name::{BucketName, ObjectName};

/// When it is worth forgetting names that changed long ago.
const CHANGES_REMEMBERED: usize = 10_000;

/// What holds of every bucket.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rules {
    /// How long a name stays as it is after a change.
    pub(crate) mutation_interval: Duration,
    /// How long an object is kept from being deleted or overwritten.
    pub(crate) retention: Duration,
}

/// All buckets.
#[derive(Debug)]
pub(crate) struct Buckets {
    by_name: BTreeMap<BucketName, Bucket>,
    rules: Rules,
    last_generation: Generation,
    /// What was written or deleted and is not told yet.
    changes: Vec<(BucketName, ObjectName, Option<Arc<Object>>)>,
}

/// One bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) created: Moment,
    objects: BTreeMap<ObjectName, Arc<Object>>,
    changed: HashMap<ObjectName, Moment>,
}

impl Buckets {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { by_name: BTreeMap::new(), rules, last_generation: Generation(0), changes: Vec::new() }
    }

    /// Makes a bucket.
    pub(crate) fn create(&mut self, name: BucketName, now: Moment) -> Result<&Bucket, Refusal> {
        if self.by_name.contains_key(&name) {
            return Err(Refusal::BucketExists);
        }
        let bucket = Bucket { created: now, objects: BTreeMap::new(), changed: HashMap::new() };
        Ok(self.by_name.entry(name).or_insert(bucket))
    }

    /// A bucket.
    pub(crate) fn bucket(&self, name: &BucketName) -> Result<&Bucket, Refusal> {
        self.by_name.get(name).ok_or(Refusal::NoSuchBucket)
    }

    /// The buckets in order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&BucketName, &Bucket)> {
        self.by_name.iter()
    }

    /// An object; of this generation, where one is named.
    pub(crate) fn get(
        &self,
        bucket: &BucketName,
        name: &ObjectName,
        generation: Option<Generation>,
        preconditions: &Preconditions,
    ) -> Result<Arc<Object>, Refusal> {
        let object = self.bucket(bucket)?.find(bucket, name, generation)?;
        preconditions.check(Some(object))?;
        Ok(Arc::clone(object))
    }

    /// Whether an object could be written now, as far as preconditions say.
    pub(crate) fn check(
        &self,
        bucket: &BucketName,
        name: &ObjectName,
        preconditions: &Preconditions,
    ) -> Result<(), Refusal> {
        let live = self.bucket(bucket)?.objects.get(name);
        preconditions.check(live.map(Arc::as_ref)).map_err(Refusal::of_change)
    }

    /// Creates an object or replaces it.
    pub(crate) fn put(
        &mut self,
        bucket: &BucketName,
        name: &ObjectName,
        new: NewObject,
        preconditions: &Preconditions,
        now: Moment,
    ) -> Result<Arc<Object>, Refusal> {
        self.check(bucket, name, preconditions)?;
        new.check()?;
        let generation = self.next_generation(now);
        let (target, rules) = self.target(bucket)?;
        target.release(bucket, name, rules.retention, now)?;
        target.change(bucket, name, rules.mutation_interval, now)?;
        let object = Arc::new(Object::new(name.clone(), generation, new, now));
        target.objects.insert(name.clone(), Arc::clone(&object));
        self.changes.push((bucket.clone(), name.clone(), Some(Arc::clone(&object))));
        Ok(object)
    }

    /// Changes the metadata of an object.
    pub(crate) fn patch(
        &mut self,
        bucket: &BucketName,
        name: &ObjectName,
        generation: Option<Generation>,
        change: Change,
        preconditions: &Preconditions,
        now: Moment,
    ) -> Result<Arc<Object>, Refusal> {
        let (target, rules) = self.target(bucket)?;
        let object = Arc::clone(target.find(bucket, name, generation)?);
        preconditions.check(Some(&object)).map_err(Refusal::of_change)?;
        target.change(bucket, name, rules.mutation_interval, now)?;
        let object = Arc::new(object.changed(change, now));
        target.objects.insert(name.clone(), Arc::clone(&object));
        Ok(object)
    }

    /// Deletes an object.
    pub(crate) fn delete(
        &mut self,
        bucket: &BucketName,
        name: &ObjectName,
        generation: Option<Generation>,
        preconditions: &Preconditions,
        now: Moment,
    ) -> Result<(), Refusal> {
        let (target, rules) = self.target(bucket)?;
        let object = target.find(bucket, name, generation)?;
        preconditions.check(Some(object)).map_err(Refusal::of_change)?;
        target.release(bucket, name, rules.retention, now)?;
        target.change(bucket, name, rules.mutation_interval, now)?;
        target.objects.remove(name);
        self.changes.push((bucket.clone(), name.clone(), None));
        Ok(())
    }

    /// The names that were written (with what is there since) or deleted since this was last asked, in that order.
    pub(crate) fn take_changes(&mut self) -> Vec<(BucketName, ObjectName, Option<Arc<Object>>)> {
        std::mem::take(&mut self.changes)
    }

    /// One page of the objects of a bucket.
    pub(crate) fn list(&self, bucket: &BucketName, request: &ListRequest) -> Result<Page, Refusal> {
        request.page(&self.bucket(bucket)?.objects)
    }

    /// Joins objects to one.
    pub(crate) fn compose(
        &mut self,
        bucket: &BucketName,
        name: &ObjectName,
        composition: Composition,
        preconditions: &Preconditions,
        now: Moment,
    ) -> Result<Arc<Object>, Refusal> {
        let new = composition.join(bucket, self.bucket(bucket)?)?;
        self.put(bucket, name, new, preconditions, now)
    }

    fn target(&mut self, bucket: &BucketName) -> Result<(&mut Bucket, Rules), Refusal> {
        let target = self.by_name.get_mut(bucket).ok_or(Refusal::NoSuchBucket)?;
        Ok((target, self.rules))
    }

    /// Microseconds since the epoch, as the service counts, and never one twice.
    fn next_generation(&mut self, now: Moment) -> Generation {
        let now = i64::try_from(now.micros()).unwrap_or(i64::MAX);
        self.last_generation = Generation(now.max(self.last_generation.0 + 1));
        self.last_generation
    }
}

impl Bucket {
    fn find(
        &self,
        bucket: &BucketName,
        name: &ObjectName,
        generation: Option<Generation>,
    ) -> Result<&Arc<Object>, Refusal> {
        self.objects
            .get(name)
            .filter(|object| generation.is_none_or(|wanted| wanted == object.generation))
            .ok_or_else(|| Refusal::NoSuchObject { bucket: bucket.clone(), name: name.clone(), generation })
    }

    /// Refuses to let go of an object that is retained.
    fn release(
        &self,
        bucket: &BucketName,
        name: &ObjectName,
        retention: Duration,
        now: Moment,
    ) -> Result<(), Refusal> {
        // The clock may go back; where nothing is retained, that retains nothing either.
        let retained = self.objects.get(name).filter(|_| !retention.is_zero());
        match retained.map(|object| object.created.later_by(retention)) {
            Some(until) if until > now => {
                Err(Refusal::Retained { bucket: bucket.clone(), name: name.clone(), until })
            }
            _ => Ok(()),
        }
    }

    /// Notes that a name changes now, which it may once per interval.
    fn change(
        &mut self,
        bucket: &BucketName,
        name: &ObjectName,
        interval: Duration,
        now: Moment,
    ) -> Result<(), Refusal> {
        let recent = |at: &Moment| now.since(*at) < interval;
        if self.changed.get(name).is_some_and(recent) {
            return Err(Refusal::ChangedTooOften { bucket: bucket.clone(), name: name.clone() });
        }
        if self.changed.len() >= CHANGES_REMEMBERED {
            self.changed.retain(|_, at| recent(at));
        }
        if !interval.is_zero() {
            self.changed.insert(name.clone(), now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
