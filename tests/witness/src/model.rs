//! Histories of all objects, in the order of etcd's revisions.
//!
//! The API server reports no revision for a removal. The model places it in the operators' favour: pods and
//! nodes go as early as the times allow, HookRuns and workloads as late.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::event::Event;
use crate::object::{name, revision, terminating, text, uid};

/// Position in the order of all writes: a revision, and whether it is a removal that follows it.
pub(crate) type Order = (u64, bool);

/// State of an object after one write.
#[derive(Debug)]
pub(crate) struct Version<'e> {
    pub(crate) order: Order,
    /// Time of the response.
    pub(crate) at: Timestamp,
    /// User that wrote it.
    pub(crate) by: &'e str,
    /// Object; `None` once it is removed.
    pub(crate) object: Option<&'e Value>,
}

/// Write and its position.
#[derive(Debug)]
pub(crate) struct Step<'e> {
    pub(crate) order: Order,
    pub(crate) event: &'e Event,
    /// UID of the written object.
    pub(crate) uid: &'e str,
    /// Whether the write changed anything.
    pub(crate) changed: bool,
}

/// Histories by kind and UID.
#[derive(Debug, Default)]
pub(crate) struct ClusterModel<'e> {
    objects: BTreeMap<&'e str, BTreeMap<&'e str, Vec<Version<'e>>>>,
    /// Writes with an unknown effect.
    unclear: Vec<&'e Event>,
}

impl<'e> ClusterModel<'e> {
    /// Builds the histories and orders the writes.
    pub(crate) fn of(events: &'e [Event]) -> (Self, Vec<Step<'e>>) {
        let clock = Clock::of(events);
        let mut placed: Vec<(Order, &Event)> =
            events.iter().map(|event| (clock.place(event), event)).collect();
        placed.sort_by_key(|(order, event)| (*order, event.done));
        let mut model = Self::default();
        let steps = placed
            .into_iter()
            .map(|(order, event)| model.take_in(order, event));
        let steps = steps.collect();
        (model, steps)
    }

    fn take_in(&mut self, order: Order, event: &'e Event) -> Step<'e> {
        let uid = self.uid_of(event);
        let mut step = Step {
            order,
            event,
            uid,
            changed: false,
        };
        if event.may_have_taken_effect() {
            self.unclear.push(event);
        }
        let gone = removes(event);
        if !event.succeeded() || uid.is_empty() || !gone && event.object().is_none() {
            return step;
        }
        let versions = self
            .objects
            .entry(&event.resource)
            .or_default()
            .entry(uid)
            .or_default();
        // A later write shows that the object still existed. The request for its removal was received before and took
        // effect after it.
        let removal = versions.pop_if(|last| !gone && last.object.is_none());
        // The response to a patch without changes is the current object.
        step.changed = versions
            .last()
            .is_none_or(|last| last.order < order && last.object.is_some());
        if step.changed {
            versions.push(Version {
                order,
                at: event.done,
                by: &event.user,
                object: event.object().filter(|_| !gone),
            });
        }
        versions.extend(removal.map(|removal| Version {
            order: removal.order.max((order.0, true)),
            ..removal
        }));
        step
    }

    /// Returns the UID from the response, or else looks it up by name.
    fn uid_of(&self, event: &'e Event) -> &'e str {
        let said = match event.object() {
            Some(object) => uid(object),
            None => text(&event.response, "/details/uid"),
        };
        if !said.is_empty() || !event.succeeded() {
            return said;
        }
        let known = self.objects.get(event.resource.as_str()).into_iter().flatten();
        let mut named = known.filter(|(_, versions)| {
            let last = versions.last().and_then(|version| version.object);
            last.is_some_and(|object| name(object) == event.name)
        });
        named.next_back().map_or("", |(uid, _)| uid)
    }

    /// Returns UIDs and histories of all objects of a kind.
    pub(crate) fn all(&self, resource: &str) -> impl Iterator<Item = (&'e str, &[Version<'e>])> {
        let found = self.objects.get(resource).into_iter().flatten();
        found.map(|(uid, versions)| (*uid, versions.as_slice()))
    }

    /// Returns writes with an unknown effect to objects of this name.
    pub(crate) fn unclear(&self, resource: &str, name: &str) -> impl Iterator<Item = &'e Event> {
        let about = move |event: &&&Event| event.resource == resource && event.name == name;
        self.unclear.iter().filter(about).copied()
    }

    /// Returns the history of one object.
    pub(crate) fn history(&self, resource: &str, uid: &str) -> &[Version<'e>] {
        let found = self.objects.get(resource).and_then(|objects| objects.get(uid));
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns an object just before a position.
    pub(crate) fn before(&self, resource: &str, uid: &str, order: Order) -> Option<&'e Value> {
        before(self.history(resource, uid), order)
    }

    /// Returns the states of an object within the time `back` before a write, newest last.
    pub(crate) fn lately(
        &self,
        resource: &str,
        uid: &str,
        step: &Step<'_>,
        back: SignedDuration,
    ) -> Vec<&'e Value> {
        let versions = self.history(resource, uid);
        let end = versions.partition_point(|version| version.order < step.order);
        let from = step.event.received.checked_sub(back).unwrap_or(Timestamp::MIN);
        let overlooked = (versions[..end].iter().rev())
            .take_while(|version| version.at >= from)
            .count();
        let begin = end.saturating_sub(overlooked + 1);
        versions[begin..end]
            .iter()
            .filter_map(|version| version.object)
            .collect()
    }

    /// Whether a node existed and no longer does.
    pub(crate) fn node_is_gone(&self, node: &str, order: Order) -> bool {
        let named = |versions: &[Version<'_>]| {
            versions
                .first()
                .and_then(|first| first.object)
                .is_some_and(|object| name(object) == node)
        };
        let mut histories = self
            .all("nodes")
            .filter(|(_, versions)| named(versions))
            .peekable();
        histories.peek().is_some() && histories.all(|(_, versions)| before(versions, order).is_none())
    }
}

/// Returns the object just before a position.
pub(crate) fn before<'e>(versions: &[Version<'e>], order: Order) -> Option<&'e Value> {
    let end = versions.partition_point(|version| version.order < order);
    versions[..end].last().and_then(|version| version.object)
}

/// Whether a write removed its object at once.
fn removes(event: &Event) -> bool {
    if !event.succeeded() {
        return false;
    }
    if event.resource == "pods" && event.subresource == "eviction" {
        return true;
    }
    let waits = |object: &Value| {
        let has_finalizers = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        terminating(object)
            && (has_finalizers || object["metadata"]["deletionGracePeriodSeconds"].as_u64() > Some(0))
    };
    event.verb == "delete" && event.subresource.is_empty() && !event.object().is_some_and(waits)
}

/// Revisions over time, as far as the log shows.
struct Clock {
    /// Response times, each with the newest revision made by then.
    made: Vec<(Timestamp, u64)>,
    /// Request times, each with the oldest revision made by that or a later request.
    to_be_made: Vec<(Timestamp, u64)>,
}

impl Clock {
    fn of(events: &[Event]) -> Self {
        let with_revision = events.iter().filter(|event| event.succeeded() && !removes(event));
        let mut writes: Vec<(u64, &Event)> = with_revision
            .filter_map(|event| Some((revision(event.object()?), event)))
            .collect();
        // The response to a patch without changes carries the revision of another write.
        writes.sort_by_key(|(revision, event)| (*revision, event.done));
        writes.dedup_by_key(|(revision, _)| *revision);
        let mut made: Vec<_> = writes
            .iter()
            .map(|(revision, event)| (event.done, *revision))
            .collect();
        made.sort_unstable();
        let mut newest = 0;
        for (_, revision) in &mut made {
            newest = newest.max(*revision);
            *revision = newest;
        }
        let mut to_be_made: Vec<_> = writes
            .iter()
            .map(|(revision, event)| (event.received, *revision))
            .collect();
        to_be_made.sort_unstable();
        let mut oldest = u64::MAX;
        for (_, revision) in to_be_made.iter_mut().rev() {
            oldest = oldest.min(*revision);
            *revision = oldest;
        }
        Self { made, to_be_made }
    }

    fn place(&self, event: &Event) -> Order {
        let answered = event.object().map(revision).unwrap_or_default();
        if !removes(event) {
            return (answered, false);
        }
        let earliest = matches!(event.resource.as_str(), "pods" | "nodes");
        if earliest {
            let index = self.made.partition_point(|(at, _)| *at <= event.received);
            let newest = index.checked_sub(1).map_or(0, |index| self.made[index].1);
            (newest.max(answered), true)
        } else {
            let index = self.to_be_made.partition_point(|(at, _)| *at <= event.done);
            let next = self
                .to_be_made
                .get(index)
                .map_or(u64::MAX, |(_, revision)| *revision);
            (next.saturating_sub(1), true)
        }
    }
}

/// Completes partial responses: a change of `scale`, and those to the garbage collector, which requests only
/// metadata. Missing parts keep their last known value.
pub(crate) fn complete(events: &mut [Event]) {
    events.sort_by_key(|event| (event.object().map(revision).unwrap_or_default(), event.done));
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for index in 0..events.len() {
        let Some(part) = events[index].object() else {
            continue;
        };
        let id = uid(part).to_owned();
        let is_part = events[index].subresource == "scale" || part["kind"] == "PartialObjectMetadata";
        let before = known.get(&id).filter(|_| is_part);
        let mut whole = before.map_or(Value::Null, |index| events[*index].response.clone());
        if events[index].subresource == "scale" {
            whole["spec"]["replicas"] = part["spec"]["replicas"].clone();
            whole["metadata"]["resourceVersion"] = part["metadata"]["resourceVersion"].clone();
            events[index].response = whole;
        } else if part["kind"] == "PartialObjectMetadata" {
            whole["metadata"] = part["metadata"].clone();
            events[index].response = whole;
        }
        known.insert(id, index);
    }
}
