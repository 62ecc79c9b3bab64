//! Behaviour of pods, set before they exist or while they run.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

/// Behaviour of a pod, or of one of its containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behaviour {
    /// Starts and becomes ready. Also undoes the other behaviours.
    #[default]
    Normal,
    /// Runs and never becomes ready. A pod that was ready loses its readiness.
    NeverReady,
    /// Runs, and becomes ready this long after its start. Applies from the next start on.
    SlowStart(Duration),
    /// Finds no node. Has no effect on a pod that has a node.
    Unschedulable,
    /// Its containers exit repeatedly, with a growing pause (`CrashLoopBackOff`). A running container
    /// crashes.
    CrashLoop,
    /// Its image cannot be pulled (`ImagePullBackOff`). Applies from the next start on.
    CannotPull,
}

/// Selects the pods that a [`Behaviour`] applies to.
#[derive(Clone)]
pub struct PodSelector(Kind);

#[derive(Clone)]
enum Kind {
    All,
    Future,
    Pod(String),
    Image(String),
    By(Arc<Predicate>),
}

type Predicate = dyn Fn(&Pod) -> bool + Send + Sync;

impl PodSelector {
    /// Selects all pods, present and future.
    pub fn all() -> Self {
        Self(Kind::All)
    }

    /// Selects pods that the simulation has not seen yet.
    pub fn future() -> Self {
        Self(Kind::Future)
    }

    /// Selects the pod with this name, whether it exists yet or not.
    pub fn pod(name: impl Into<String>) -> Self {
        Self(Kind::Pod(name.into()))
    }

    /// Selects containers with this image. Other containers of the pod behave as before.
    pub fn image(image: impl Into<String>) -> Self {
        Self(Kind::Image(image.into()))
    }

    /// Selects the pods for which the predicate returns true. The simulation calls it often; it must not call
    /// back into the simulation.
    pub fn pods(predicate: impl Fn(&Pod) -> bool + Send + Sync + 'static) -> Self {
        Self(Kind::By(Arc::new(predicate)))
    }
}

impl std::fmt::Debug for PodSelector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::All => formatter.write_str("All"),
            Kind::Future => formatter.write_str("Future"),
            Kind::Pod(name) => write!(formatter, "Pod({name})"),
            Kind::Image(image) => write!(formatter, "Image({image})"),
            Kind::By(_) => formatter.write_str("By(…)"),
        }
    }
}

/// All rules in creation order. The last matching rule wins.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    which: PodSelector,
    behaviour: Behaviour,
    /// Number of pods seen when the rule was added; later pods count as future.
    seen: u64,
}

impl Rules {
    pub(super) fn add(&mut self, which: PodSelector, behaviour: Behaviour, seen: u64) {
        if let Kind::Pod(name) = &which.0 {
            self.rules
                .retain(|rule| !matches!(&rule.which.0, Kind::Pod(known) if known == name));
        }
        self.rules.push(Rule {
            which,
            behaviour,
            seen,
        });
    }

    /// Returns the behaviour of a container with this image in the pod with sequence number `number`.
    pub(super) fn of(&self, pod: &Pod, number: u64, image: &str) -> Behaviour {
        let fits = |rule: &&Rule| match &rule.which.0 {
            Kind::All => true,
            Kind::Future => number >= rule.seen,
            Kind::Pod(name) => pod.metadata.name.as_ref() == Some(name),
            Kind::Image(wanted) => wanted == image,
            Kind::By(predicate) => predicate(pod),
        };
        let last = self.rules.iter().rev().find(fits);
        last.map(|rule| rule.behaviour).unwrap_or_default()
    }
}

/// Image names and digests that a node reports.
#[derive(Debug, Default)]
pub(super) struct Images {
    pub(super) ids: HashMap<String, String>,
    pub(super) aliases: HashMap<String, String>,
}

impl Images {
    /// Returns the digest; equal for equal images.
    pub(super) fn id(&self, image: &str) -> String {
        let given = self.ids.get(image).cloned();
        given.unwrap_or_else(|| {
            let repository = image.split(['@', ':']).next().unwrap_or(image);
            format!("{repository}@sha256:{}", digest(image))
        })
    }

    /// Returns the name that the status shows.
    pub(super) fn name(&self, image: &str) -> String {
        self.aliases
            .get(image)
            .cloned()
            .unwrap_or_else(|| image.to_owned())
    }
}

/// Returns 64 hexadecimal digits that depend only on the text.
pub(super) fn digest(text: &str) -> String {
    let part = |number: u8| {
        let mut hasher = DefaultHasher::new();
        (number, text).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    (0..4).map(part).collect()
}
