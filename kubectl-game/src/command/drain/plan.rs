//! Treatment of each pod on a node, and objections to it.

use std::collections::{BTreeMap, BTreeSet};

use gamedeployment_core::pod::{Pod as PodFacts, PodPhase};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::label;
use super::workload::{OwningGames, Protection, controller_of, game_of};

/// Annotation of pods that the kubelet runs from a file.
const STATIC: &str = "kubernetes.io/config.mirror";
/// Names in a sentence before the rest is counted.
const MAX_NAMES: usize = 5;

/// Removals that the user permits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Permits {
    /// Evict pods of GameDeployments whose hooks do not run first, which disconnects their players
    #[arg(long)]
    pub(super) evict_unguarded: bool,

    /// Evict pods without a controller, which nothing would create again
    #[arg(long)]
    pub(super) force: bool,

    /// Evict pods with emptyDir volumes, whose data is lost
    #[arg(long = "delete-emptydir-data")]
    pub(super) delete_emptydir_data: bool,
}

/// Reason why a pod is left on the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skipped {
    /// A `DaemonSet` would create it again.
    DaemonSet,
    /// The kubelet runs it from a file.
    Static,
    /// It was created after the cordon, which it tolerates; another one like it would follow.
    MayReturn,
}

/// Treatment of a pod on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It is left on the node.
    Skip(Skipped),
    /// It is terminating.
    AwaitEnd,
    /// Its `GameDeployment` is being deleted, and it with it.
    AwaitDeletion(String),
    /// Its removal is requested; the request is valid for this long.
    Request(SignedDuration),
    /// It is evicted.
    Evict,
}

/// Reason why a pod is evicted only with a flag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Objection {
    /// It belongs to a `GameDeployment`, and no hook would run first.
    Unguarded { game: String, because: &'static str },
    /// It was guarded by a `GameDeployment` that no longer owns it.
    Orphaned,
    /// Nothing would create it again.
    WithoutController,
    /// Its data would be lost.
    LocalStorage,
}

/// A pod on the node, with its treatment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlannedPod {
    /// `namespace/name`.
    pub(super) label: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) treatment: Treatment,
    objections: Vec<Objection>,
    /// UID of its `GameDeployment`.
    pub(super) game_uid: Option<String>,
    /// The pod as it was read.
    pub(super) object: Pod,
}

/// Treatment of all pods on the node.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) pods: Vec<PlannedPod>,
}

impl Plan {
    /// Decides on the pods of a node. `before`: UIDs of the pods that were on the node when it was cordoned, if it was.
    pub(super) fn of(pods: Vec<Pod>, games: &OwningGames, before: Option<&BTreeSet<String>>) -> Self {
        let planned = pods.into_iter().map(|pod| PlannedPod::of(pod, games, before));
        Self {
            pods: planned.collect(),
        }
    }

    /// Returns the pods that must leave the node.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &PlannedPod> {
        let is_skipped = |pod: &PlannedPod| matches!(pod.treatment, Treatment::Skip(_));
        self.pods.iter().filter(move |pod| !is_skipped(pod))
    }

    /// Returns the UIDs of all pods.
    pub(super) fn uids(&self) -> BTreeSet<String> {
        self.pods.iter().map(|pod| pod.uid.clone()).collect()
    }

    /// Describes the pods that are left on the node; nothing if there are none.
    pub(super) fn skipped(&self) -> Option<String> {
        let mut counts: BTreeMap<Skipped, usize> = BTreeMap::new();
        for pod in &self.pods {
            if let Treatment::Skip(why) = pod.treatment {
                *counts.entry(why).or_default() += 1;
            }
        }
        let total: usize = counts.values().sum();
        let kinds: Vec<String> = counts
            .into_iter()
            .map(|(why, count)| match why {
                Skipped::DaemonSet => format!("{count} of DaemonSets"),
                Skipped::Static => format!("{count} static"),
                Skipped::MayReturn => format!("{count} created after the cordon"),
            })
            .collect();
        (total > 0).then(|| format!("{} ({})", count_pods(total), kinds.join(", ")))
    }

    /// Describes the pods that may not be evicted, each kind with its remedy; nothing if there are none.
    pub(super) fn objections(&self, permits: Permits) -> Vec<String> {
        let mut found: BTreeMap<&Objection, Vec<&str>> = BTreeMap::new();
        for pod in &self.pods {
            let objections = pod.objections.iter();
            for objection in objections.filter(|objection| !objection.is_permitted(permits)) {
                found.entry(objection).or_default().push(&pod.label);
            }
        }
        let sentences = found.into_iter();
        sentences
            .map(|(objection, pods)| objection.sentence(&pods))
            .collect()
    }
}

impl PlannedPod {
    fn of(pod: Pod, games: &OwningGames, before: Option<&BTreeSet<String>>) -> Self {
        let namespace = pod.namespace().unwrap_or_default();
        let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
        let game_uid = game_of(&pod).map(|owner| owner.uid.clone());
        let (treatment, objections) = treat(&pod, games, before);
        Self {
            label: label(&pod),
            namespace,
            name,
            uid,
            treatment,
            objections,
            game_uid,
            object: pod,
        }
    }
}

/// Returns whether the treatment of a pod depends on its `GameDeployment`.
pub(super) fn depends_on_game(pod: &Pod) -> bool {
    let facts = PodFacts::read(pod);
    !facts.terminating && !has_ended(&facts) && game_of(pod).is_some()
}

fn has_ended(pod: &PodFacts) -> bool {
    matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed)
}

/// Returns the treatment of a pod, and objections to it, in the order of the filters of `kubectl drain`.
fn treat(pod: &Pod, games: &OwningGames, before: Option<&BTreeSet<String>>) -> (Treatment, Vec<Objection>) {
    let facts = PodFacts::read(pod);
    let has_ended = has_ended(&facts);
    let controller = controller_of(pod);
    let is_new = before.is_some_and(|before| !before.contains(&facts.uid));
    let skipped = if pod.annotations().contains_key(STATIC) {
        Some(Skipped::Static)
    } else if !has_ended && controller.is_some_and(|owner| owner.kind == "DaemonSet") {
        Some(Skipped::DaemonSet)
    } else {
        (is_new && facts.may_return).then_some(Skipped::MayReturn)
    };
    if let Some(skipped) = skipped {
        return (Treatment::Skip(skipped), Vec::new());
    }
    if facts.terminating {
        return (Treatment::AwaitEnd, Vec::new());
    }
    if has_ended {
        return (Treatment::Evict, Vec::new());
    }
    if let Some(owner) = game_of(pod) {
        let protection = games
            .get(&owner.uid)
            .map_or(Protection::Gone, |game| game.protection);
        let treatment = match protection {
            Protection::Asks(valid_for) => Treatment::Request(valid_for),
            Protection::Deleted => Treatment::AwaitDeletion(owner.name.clone()),
            Protection::Unguarded { .. } | Protection::WithoutHook | Protection::Gone => Treatment::Evict,
        };
        let objection = protection.objection().map(|because| Objection::Unguarded {
            game: format!("{}/{}", pod.namespace().unwrap_or_default(), owner.name),
            because,
        });
        return (treatment, objection.into_iter().collect());
    }
    let lost = controller.is_none().then(|| match facts.guard_label() {
        None => Objection::WithoutController,
        Some(_) => Objection::Orphaned,
    });
    let storage = has_local_storage(pod).then_some(Objection::LocalStorage);
    (Treatment::Evict, lost.into_iter().chain(storage).collect())
}

fn has_local_storage(pod: &Pod) -> bool {
    let spec = pod.spec.iter();
    let mut volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
    volumes.any(|volume| volume.empty_dir.is_some())
}

impl Objection {
    fn is_permitted(&self, permits: Permits) -> bool {
        match self {
            Self::Unguarded { .. } | Self::Orphaned => permits.evict_unguarded,
            Self::WithoutController => permits.force,
            Self::LocalStorage => permits.delete_emptydir_data,
        }
    }

    fn sentence(&self, pods: &[&str]) -> String {
        let (count, names) = (count_pods(pods.len()), listed(pods));
        match self {
            Self::Unguarded { game, because } => format!(
                "{count} of GameDeployment {game}: {because}; or evict them with --evict-unguarded, which disconnects \
                 their players: {names}"
            ),
            Self::Orphaned => format!(
                "{count} whose GameDeployment no longer owns {them}, so no hook would run; apply it again, so that it \
                 adopts {them}; or evict {them} with --evict-unguarded, which disconnects players: {names}",
                them = if pods.len() == 1 { "it" } else { "them" }
            ),
            Self::WithoutController => format!(
                "{count} without a controller, which nothing would create again; evict them with --force: {names}"
            ),
            Self::LocalStorage => format!(
                "{count} with emptyDir volumes, whose data would be lost; evict them with --delete-emptydir-data: \
                 {names}"
            ),
        }
    }
}

/// Formats a number of pods.
pub(super) fn count_pods(count: usize) -> String {
    let noun = if count == 1 { "pod" } else { "pods" };
    format!("{count} {noun}")
}

/// Lists names; of many, the first ones.
fn listed(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().take(MAX_NAMES).copied().collect();
    let more = names.len() - shown.len();
    let shown = shown.join(", ");
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more")
    }
}

#[cfg(test)]
pub(super) mod tests;
