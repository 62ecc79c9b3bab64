//! Brings a workload into a state through its own decisions: carries out each plan at once, without failures.

use std::collections::{BTreeMap, HashSet};

use gamedeployment_core::cluster::{Cluster, FoundTemplate, Node};
use gamedeployment_core::decide::decide;
use gamedeployment_core::gate::{NewRun, PodRef, Run, Update};
use gamedeployment_core::plan::{Action, GatedWrite, NewRevision, Plan, PodChange};
use gamedeployment_core::pod::{InPlaceCondition, Pod};
use gamedeployment_core::revision::{Revision, template_in};
use gamedeployment_core::view::View;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as api;
use serde_json::Value;
use shared_api::names::pod as annotation;
use shared_api::{GameDeployment, HookTemplateSpec, Phase};

use crate::{Outcome, manifests};

/// Maximum number of decisions to reach a state.
const DECISIONS: usize = 20;

/// Complete state of a workload.
pub(crate) struct Fleet {
    pub(crate) object: GameDeployment,
    pub(crate) runs: Vec<Run>,
    pods: Vec<Pod>,
    /// Index of each pod by name.
    places: BTreeMap<String, usize>,
    revisions: Vec<Revision>,
    around: Around,
    now: Timestamp,
}

/// Surroundings of the workload.
struct Around {
    template: HookTemplateSpec,
    runs: HashSet<String>,
}

impl Cluster for Around {
    fn template(&self, _: &str) -> FoundTemplate<'_> {
        FoundTemplate::Found(&self.template)
    }

    fn node(&self, _: &str) -> Node {
        Node::Ready
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn is_new_question(&self, pod: &Pod) -> bool {
        pod.annotation(annotation::QUESTION).is_some()
    }

    fn has_run(&self, _: &str, name: &str) -> bool {
        self.runs.contains(name)
    }

    fn has_pod(&self, name: &str) -> bool {
        !name.is_empty()
    }
}

/// Returns a revision as it is known once it has been recorded.
pub(crate) fn recorded(new: NewRevision) -> Outcome<Revision> {
    Ok(Revision {
        uid: format!("uid-{}", new.name),
        name: new.name,
        resource_version: "1".to_owned(),
        number: new.number,
        is_reused: false,
        template: template_in(&new.data).ok_or("the revision holds no template")?,
        orphan: None,
    })
}

impl Fleet {
    /// Returns a workload with this many pods in service, already reflected in the status.
    pub(crate) fn launch(pods: usize, hooks: Value) -> Outcome<Self> {
        let mut fleet = Self {
            object: serde_json::from_value(manifests::workload(pods, hooks))?,
            runs: Vec::new(),
            pods: Vec::new(),
            places: BTreeMap::new(),
            revisions: Vec::new(),
            around: Around {
                template: serde_json::from_value(manifests::hook())?,
                runs: HashSet::new(),
            },
            now: "2026-01-02T00:00:00Z".parse()?,
        };
        fleet.step()?;
        let revision = fleet
            .revisions
            .first()
            .ok_or("no revision was asked for")?
            .name
            .clone();
        for number in 0..pods {
            let pod: api::Pod = serde_json::from_value(manifests::pod(number, &revision))?;
            let pod = Pod::read(&pod);
            fleet.places.insert(pod.name.clone(), number);
            fleet.pods.push(pod);
        }
        fleet.until(Plan::is_empty)?;
        Ok(fleet)
    }

    /// Decides and carries out plans until one satisfies the predicate; does not carry that one out.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Plan) -> bool) -> Outcome<()> {
        for _ in 0..DECISIONS {
            let plan = self.decide();
            if wanted(&plan) {
                return Ok(());
            }
            self.carry_out(plan)?;
        }
        Err("the state that is to be measured is not reached".into())
    }

    /// Decides once and carries out the plan.
    pub(crate) fn step(&mut self) -> Outcome<()> {
        let plan = self.decide();
        self.carry_out(plan)
    }

    /// Edits the spec.
    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut GameDeployment)) {
        edit(&mut self.object);
        let generation = &mut self.object.metadata.generation;
        *generation = generation.map(|generation| generation + 1);
    }

    /// Passes the known objects to a closure, as the operator's index does.
    pub(crate) fn seen<T>(&self, with: impl FnOnce(&View<'_>, Timestamp) -> T) -> T {
        let pods: Vec<&Pod> = self.pods.iter().collect();
        let runs: Vec<&Run> = self.runs.iter().collect();
        let revisions: Vec<&Revision> = self.revisions.iter().collect();
        let view = View {
            object: &self.object,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted: None,
            write_errors: None,
            guard_check: None,
            cluster: &self.around,
        };
        with(&view, self.now)
    }

    fn decide(&self) -> Plan {
        self.seen(decide)
    }

    fn carry_out(&mut self, plan: Plan) -> Outcome<()> {
        self.now += SignedDuration::from_secs(1);
        for action in plan.actions {
            self.write(action)?;
        }
        if let Some(status) = plan.status {
            self.object.status = Some(*status);
        }
        Ok(())
    }

    fn write(&mut self, action: Action) -> Outcome<()> {
        match action {
            Action::CreateRevision(new) => self.revisions.push(recorded(new)?),
            Action::CreateRun(new) => self.ask(&new),
            Action::RecordSelection(at, text, _) => {
                let notes = &mut self.pod(&at)?.annotations;
                notes.insert(annotation::DELETING.to_owned(), "true".to_owned());
                notes.insert(annotation::CHOSEN_FOR.to_owned(), text.clone());
                notes.insert(annotation::QUESTION.to_owned(), text);
            }
            Action::NoteQuestion(at, question, _) => {
                let notes = &mut self.pod(&at)?.annotations;
                notes.insert(annotation::QUESTION.to_owned(), question.text);
            }
            Action::Gated(GatedWrite::SetNotReady(update, since)) => {
                self.pod(update.pod())?.in_place = Some(InPlaceCondition {
                    ready: false,
                    target: update.to().to_owned(),
                    since: Some(since),
                });
            }
            Action::Gated(GatedWrite::WriteUpdate(update, change)) => self.update(&update, *change)?,
            other => return Err(format!("nobody expected {other:?}").into()),
        }
        Ok(())
    }

    fn pod(&mut self, at: &PodRef) -> Outcome<&mut Pod> {
        let place = self.places.get(&at.name);
        let pod = place.and_then(|place| self.pods.get_mut(*place));
        Ok(pod.ok_or("there is no such pod")?)
    }

    /// Creates a run and starts it.
    fn ask(&mut self, new: &NewRun) {
        let mut run = Run::read(&new.render());
        run.uid = format!("uid-{}", run.name);
        run.phase = Phase::Running;
        run.started = Some(self.now);
        self.around.runs.insert(run.name.clone());
        self.runs.push(run);
    }

    /// Writes the new images; the kubelet has not seen them yet.
    fn update(&mut self, update: &Update, change: PodChange) -> Outcome<()> {
        let pod = self.pod(update.pod())?;
        for container in &mut pod.containers {
            if let Some(image) = change.images.get(&container.name) {
                container.image.clone_from(image);
            }
        }
        for (map, changes) in [
            (&mut pod.labels, change.labels),
            (&mut pod.annotations, change.annotations),
        ] {
            for (key, value) in changes {
                match value {
                    Some(value) => drop(map.insert(key, value)),
                    None => drop(map.remove(&key)),
                }
            }
        }
        Ok(())
    }
}
