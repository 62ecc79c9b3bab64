//! Entries of the removal guard in the ValidatingWebhookConfiguration. If one is missing or changed, removals bypass
//! the guard although it responds, so gamedeployment-operator must not report it as in effect.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::{
    RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARD_ASK};

/// Time for which the entries count as known: the configuration is read every 30 s.
const KNOWN_FOR: Duration = Duration::from_mins(2);
/// Policy of each entry.
const FAIL: &str = "Fail";
/// Entry that reviews the check of gamedeployment-operator. If the other entries select at least its namespaces, they
/// include that of the check.
const OF_LABELS: Entry = Entry {
    name: "removal-guard-labels.hookgate.tkex.tencent.com",
    operation: "UPDATE",
    resource: "pods",
    may_select_pods: true,
};
/// All entries, as in `helm/templates/admission.yaml`.
const ENTRIES: [Entry; 4] = [
    Entry {
        name: "removals.hookgate.tkex.tencent.com",
        operation: "DELETE",
        resource: "pods",
        may_select_pods: true,
    },
    Entry {
        name: "evictions.hookgate.tkex.tencent.com",
        operation: "CREATE",
        resource: "pods/eviction",
        may_select_pods: false,
    },
    Entry {
        name: "namespaces.hookgate.tkex.tencent.com",
        operation: "DELETE",
        resource: "namespaces",
        may_select_pods: false,
    },
    OF_LABELS,
];

/// Entry of the configuration.
struct Entry {
    name: &'static str,
    operation: &'static str,
    resource: &'static str,
    /// Allows an `objectSelector` for pods with the label [`REMOVAL_GUARD`].
    may_select_pods: bool,
}

/// Whether the configuration has all entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardEntries {
    /// It has all of them.
    Complete,
    /// Some are missing or changed, as this message says.
    Incomplete(String),
    /// It has not been read yet, or not for some time.
    Unknown,
}

impl GuardEntries {
    /// Compares the configuration with the entries. `found`: `None` if it does not exist. Other fields, such as
    /// `matchConditions` and timeouts, may differ.
    #[must_use]
    pub fn of(found: Option<&ValidatingWebhookConfiguration>) -> Self {
        let webhooks = found
            .and_then(|found| found.webhooks.as_deref())
            .unwrap_or_default();
        let of_labels = OF_LABELS.among(webhooks);
        let differences = ENTRIES.iter().filter_map(|entry| {
            let name = entry.name;
            match entry.among(webhooks) {
                None => Some(format!("webhook {name} is missing")),
                Some(webhook) => entry
                    .difference(webhook, of_labels)
                    .map(|difference| format!("webhook {name} {difference}")),
            }
        });
        let differences: Vec<String> = differences.collect();
        if differences.is_empty() {
            Self::Complete
        } else {
            Self::Incomplete(differences.join("; "))
        }
    }
}

impl Entry {
    fn among<'w>(&self, webhooks: &'w [ValidatingWebhook]) -> Option<&'w ValidatingWebhook> {
        webhooks.iter().find(|webhook| webhook.name == self.name)
    }

    /// Returns why a webhook reviews less than this entry; `None` if it does not. `of_labels`: the webhook for
    /// [`OF_LABELS`].
    fn difference(
        &self,
        webhook: &ValidatingWebhook,
        of_labels: Option<&ValidatingWebhook>,
    ) -> Option<String> {
        let policy = webhook.failure_policy.as_deref().unwrap_or(FAIL);
        if policy != FAIL {
            return Some(format!("has failurePolicy {policy} instead of {FAIL}"));
        }
        if !webhook.rules.iter().flatten().any(|rule| self.is_in(rule)) {
            let (operation, resource) = (self.operation, self.resource);
            return Some(format!("has no rule for the operation {operation} of {resource}"));
        }
        let namespaces = requirements(webhook.namespace_selector.as_ref());
        let of_check = of_labels.map(|of_labels| requirements(of_labels.namespace_selector.as_ref()));
        if of_check.is_some_and(|of_check| !namespaces.is_subset(&of_check)) {
            return Some(format!(
                "has a different namespaceSelector than {}",
                OF_LABELS.name
            ));
        }
        let guarded = Requirement::equal(REMOVAL_GUARD, REMOVAL_GUARD_ASK);
        let mut objects = requirements(webhook.object_selector.as_ref()).into_iter();
        if objects.any(|requirement| !self.may_select_pods || requirement != guarded) {
            return Some("has a different objectSelector".to_owned());
        }
        None
    }

    /// Returns whether a rule includes the writes of this entry.
    fn is_in(&self, rule: &RuleWithOperations) -> bool {
        let has = |values: Option<&Vec<String>>, wanted: &str| {
            values.is_some_and(|values| values.iter().any(|value| value == wanted || value == "*"))
        };
        let scope = if self.resource == "namespaces" {
            "Cluster"
        } else {
            "Namespaced"
        };
        // As in the API server: without a slash, `*` includes no subresources; `pods/*` includes `pods`.
        let (resource, subresource) = split(self.resource);
        let is_resource = |of_rule: &String| {
            let of_rule = split(of_rule);
            ["*", resource].contains(&of_rule.0) && ["*", subresource].contains(&of_rule.1)
        };
        rule.resources.iter().flatten().any(is_resource)
            && has(rule.operations.as_ref(), self.operation)
            && has(rule.api_groups.as_ref(), "")
            && has(rule.api_versions.as_ref(), "v1")
            && ["*", scope].contains(&rule.scope.as_deref().unwrap_or("*"))
    }
}

/// Returns a resource and its subresource, which is empty if there is none.
fn split(resource: &str) -> (&str, &str) {
    resource.split_once('/').unwrap_or((resource, ""))
}

/// Requirement of a selector.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Requirement<'s> {
    key: &'s str,
    operator: &'s str,
    values: BTreeSet<&'s str>,
}

impl<'s> Requirement<'s> {
    /// Returns the requirement that `matchLabels` spells as a label.
    fn equal(key: &'s str, value: &'s str) -> Self {
        Self {
            key,
            operator: "In",
            values: BTreeSet::from([value]),
        }
    }
}

/// Returns the requirements of a selector. Without any, it selects everything.
fn requirements(selector: Option<&LabelSelector>) -> BTreeSet<Requirement<'_>> {
    let labels = selector.and_then(|selector| selector.match_labels.as_ref());
    let labels = labels.into_iter().flatten();
    let expressions = selector.and_then(|selector| selector.match_expressions.as_ref());
    let expressions = expressions.into_iter().flatten().map(|expression| Requirement {
        key: &expression.key,
        operator: &expression.operator,
        values: expression.values.iter().flatten().map(String::as_str).collect(),
    });
    labels
        .map(|(key, value)| Requirement::equal(key, value))
        .chain(expressions)
        .collect()
}

/// Entries as they were last read.
#[derive(Debug, Default)]
pub struct KnownEntries(Mutex<Option<(GuardEntries, Instant)>>);

impl KnownEntries {
    /// Records the entries of the configuration, which was read just now.
    pub fn set(&self, entries: GuardEntries) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((entries, Instant::now()));
    }

    /// Returns the entries.
    pub fn get(&self) -> GuardEntries {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((entries, at)) if at.elapsed() < KNOWN_FOR => entries.clone(),
            Some(_) | None => GuardEntries::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
