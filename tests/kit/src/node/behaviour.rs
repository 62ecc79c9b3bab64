//! How pods are to behave, decided before they exist or while they run.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

/// How a pod, or a container of it, behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behaviour {
    /// It starts and becomes ready. Also what undoes the others.
    #[default]
    Normal,
    /// It runs and never becomes ready. One that was ready is not any longer.
    NeverReady,
    /// It runs, and is ready so long after its start. Holds from the next start on.
    SlowStart(Duration),
    /// No node is found for it. Nothing happens to a pod that has a node.
    Unschedulable,
    /// Its containers end again and again, with a growing pause (`CrashLoopBackOff`). One that runs crashes.
    CrashLoop,
    /// Its image cannot be pulled (`ImagePullBackOff`). Holds from the next start on.
    CannotPull,
}

/// For which pods a [`Behaviour`] is meant.
#[derive(Clone)]
pub struct Which(Kind);

#[derive(Clone)]
enum Kind {
    All,
    Future,
    Pod(String),
    Image(String),
    By(Arc<Predicate>),
}

type Predicate = dyn Fn(&Pod) -> bool + Send + Sync;

impl Which {
    /// All pods, those to come as well.
    pub fn all() -> Self {
        Self(Kind::All)
    }

    /// Pods that the simulation has not seen yet.
    pub fn future() -> Self {
        Self(Kind::Future)
    }

    /// The pod of this name, whether it exists yet or not.
    pub fn pod(name: impl Into<String>) -> Self {
        Self(Kind::Pod(name.into()))
    }

    /// Containers of this image. Their neighbours in the pod behave as before.
    pub fn image(image: impl Into<String>) -> Self {
        Self(Kind::Image(image.into()))
    }

    /// Pods for which this is true. It is asked often and must not call back into the simulation.
    pub fn pods(predicate: impl Fn(&Pod) -> bool + Send + Sync + 'static) -> Self {
        Self(Kind::By(Arc::new(predicate)))
    }
}

impl std::fmt::Debug for Which {
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

/// All rules in the order in which they were made. The last one that fits holds.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    which: Which,
    behaviour: Behaviour,
    /// Pods seen by then: the future begins here.
    seen: u64,
}

impl Rules {
    pub(super) fn add(&mut self, which: Which, behaviour: Behaviour, seen: u64) {
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

    /// The behaviour of a container with this image, in the pod that was seen as number `number`.
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

/// What a node says of images.
#[derive(Debug, Default)]
pub(super) struct Images {
    pub(super) ids: HashMap<String, String>,
    pub(super) aliases: HashMap<String, String>,
}

impl Images {
    /// The digest: equal for equal images.
    pub(super) fn id(&self, image: &str) -> String {
        let given = self.ids.get(image).cloned();
        given.unwrap_or_else(|| {
            let repository = image.split(['@', ':']).next().unwrap_or(image);
            format!("{repository}@sha256:{}", digest(image))
        })
    }

    /// The name that the status shows.
    pub(super) fn name(&self, image: &str) -> String {
        self.aliases
            .get(image)
            .cloned()
            .unwrap_or_else(|| image.to_owned())
    }
}

/// 64 hexadecimal digits that depend on the text alone.
pub(super) fn digest(text: &str) -> String {
    let part = |number: u8| {
        let mut hasher = DefaultHasher::new();
        (number, text).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    (0..4).map(part).collect()
}
