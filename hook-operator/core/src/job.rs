//! Job of a measurement: its name and its object.
//!
//! The name is a function of the run and the measurement, so a Job is created once for each measurement: after a
//! restart, or beside another leader, the second creation finds the first Job.

use serde_json::{Map, Value, json};
use shared_api::HookRun;
use shared_api::names::{GROUP, VERSION, job};

use crate::decide::MeasurementKey;
use crate::hex_digest::hex_digest;
use crate::request::JobRequest;

/// Longest name of a Job, in bytes: the Job controller copies it to a label of the pods.
const MAX_NAME_BYTES: usize = 63;
/// Bytes of the digest in a name; each has two digits.
const DIGEST_BYTES: usize = 8;

/// Returns the name of the Job of a measurement. It depends on the metric and the arguments as they are in the
/// spec, so an edited run gets other Jobs.
pub fn job_name(run: &HookRun, key: &MeasurementKey) -> String {
    let MeasurementKey { metric, number } = key;
    let spec = run
        .spec
        .metrics
        .iter()
        .find(|candidate| candidate.name == *metric);
    let identity = json!([run.metadata.uid, metric, number, spec, run.spec.args]);
    let digest = hex_digest(identity.to_string(), DIGEST_BYTES);
    let name = run.metadata.name.as_deref().unwrap_or_default();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let room = MAX_NAME_BYTES - 2 * DIGEST_BYTES - 1;
    let beginning: String = name.chars().map(plain).take(room).collect();
    format!("{}-{digest}", beginning.trim_matches('-'))
}

/// Returns the Job to create. The HookRun owns it, so that it is deleted with the HookRun.
pub fn job_of(run: &HookRun, key: &MeasurementKey, request: &JobRequest) -> Value {
    let JobRequest {
        labels,
        annotations,
        spec,
        ..
    } = request;
    let uid = run.metadata.uid.as_deref().unwrap_or_default();
    let name = run.metadata.name.as_deref().unwrap_or_default();
    let mut labels = labels.clone();
    labels.insert(job::RUN_UID.to_owned(), uid.to_owned());
    let mut annotations = annotations.clone();
    annotations.insert(job::RUN.to_owned(), name.to_owned());
    annotations.insert(job::METRIC.to_owned(), key.metric.clone());
    annotations.insert(job::MEASUREMENT.to_owned(), key.number.to_string());
    let mut spec = spec.clone();
    if let Some(labels) = labels_of_pods(&mut spec) {
        labels.insert(job::RUN_UID.to_owned(), json!(uid));
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(run, key),
            "namespace": run.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": "HookRun",
                "name": name,
                "uid": uid,
                "controller": true,
                // True would need the right to update finalizers of HookRuns.
                "blockOwnerDeletion": false,
            }],
        },
        "spec": spec,
    })
}

/// Returns the labels of the pod template, which are created if they are absent.
fn labels_of_pods(spec: &mut Value) -> Option<&mut Map<String, Value>> {
    let mut at = spec.get_mut("template")?;
    for field in ["metadata", "labels"] {
        let next = at.as_object_mut()?.entry(field).or_insert(Value::Null);
        if next.is_null() {
            *next = json!({});
        }
        at = next;
    }
    at.as_object_mut()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn run(name: &str, uid: &str, command: &str) -> HookRun {
        let spec = json!({ "metrics": [
            { "name": "check", "provider": { "job": { "spec": { "command": command } } } },
            { "name": "web", "provider": { "web": { "url": "http://game/" } } },
        ] });
        let metadata = json!({ "name": name, "namespace": "games", "uid": uid });
        serde_json::from_value(json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun", "metadata": metadata, "spec": spec,
        }))
        .unwrap()
    }

    fn key(metric: &str, number: i64) -> MeasurementKey {
        MeasurementKey {
            metric: metric.to_owned(),
            number,
        }
    }

    #[test]
    fn each_measurement_of_each_run_and_each_edit_has_a_name_of_its_own_and_always_the_same() {
        let one = run("arena", "1", "a");
        assert_eq!(
            job_name(&one, &key("check", 0)),
            job_name(&one.clone(), &key("check", 0))
        );
        let mut stopped = one.clone();
        stopped.spec.terminate = Some(true);
        assert_eq!(
            job_name(&one, &key("check", 0)),
            job_name(&stopped, &key("check", 0))
        );
        let names = BTreeSet::from([
            job_name(&one, &key("check", 0)),
            job_name(&one, &key("check", 1)),
            job_name(&one, &key("web", 0)),
            job_name(&run("arena", "2", "a"), &key("check", 0)),
            job_name(&run("arena", "1", "b"), &key("check", 0)),
        ]);
        assert_eq!(names.len(), 5, "{names:?}");
    }

    #[test]
    fn a_name_is_a_label_value_whatever_the_name_of_the_run_is() {
        let long = "a.".repeat(126);
        for name in ["a", "arena-1.2", "-", &long, "é"] {
            let name = job_name(&run(name, "1", "a"), &key("check", 0));
            let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.len() <= 63 && name.chars().all(good), "{name}");
            assert!(!name.ends_with('-'), "{name}");
        }
    }

    #[test]
    fn the_labels_of_this_system_win_and_those_of_the_author_stay() {
        let request = |spec: Value| JobRequest {
            labels: BTreeMap::from([("team".to_owned(), "arena".to_owned())]),
            annotations: BTreeMap::new(),
            spec,
            result_container: None,
            shows_messages: false,
            bytes: 0,
        };
        for (template, wanted) in [
            (json!({}), json!({ "tkex.tencent.com/hook-run-uid": "1" })),
            (
                json!({ "metadata": null }),
                json!({ "tkex.tencent.com/hook-run-uid": "1" }),
            ),
            (
                json!({ "metadata": { "labels": { "a": "b" } } }),
                json!({ "a": "b", "tkex.tencent.com/hook-run-uid": "1" }),
            ),
        ] {
            let job = job_of(
                &run("arena", "1", "a"),
                &key("check", 0),
                &request(json!({ "template": template })),
            );
            assert_eq!(job["spec"]["template"]["metadata"]["labels"], wanted);
            let labels = json!({ "team": "arena", "tkex.tencent.com/hook-run-uid": "1" });
            assert_eq!(job["metadata"]["labels"], labels);
            assert_eq!(job["metadata"]["ownerReferences"][0]["uid"], "1");
        }
    }
}
