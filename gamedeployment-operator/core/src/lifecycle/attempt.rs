//! HookRun of an attempt: its name, its spec and the variables of its Jobs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};
use shared_api::hook_run::HookRunSpec;
use shared_api::json_text::JsonText;
use shared_api::metric::{Argument, JobProvider, Metric, Provider};
use shared_api::names::{
    self, argument, hook_kind, hook_run_annotation as annotation, hook_run_label as label, rollout_variable,
};
use shared_api::reason::WorkloadReason;

use super::new_pod;
use crate::digest::digest_of_text;
use crate::facts::Facts;
use crate::gate::{HookBlocker, NewRun, Run, owned, render};
use crate::revision::Revision;
use crate::spec_digest::SpecDigest;
use crate::workload::{Carrier, LifecycleHook};

/// Revisions of a rollout.
pub(super) struct Revisions<'a> {
    /// Revision that pods are updated from; `None` for the first rollout.
    pub(super) from: Option<&'a Revision>,
    /// Revision that pods are updated to.
    pub(super) to: &'a Revision,
}

impl<'a> Revisions<'a> {
    pub(super) fn of(facts: &Facts<'a>, is_first: bool) -> Self {
        let history = &facts.history;
        let is_other = |revision: &&Revision| !history.is_updated(&revision.name);
        let from = if is_first {
            None
        } else {
            // Back at the last complete revision, the rollout replaces the one that did not complete.
            let newest = || {
                history
                    .revisions()
                    .filter(is_other)
                    .max_by_key(|revision| revision.number)
            };
            Some(history.current).filter(is_other).or_else(newest)
        };
        Self {
            from,
            to: history.update,
        }
    }

    /// Returns the environment variables of Jobs.
    fn variables(&self, namespace: &str) -> [(&'static str, String); 3] {
        let name = |revision: &Revision| format!("{namespace}/{}", revision.name);
        [
            (rollout_variable::FROM, self.from.map(name).unwrap_or_default()),
            (rollout_variable::TO, name(self.to)),
            (rollout_variable::TYPE, self.type_().to_owned()),
        ]
    }

    /// Returns the arguments of HookTemplates. They name revisions as the label of pods does.
    fn arguments(&self) -> [(&'static str, String); 3] {
        let name = |revision: &Revision| revision.name.clone();
        [
            (argument::ROLLOUT_FROM, self.from.map(name).unwrap_or_default()),
            (argument::ROLLOUT_TO, name(self.to)),
            (argument::ROLLOUT_TYPE, self.type_().to_owned()),
        ]
    }

    fn type_(&self) -> &'static str {
        if self.to.is_reused { "ROLLBACK" } else { "ROLLOUT" }
    }
}

/// Returns the name of the HookRun of an attempt. The number of the revision differs between two rollouts to the
/// same revision.
pub(super) fn name(to: &Revision, hook: &str, attempt: i32) -> String {
    format!("{}{attempt}", name_prefix(to, hook))
}

fn name_prefix(to: &Revision, hook: &str) -> String {
    format!("lifecycle-{}-{}-{hook}-", to.name, to.number)
}

/// Returns the highest number of an attempt whose HookRun exists, although the status records none: it belongs to an
/// earlier GameDeployment with this revision, or to a hook that was removed and came back.
pub(super) fn last_number(facts: &Facts<'_>, hook: &str) -> i32 {
    let prefix = name_prefix(facts.history.update, hook);
    let runs = facts.view.runs.iter();
    let numbers = runs.filter_map(|run| run.name.strip_prefix(&prefix)?.parse().ok());
    numbers.max().unwrap_or(0)
}

/// Returns the intent of an attempt.
pub(super) fn intent(revision: &str, hook: &str, attempt: i32) -> String {
    format!("lifecycle:{revision}:{hook}:{attempt}")
}

/// Returns the HookRun of an attempt.
pub(super) fn new_run(
    facts: &Facts<'_>,
    revisions: &Revisions<'_>,
    hook: &LifecycleHook,
    attempt: i32,
) -> Result<NewRun, HookBlocker> {
    let (workload, to) = (facts.workload, revisions.to);
    let name = name(to, &hook.name, attempt);
    let mut spec = match &hook.carrier {
        Carrier::Template(step) => {
            let template = facts.view.cluster.template(&step.template_name);
            render(step, template, &revisions.arguments())?
        }
        Carrier::Job(spec) => of_job(&hook.name, spec.clone(), Vec::new()),
        Carrier::NewPod(exec) => {
            let mut spec = new_pod::job_spec(exec, &to.template)?;
            let mut arguments = Vec::new();
            new_pod::without_placeholders(&mut spec, &mut arguments);
            of_job(&hook.name, JsonText::from(spec), arguments)
        }
    };
    let variables = revisions.variables(&workload.namespace);
    let jobs = spec
        .metrics
        .iter_mut()
        .filter_map(|metric| metric.provider.job.as_mut());
    jobs.for_each(|job| {
        let mut spec = job.spec.value();
        set_variables(&mut spec, &variables);
        job.spec = JsonText::from(spec);
        let labels = job
            .metadata
            .get_or_insert_default()
            .labels
            .get_or_insert_default();
        labels.insert(label::REVISION.to_owned(), to.name.clone());
    });
    let mut labels = vec![
        (label::TYPE, hook_kind::LIFECYCLE.to_owned()),
        (label::REVISION, to.name.clone()),
        (label::LIFECYCLE_HOOK, hook.name.clone()),
        (label::NAME_DIGEST, digest_of_text(&name)),
    ];
    let of_workload = workload.label_of_runs();
    labels.extend(of_workload.map(|(key, name)| (key, name.to_owned())));
    let own = |(key, value): (&str, String)| (key.to_owned(), value);
    let notes = [
        (annotation::INTENT, intent(&to.name, &hook.name, attempt)),
        (annotation::RETAIN_POLICY, hook.retain_policy.as_str().to_owned()),
    ];
    let metadata = ObjectMeta {
        labels: Some(labels.into_iter().map(own).collect()),
        annotations: Some(notes.into_iter().map(own).collect()),
        ..owned(&name, &workload.namespace, owner(to))
    };
    Ok(NewRun::with_own_spec(metadata, spec))
}

/// Returns the spec of a run with one Job.
fn of_job(hook: &str, spec: JsonText, arguments: Vec<Argument>) -> HookRunSpec {
    let job = JobProvider {
        spec,
        ..JobProvider::default()
    };
    HookRunSpec {
        metrics: vec![Metric {
            name: hook.to_owned(),
            provider: Provider {
                job: Some(Box::new(job)),
                ..Provider::default()
            },
            ..Metric::default()
        }],
        args: (!arguments.is_empty()).then_some(arguments),
        ..HookRunSpec::default()
    }
}

/// Sets variables in all containers that do not set them. They come first, so that other variables may refer to
/// them.
fn set_variables(job: &mut Value, variables: &[(&str, String)]) {
    let Some(spec) = job.pointer_mut("/template/spec") else {
        return;
    };
    for list in ["initContainers", "containers"] {
        let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            let own = container
                .get("env")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let is_free = |name: &str| own.iter().all(|variable| variable["name"] != name);
            let free = variables.iter().filter(|(name, _)| is_free(name));
            let set = free.map(|(name, value)| json!({ "name": name, "value": value }));
            let all: Vec<Value> = set.chain(own.iter().cloned()).collect();
            container.insert("env".to_owned(), Value::Array(all));
        }
    }
}

/// Returns a reference to a ControllerRevision as controller: its deletion deletes the HookRuns and their Jobs.
fn owner(revision: &Revision) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: names::CONTROLLER_REVISION.to_owned(),
        name: revision.name.clone(),
        uid: revision.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

/// Returns the blocker that a run with the name of an attempt is while it is being deleted.
pub(super) fn terminating(run: &Run) -> HookBlocker {
    HookBlocker::new(
        WorkloadReason::HookRunTerminating,
        format!(
            "waiting for HookRun {} to be deleted; if it is stuck, check its metadata.finalizers",
            run.name
        ),
    )
}

/// Checks that an existing run is the one of this attempt, as it was created. `digest` is that of its spec.
pub(super) fn check(run: &Run, intent: &str, digest: SpecDigest) -> Result<(), RunProblem> {
    if run.terminating {
        return Err(RunProblem::Blocked(terminating(run)));
    }
    if let Some(blocker) = run.unreadable_blocker() {
        return Err(RunProblem::Blocked(blocker));
    }
    if run.lifecycle().is_none() {
        return Err(RunProblem::Blocked(HookBlocker::conflict(
            &run.name,
            "does not belong to a lifecycle hook; delete it",
        )));
    }
    if !run.is_as_created(intent, digest) {
        return Err(RunProblem::Outdated);
    }
    Ok(())
}

/// Why an existing run does not count.
pub(super) enum RunProblem {
    /// It was edited, or its template has changed since: it is deleted and created again.
    Outdated,
    /// A person must act.
    Blocked(HookBlocker),
}
