//! Small handmade audit logs, with the objects of one namespace behind them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use witness::{Report, Scope};

pub(crate) const OPERATOR: &str = "system:serviceaccount:hookgate:gamedeployment-operator";
pub(crate) const HOOKS: &str = "system:serviceaccount:hookgate:hook-operator";
pub(crate) const SOMEBODY: &str = "jane";

/// Old revision of the pods, and the one that they are updated to.
pub(crate) const OLD: &str = "arena-1";
pub(crate) const NEW: &str = "arena-2";

/// User, verb, resource and subresource of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a>(
    pub(crate) &'a str,
    pub(crate) &'a str,
    pub(crate) &'a str,
    pub(crate) &'a str,
);

/// Log under construction.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    revision: u64,
    now: Timestamp,
    pub(crate) lines: Vec<String>,
    objects: BTreeMap<(String, String), Value>,
}

impl Log {
    /// Starts a log with a node and a workload `arena` with this spec.
    pub(crate) fn of(spec: Value) -> Self {
        let mut log = Self {
            revision: 100,
            now: "2026-01-02T03:04:05Z".parse().unwrap(),
            lines: Vec::new(),
            objects: BTreeMap::new(),
        };
        log.put(SOMEBODY, "nodes", "node", json!({}));
        log.put(SOMEBODY, "gamedeployments", "arena", json!({ "spec": spec }));
        log
    }

    pub(crate) fn wait(&mut self, milliseconds: i64) {
        self.now += SignedDuration::from_millis(milliseconds);
    }

    pub(crate) fn object(&self, resource: &str, name: &str) -> Value {
        self.objects[&(resource.to_owned(), name.to_owned())].clone()
    }

    /// Adds a line with this response and status 200.
    pub(crate) fn line(&mut self, call: Call<'_>, name: &str, request: Value, response: Value) {
        self.answered(call, name, (request, response), 200);
    }

    pub(crate) fn answered(
        &mut self,
        Call(user, verb, resource, subresource): Call<'_>,
        name: &str,
        (request, response): (Value, Value),
        code: u64,
    ) {
        let received = self.now;
        self.wait(10);
        let line = json!({
            "stage": "ResponseComplete", "verb": verb, "requestURI": format!("/{resource}/{name}"),
            "user": { "username": "admin" }, "impersonatedUser": { "username": user },
            "objectRef": { "resource": resource, "subresource": subresource, "namespace": "games", "name": name },
            "responseStatus": { "code": code },
            "requestObject": request, "responseObject": response,
            "requestReceivedTimestamp": received, "stageTimestamp": self.now,
        });
        self.wait(10);
        self.lines.push(line.to_string());
    }

    /// Merges a change into an object, or creates it, and logs that as a write.
    pub(crate) fn write(&mut self, call: Call<'_>, name: &str, request: Value, change: Value) {
        self.revision += 1;
        let key = (call.2.to_owned(), name.to_owned());
        let object = self.objects.entry(key).or_insert_with(|| json!({}));
        merge(object, change);
        let uid = format!("uid-of-{name}");
        let said = json!({ "name": name, "uid": uid, "resourceVersion": self.revision.to_string() });
        merge(object, json!({ "metadata": said }));
        let response = object.clone();
        self.line(call, name, request, response);
    }

    pub(crate) fn put(&mut self, user: &str, resource: &str, name: &str, change: Value) {
        self.write(Call(user, "create", resource, ""), name, change.clone(), change);
    }

    /// Changes the workload's spec, as a user would.
    pub(crate) fn edit(&mut self, spec: Value) {
        let patch = json!({ "spec": spec });
        self.write(
            Call(SOMEBODY, "patch", "gamedeployments", ""),
            "arena",
            patch.clone(),
            patch,
        );
    }

    /// Creates a pod as the operator; nothing runs in it yet.
    pub(crate) fn newborn(&mut self, name: &str) {
        self.newborn_of(name, OLD);
    }

    /// Creates a pod of this revision as the operator.
    pub(crate) fn newborn_of(&mut self, name: &str, revision: &str) {
        let owner = json!({ "kind": "GameDeployment", "controller": true, "uid": "uid-of-arena" });
        let pod = json!({
            "metadata": { "ownerReferences": [owner], "labels": { "controller-revision-hash": revision } },
            "spec": {
                "containers": [{ "name": "game", "image": "game:v1" }],
                "readinessGates": [{ "conditionType": "InPlaceUpdateReady" }],
            },
        });
        self.put(OPERATOR, "pods", name, pod);
    }

    /// Creates a pod as the operator and runs it as the kubelet, ready for a long time according to its
    /// condition.
    pub(crate) fn pod(&mut self, name: &str) {
        self.newborn(name);
        let status = json!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z" }],
            "containerStatuses": [{ "name": "game", "containerID": "c", "state": { "running": {} } }],
        });
        self.kubelet(name, json!({ "spec": { "nodeName": "node" }, "status": status }));
    }

    /// Reports a pod's status as the kubelet.
    pub(crate) fn kubelet(&mut self, name: &str, change: Value) {
        self.write(
            Call("kubelet", "patch", "pods", "status"),
            name,
            change.clone(),
            change,
        );
    }

    /// Creates a HookRun for a pod as the operator, and merges `special` into it.
    pub(crate) fn ask(&mut self, run: &str, pod: &str, intent: &str, special: Value) {
        let kind = if intent.starts_with("in-place") {
            "pre-inplace-step"
        } else {
            "pre-delete-step"
        };
        let owner = json!({ "kind": "GameDeployment", "controller": true, "uid": "uid-of-arena" });
        let question = format!("{intent}@{}", self.revision);
        if self.objects.contains_key(&("pods".to_owned(), pod.to_owned())) {
            let notes = json!({ "tkex.tencent.com/hook-question": question });
            self.patch(pod, "", json!({ "metadata": { "annotations": notes } }));
        }
        let mut object = json!({ "metadata": {
            "ownerReferences": [owner],
            "annotations": { "tkex.tencent.com/intent": intent, "tkex.tencent.com/question": question },
            "labels": {
                "tkex.tencent.com/pod-uid": format!("uid-of-{pod}"),
                "hookrun-type": kind,
                "workload-revision": OLD,
            },
        }});
        merge(&mut object, special);
        self.put(OPERATOR, "hookruns", run, object);
    }

    /// Writes a successful verdict as this user.
    pub(crate) fn say_yes(&mut self, user: &str, run: &str) {
        let result = json!({ "name": "players", "phase": "Successful", "successful": 1,
            "measurements": [{ "phase": "Successful" }] });
        let patch = json!({ "status": { "phase": "Successful", "metricResults": [result] } });
        self.write(
            Call(user, "patch", "hookruns", "status"),
            run,
            patch.clone(),
            patch,
        );
    }

    /// Creates a run for a deletion, and lets it succeed.
    pub(crate) fn allow(&mut self, run: &str, pod: &str) {
        self.ask(run, pod, "delete", json!({}));
        self.say_yes(HOOKS, run);
    }

    /// Returns the operator's request to delete a pod.
    pub(crate) fn preconditions(&self, pod: &str) -> Value {
        let metadata = &self.object("pods", pod)["metadata"];
        json!({ "preconditions": { "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"] } })
    }

    /// Deletes a pod as the operator; the pod then terminates gracefully.
    pub(crate) fn delete(&mut self, pod: &str) {
        let request = self.preconditions(pod);
        let ending = json!({ "deletionTimestamp": self.now, "deletionGracePeriodSeconds": 30 });
        let call = Call(OPERATOR, "delete", "pods", "");
        self.write(call, pod, request, json!({ "metadata": ending }));
    }

    /// Removes an object other than a pod, as this user.
    pub(crate) fn remove(&mut self, user: &str, resource: &str, name: &str) {
        let uid = format!("uid-of-{name}");
        let (request, answer) = (
            json!({ "preconditions": { "uid": uid } }),
            json!({ "details": { "uid": uid } }),
        );
        self.line(Call(user, "delete", resource, ""), name, request, answer);
    }

    /// Removes all objects that match a selector, as this user.
    pub(crate) fn remove_many(&mut self, user: &str, resource: &str, names: &[&str], selector: &str) {
        let items: Vec<Value> = names.iter().map(|name| self.object(resource, name)).collect();
        let call = Call(user, "deletecollection", resource, "");
        let uri = format!("?labelSelector={selector}");
        self.line(call, &uri, Value::Null, json!({ "items": items }));
    }

    /// Patches a pod as the operator, with the required preconditions.
    pub(crate) fn patch(&mut self, pod: &str, subresource: &str, change: Value) {
        let mut request = change.clone();
        let metadata = &self.object("pods", pod)["metadata"];
        request["metadata"]["uid"] = metadata["uid"].clone();
        request["metadata"]["resourceVersion"] = metadata["resourceVersion"].clone();
        self.write(Call(OPERATOR, "patch", "pods", subresource), pod, request, change);
    }

    pub(crate) fn report(&self) -> Report {
        self.report_with(&[])
    }

    pub(crate) fn report_with(&self, forbidden: &[String]) -> Report {
        self.report_in(&Scope {
            namespace: "games",
            workloads: OPERATOR,
            hooks: HOOKS,
            forbidden,
            blind: SignedDuration::ZERO,
            with_older: false,
        })
    }

    /// Returns the report on a namespace in which an older build works, too.
    pub(crate) fn report_with_older(&self) -> Report {
        self.report_in(&Scope {
            namespace: "games",
            workloads: OPERATOR,
            hooks: HOOKS,
            forbidden: &[],
            blind: SignedDuration::ZERO,
            with_older: true,
        })
    }

    fn report_in(&self, scope: &Scope<'_>) -> Report {
        witness::examine(self.lines.iter().map(String::as_str), scope)
    }

    /// Asserts that nothing was wrong and something was judged.
    pub(crate) fn is_clean(&self) {
        let report = self.report();
        assert!(report.judged > 0);
        assert_eq!(report.violations, []);
    }

    /// Asserts that exactly one thing was wrong; its message contains these words.
    pub(crate) fn is_caught(&self, words: &str) {
        let violations = self.report().violations;
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(
            texts.len() == 1 && texts[0].contains(words),
            "{words}: {texts:#?}"
        );
    }
}

/// Merges objects recursively and replaces lists.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
