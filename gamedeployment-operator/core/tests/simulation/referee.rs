//! Watches from outside that nobody who may be playing is thrown out: knows what really happened, and shares nothing
//! with the gate.

use std::collections::{BTreeMap, BTreeSet};

use gamedeployment_core::gate::{Delete, Grounds, HookKind, Run, Update};
use gamedeployment_core::plan::{Action, PodChange};
use gamedeployment_core::template::Template;
use shared_api::Phase;
use shared_api::names::pod as names;

use crate::kubelet::Process;
use crate::world::{Cell, Snapshot};
use crate::writes::has_hook;

/// A question as it was put.
#[derive(Debug)]
struct Asked {
    run: Run,
    at: u64,
    /// The processes that it was about.
    processes: Vec<String>,
    yes: bool,
    used: bool,
}

/// What was begun in a pod with a yes.
#[derive(Debug, Default)]
struct Begun {
    to: String,
    /// Containers whose images were written since.
    written: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct Referee {
    asked: BTreeMap<String, Asked>,
    /// By UID of the pod: since when, and for what, it is chosen.
    chosen: BTreeMap<String, (u64, String)>,
    out: BTreeMap<String, Begun>,
}

fn processes(cell: &Cell) -> Vec<String> {
    let containers = cell.machine.containers.iter();
    containers
        .filter(|container| matches!(container.process, Process::Runs { .. }))
        .map(|container| container.id.clone())
        .collect()
}

impl Referee {
    pub fn asked<'a>(&mut self, run: &Run, mut pods: impl Iterator<Item = &'a Cell>, at: u64) {
        let cell = pods.find(|cell| Some(&cell.read.uid) == run.pod_uid.as_ref());
        let processes = cell.map(processes).unwrap_or_default();
        let asked = Asked {
            run: run.clone(),
            at,
            processes,
            yes: false,
            used: false,
        };
        self.asked.insert(run.uid.clone(), asked);
    }

    pub fn answered(&mut self, run: &Run) {
        if let Some(asked) = self.asked.get_mut(&run.uid) {
            asked.yes = run.phase == Phase::Successful && run.measured;
        }
    }

    /// An older operator has begun an update: it was approved, and its images are still to be written.
    pub fn begun_before(&mut self, cell: &Cell, to: &str) {
        let begun = Begun {
            to: to.to_owned(),
            written: ["game".to_owned(), "side".to_owned()].into(),
        };
        self.out.insert(cell.read.uid.clone(), begun);
    }

    pub fn changed(&mut self, cell: &Cell, action: &Action, at: u64) {
        let uid = cell.read.uid.clone();
        match action {
            Action::Mark(_, text) => {
                let intent = text.rsplit_once('@').unwrap().0.to_owned();
                self.chosen.insert(uid, (at, intent));
            }
            Action::Unmark(_) => drop(self.chosen.remove(&uid)),
            Action::PutIn(..) => drop(self.out.remove(&uid)),
            _ => {}
        }
    }

    /// Uses up a yes for this pod and this intent, which must be newer than `since`.
    fn use_up(&mut self, cell: &Cell, kind: HookKind, intent: &str, since: u64) {
        let pod = &cell.read;
        let now = processes(cell);
        let found = self.asked.values_mut().find(|asked| {
            asked.yes
                && !asked.used
                && asked.at > since
                && asked.run.kind == Some(kind)
                && asked.run.intent.as_deref() == Some(intent)
                && asked.run.pod_uid.as_deref() == Some(&pod.uid)
                && asked.run.revision == pod.revision()
                && asked.processes.iter().all(|id| {
                    // One that has ended and was not started again has nobody in it.
                    let mut containers = cell.machine.containers.iter();
                    now.contains(id)
                        || containers.all(|container| container.id == *id || !name_in(id, &container.id))
                })
        });
        let Some(asked) = found else {
            panic!(
                "nobody said yes to {intent} of {pod:?}, chosen at {since}:\n{:#?}",
                self.asked
            );
        };
        asked.used = true;
    }

    fn is_free(cell: &Cell, seen: &Snapshot) -> bool {
        let gone = cell
            .machine
            .node
            .as_ref()
            .is_some_and(|node| seen.gone.contains(node));
        let skipped = cell.read.annotation(names::SKIP_HOOK) == Some(&cell.read.uid);
        gone || skipped || !cell.machine.has_players()
    }

    pub fn deletes(&mut self, cell: &Cell, delete: &Delete, seen: &Snapshot) {
        let grounds = delete.grounds();
        if Self::is_free(cell, seen) {
            return;
        }
        let chosen = self.chosen.get(&cell.read.uid).cloned();
        // An update that recreates a pod is one, as long as there is that update and the pod is not of it.
        // A template that was set back is wanted before its revision is the newest again.
        let wanted = Template::read(&seen.object.spec.template);
        let wanted =
            |to: &str| { seen.revisions.iter() }.any(|known| known.name == to && known.template == wanted);
        let lists = seen.object.spec.scale_strategy.iter();
        let mut named = lists.flat_map(|scale| scale.pods_to_delete.iter().flatten());
        let recreates = chosen.as_ref().is_some_and(|(_, intent)| {
            let to = intent.strip_prefix("recreate:");
            to.is_some_and(|to| to != cell.read.revision() && wanted(to))
        }) && !named.any(|name| *name == cell.read.name);
        let kinds: &[HookKind] = if recreates {
            &[HookKind::PreDelete, HookKind::PreInplace]
        } else {
            &[HookKind::PreDelete]
        };
        let Some(kind) = kinds.iter().copied().find(|kind| has_hook(seen, *kind)) else {
            return;
        };
        assert!(
            matches!(grounds, Grounds::Verdict { .. }),
            "{grounds:?}: {:?}",
            cell.read
        );
        let Some((since, intent)) = chosen else {
            panic!("{:?} was not chosen", cell.read);
        };
        self.use_up(cell, kind, &intent, since);
    }

    fn gate_of_update(seen: &Snapshot) -> Option<HookKind> {
        [HookKind::PreInplace, HookKind::PreDelete]
            .into_iter()
            .find(|kind| has_hook(seen, *kind))
    }

    pub fn takes_out(&mut self, cell: &Cell, update: &Update, seen: &Snapshot) {
        assert!(!update.hot() && cell.read.has_readiness_gate);
        let uid = &cell.read.uid;
        let goes_on = self.out.get(uid).is_some_and(|begun| {
            begun.to == update.to()
                || (!begun.written.is_empty() && modified(cell, update, seen).is_subset(&begun.written))
        });
        if !goes_on
            && !Self::is_free(cell, seen)
            && let Some(kind) = Self::gate_of_update(seen)
        {
            self.use_up(cell, kind, &format!("in-place:{}", update.to()), 0);
        }
        let begun = self.out.entry(uid.clone()).or_default();
        update.to().clone_into(&mut begun.to);
    }

    pub fn updates(&mut self, cell: &Cell, update: &Update, change: &PodChange, seen: &Snapshot) {
        if update.hot() {
            return;
        }
        // Without the readiness gate nothing keeps players out: each write needs a yes of its own.
        let gated = cell.read.has_readiness_gate;
        if gated && !change.images.is_empty() {
            assert!(
                cell.read.is_out_of_service(),
                "images of a pod in service are changed: {:?}",
                cell.read
            );
        }
        if let Some(begun) = self.out.get_mut(&cell.read.uid).filter(|_| gated) {
            assert!(begun.to == update.to(), "taken out for {}", begun.to);
            begun.written.extend(change.images.keys().cloned());
            return;
        }
        assert!(!gated || change.images.is_empty());
        if !Self::is_free(cell, seen)
            && let Some(kind) = Self::gate_of_update(seen)
        {
            self.use_up(cell, kind, &format!("in-place:{}", update.to()), 0);
        }
    }
}

/// Ids end with the image's name; both are of one container where these are alike.
fn name_in(one: &str, two: &str) -> bool {
    let name = |id: &str| {
        id.rsplit('-')
            .next()
            .and_then(|image| image.split(':').next())
            .map(str::to_owned)
    };
    name(one) == name(two)
}

/// The containers whose images an update changes.
fn modified(cell: &Cell, update: &Update, seen: &Snapshot) -> BTreeSet<String> {
    let target = seen
        .revisions
        .iter()
        .find(|revision| revision.name == update.to())
        .unwrap();
    let wanted = target.template.containers();
    let differs = |container: &&gamedeployment_core::pod::Container| {
        wanted
            .iter()
            .any(|wanted| wanted.name == container.name && wanted.image != container.image)
    };
    cell.read
        .containers
        .iter()
        .filter(differs)
        .map(|container| container.name.clone())
        .collect()
}
