//! Maintains the `Valid` condition of HookTemplates: a typo shows when the template is applied, not when a
//! pod waits.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fair_share::compute::Compute;
use futures::Stream;
use hook_core::resolve::{OptionalProviders, template_unreadable, template_valid, template_warnings};
use hook_core::value::cut;
use hook_driver::StoreError;
use hook_session::backend::ClusterProviders as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource as _;
use kube::core::ObjectMeta;
use kube::runtime::watcher::Event;
use operator_runtime::heartbeat::Heartbeats;
use operator_runtime::watch::{NamespacedName, Observed, key_of};
use shared_api::parsed::InvalidObject;
use shared_api::reason::{CONDITION_VALID, TemplateReason};
use shared_api::{HookTemplate, HookTemplateStatus};

use crate::act::ApiBackend;
use crate::latest_tasks::LatestTasks;
use crate::metrics::Metrics;

/// Longest message of a condition, in bytes; the API convention allows 32 KiB.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;
/// Pause between attempts of a failed write.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Processes watch events and keeps every template's condition up to date.
pub async fn drive(
    templates: impl Stream<Item = Observed<HookTemplate>>,
    heartbeats: &Heartbeats,
    backend: Arc<ApiBackend>,
    metrics: Metrics,
    compute: Compute,
) {
    let mut templates = std::pin::pin!(templates);
    let invalid = Invalid::new(metrics.clone());
    let mut writes = LatestTasks::default();
    // Unreadable generations, by template: the problem is recorded once for each.
    let mut refused: HashMap<NamespacedName, Generation> = HashMap::new();
    let heartbeat = heartbeats.of("hooktemplates");
    while let Some(event) = heartbeat.next(&mut templates).await {
        match event {
            Event::Init => invalid.clear(),
            Event::InitApply(template) | Event::Apply(template) => match template.0 {
                Ok(template) => {
                    let key = key_of(&template.metadata);
                    refused.remove(&key);
                    let (backend, compute) = (backend.clone(), compute.clone());
                    writes.start(key, keep_true(template, backend, invalid.clone(), compute));
                }
                Err(unreadable) => {
                    metrics.unreadable.inc();
                    let key = key_of(&unreadable.metadata);
                    invalid.set(key.clone(), true);
                    let name = unreadable.metadata.name.as_deref().unwrap_or_default();
                    tracing::warn!(name, error = unreadable.error, "a HookTemplate cannot be parsed");
                    let generation = (unreadable.metadata.uid.clone(), unreadable.metadata.generation);
                    let known = refused.insert(key.clone(), generation.clone());
                    if known.as_ref() != Some(&generation) {
                        writes.start(key, refuse(unreadable, backend.clone()));
                    }
                }
            },
            Event::Delete(template) => {
                let key = key_of(template.meta());
                refused.remove(&key);
                writes.cancel(&key);
                invalid.set(key, false);
            }
            Event::InitDone => {}
        }
    }
}

/// Checks a template and writes its condition if it changed. The check runs on another thread: compiling may
/// take a while, and the task that follows the watch has other work.
async fn keep_true(template: HookTemplate, backend: Arc<ApiBackend>, invalid: Invalid, compute: Compute) {
    let namespace = template.metadata.namespace.clone().unwrap_or_default();
    let enabled = backend.providers();
    let check = move || (assess(&template, &enabled, Timestamp::now()), template);
    let (status, template) = compute.run(&namespace, check).await;
    invalid.set(key_of(&template.metadata), !is_valid(&status));
    if template.status.as_ref() != Some(&status) {
        write(template.metadata, status, backend).await;
    }
}

/// Templates whose condition is False, for the gauge.
#[derive(Clone)]
struct Invalid {
    known: Arc<Mutex<HashSet<NamespacedName>>>,
    metrics: Metrics,
}

impl Invalid {
    fn new(metrics: Metrics) -> Self {
        Self {
            known: Arc::default(),
            metrics,
        }
    }

    fn set(&self, key: NamespacedName, invalid: bool) {
        self.change(|known| {
            if invalid {
                known.insert(key);
            } else {
                known.remove(&key);
            }
        });
    }

    fn clear(&self) {
        self.change(HashSet::clear);
    }

    fn change(&self, change: impl FnOnce(&mut HashSet<NamespacedName>)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut known);
        let count = i64::try_from(known.len()).unwrap_or(i64::MAX);
        self.metrics.invalid_templates.set(count);
    }
}

/// Returns the status that a template should have.
fn assess(template: &HookTemplate, enabled: &OptionalProviders, now: Timestamp) -> HookTemplateStatus {
    let problems = enabled.check_template(&template.spec);
    let (status, reason, message) = if problems.is_empty() {
        let warnings = template_warnings(&template.spec);
        (
            "True",
            TemplateReason::SpecValid,
            cut(&template_valid(&warnings), MAX_MESSAGE_BYTES),
        )
    } else {
        (
            "False",
            TemplateReason::SpecInvalid,
            cut(&problems.to_string(), MAX_MESSAGE_BYTES),
        )
    };
    let before = template.status.iter().flat_map(|status| &status.conditions);
    let before: Vec<_> = before
        .filter(|condition| condition.type_ != CONDITION_VALID || condition.status == status)
        .collect();
    let unchanged = before.iter().find(|condition| condition.type_ == CONDITION_VALID);
    let since = unchanged.map_or_else(|| Time(now), |condition| condition.last_transition_time.clone());
    let valid = condition(&template.metadata, status, reason, message, since);
    let others = before
        .iter()
        .filter(|condition| condition.type_ != CONDITION_VALID);
    let conditions = others
        .map(|condition| (*condition).clone())
        .chain([valid])
        .collect();
    HookTemplateStatus {
        observed_generation: template.metadata.generation,
        conditions,
    }
}

/// Returns the status of an unreadable template. It is the same every time.
fn unreadable(invalid: &InvalidObject) -> HookTemplateStatus {
    let InvalidObject { error, metadata, .. } = invalid;
    let since = metadata
        .creation_timestamp
        .clone()
        .unwrap_or(Time(Timestamp::UNIX_EPOCH));
    let message = template_unreadable(error);
    let valid = condition(metadata, "False", TemplateReason::SpecInvalid, message, since);
    HookTemplateStatus {
        observed_generation: metadata.generation,
        conditions: vec![valid],
    }
}

fn condition(
    metadata: &ObjectMeta,
    status: &str,
    reason: TemplateReason,
    message: String,
    since: Time,
) -> Condition {
    Condition {
        last_transition_time: since,
        message,
        observed_generation: metadata.generation,
        reason: reason.to_string(),
        status: status.to_owned(),
        type_: CONDITION_VALID.to_owned(),
    }
}

fn is_valid(status: &HookTemplateStatus) -> bool {
    status
        .conditions
        .iter()
        .any(|condition| condition.type_ == CONDITION_VALID && condition.status == "True")
}

/// UID and generation.
type Generation = (Option<String>, Option<i64>);

/// Records on a template that it cannot be read.
async fn refuse(invalid: InvalidObject, backend: Arc<ApiBackend>) {
    let status = unreadable(&invalid);
    // Omit the version: nobody else writes this status, and an unrelated change must not end the attempt.
    let metadata = ObjectMeta {
        resource_version: None,
        ..invalid.metadata
    };
    write(metadata, status, backend).await;
}

/// Retries until the status is written or the watch has shown or will show something newer.
async fn write(template: ObjectMeta, status: HookTemplateStatus, backend: Arc<ApiBackend>) {
    // Emit the event first: the watch may show the written status before the answer arrives, which ends this
    // task.
    if !is_valid(&status) {
        let valid = status.conditions.last();
        let message = valid.map_or("", |condition| condition.message.as_str());
        backend.warn_template(&template, TemplateReason::SpecInvalid.as_str(), message);
    }
    while let Err(error) = backend.record_template(&template, &status).await {
        if matches!(error, StoreError::Conflict | StoreError::Gone) {
            return;
        }
        tracing::warn!(%error, name = template.name, "failed to write the condition of a HookTemplate; retrying");
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(condition: &str) -> HookTemplate {
        serde_json::from_value(serde_json::json!({
            "metadata": { "name": "t", "generation": 3 },
            "spec": { "metrics": [{
                "name": "web", "interval": "x", "successCondition": condition,
                "provider": { "web": { "url": "http://{{ args.PodIP }}:9091" } }
            }], "args": [{ "name": "PodIP" }] }
        }))
        .unwrap()
    }

    #[test]
    fn all_problems_are_named_and_the_transition_time_moves_only_with_the_status() {
        let first = assess(
            &template("result >"),
            &OptionalProviders::default(),
            Timestamp::from_second(100).unwrap(),
        );
        let condition = first.conditions.first().unwrap();
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_str()),
            ("False", "SpecInvalid")
        );
        assert!(
            condition.message.contains("metrics[0].interval"),
            "{}",
            condition.message
        );
        assert!(
            condition.message.contains("metrics[0].successCondition"),
            "{}",
            condition.message
        );
        let again = HookTemplate {
            status: Some(first.clone()),
            ..template("result >")
        };
        assert_eq!(
            assess(
                &again,
                &OptionalProviders::default(),
                Timestamp::from_second(200).unwrap()
            ),
            first
        );
    }
}
