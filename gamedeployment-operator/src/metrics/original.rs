//! Metrics of the original operator, for existing dashboards. Their label `gd` is NAMESPACE/NAME.

use std::time::Duration;

use gamedeployment_core::gate::OpenReason;
use gamedeployment_core::plan::{Action, GatedWrite};
use operator_runtime::metrics::{Durations, Label, Labels, original_status, original_version};
use operator_runtime::watch::NamespacedName;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use shared_api::GameDeploymentStatus;

/// Names and help texts of the pod gauges.
const PODS: [(&str, &str); 5] = [
    ("replicas", "Desired number of pods"),
    ("ready_replicas", "Ready pods"),
    (
        "available_replicas",
        "Available pods: ready for at least minReadySeconds",
    ),
    ("updated_replicas", "Pods at the update revision"),
    ("updated_ready_replicas", "Ready pods at the update revision"),
];

/// Metrics of the original operator.
#[derive(Debug, Clone, Default)]
pub(super) struct Original {
    reconciled: Durations,
    created: Durations,
    updated: Durations,
    deleted: Durations,
    pods: [Family<Labels, Gauge>; PODS.len()],
}

/// Write that the original operator measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// Creation of a pod.
    Create,
    /// Update of a pod.
    Update {
        /// Whether the pod stays in service.
        hot: bool,
        /// Whether a hook approved it.
        grace: bool,
    },
    /// Deletion of a pod.
    Delete {
        /// Whether the pod is deleted to be replaced.
        recreates: bool,
        /// Whether a hook approved it.
        grace: bool,
    },
}

impl Timed {
    /// Maps an action to the original's measure, if there is one.
    pub fn of(action: &Action) -> Option<Self> {
        let grace = |open_reason: &OpenReason| {
            matches!(
                open_reason,
                OpenReason::Verdict { .. } | OpenReason::AlreadyStarted
            )
        };
        match action {
            Action::CreatePod(_) => Some(Self::Create),
            Action::Gated(GatedWrite::WriteUpdate(update, _)) => Some(Self::Update {
                hot: update.hot(),
                grace: grace(update.open_reason()),
            }),
            Action::Gated(GatedWrite::DeletePod(delete)) => Some(Self::Delete {
                recreates: delete.recreates(),
                grace: grace(delete.open_reason()),
            }),
            Action::Gated(GatedWrite::SetNotReady(..) | GatedWrite::Confirm(_))
            | Action::CreateRevision(_)
            | Action::AdoptRevision(_)
            | Action::RenumberRevision(..)
            | Action::DeleteRevision(_)
            | Action::AdoptPod(_)
            | Action::ReleasePod(_)
            | Action::DryRunPod(..)
            | Action::RecordSelection(..)
            | Action::NoteQuestion(..)
            | Action::ClearSelection(..)
            | Action::SetDrainingLabels(..)
            | Action::SetGuardLabel(..)
            | Action::SetAutoscalerAnnotations(..)
            | Action::WithdrawRequests(..)
            | Action::SetReady(..)
            | Action::CreateRun(_)
            | Action::DeleteRun(_)
            | Action::TerminateRun(_)
            | Action::ResetRetry(_)
            | Action::Pause
            | Action::AddFinalizer
            | Action::RemoveFinalizer(_) => None,
        }
    }
}

impl Original {
    pub(super) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("bkbcs_gamedeployment");
        let help = "Time from a decision to the end of its writes";
        self.reconciled
            .register(registry, "reconcile_duration_seconds", help);
        for (durations, name, help) in [
            (
                &self.created,
                "pod_create_duration_seconds",
                "Duration of a call that creates a pod",
            ),
            (
                &self.updated,
                "pod_update_duration_seconds",
                "Duration of a call that updates a pod",
            ),
            (
                &self.deleted,
                "pod_delete_duration_seconds",
                "Duration of a call that deletes a pod",
            ),
        ] {
            durations.register_with_extremes(registry, name, help);
        }
        for ((name, help), family) in PODS.into_iter().zip(&self.pods) {
            registry.register(name, help, family.clone());
        }
        let kinds = [("crd_version", shared_api::names::VERSION)];
        original_version(registry, "GameDeployment", env!("CARGO_PKG_VERSION"), &kinds);
    }

    pub(super) fn reconciled(&self, key: &NamespacedName, good: bool, took: Duration) {
        let labels = [original_status(good)];
        self.reconciled.observe(&key.0, &[gd(key)], &labels, took);
    }

    pub(super) fn wrote(&self, key: &NamespacedName, what: Timed, good: bool, took: Duration) {
        let (durations, grace, action) = match what {
            Timed::Create => {
                let labels = [original_status(good)];
                return self.created.observe(&key.0, &[gd(key)], &labels, took);
            }
            Timed::Update { hot: true, grace } => (&self.updated, grace, "hotPatchUpdate"),
            Timed::Update { hot: false, grace } => (&self.updated, grace, "inplaceUpdate"),
            Timed::Delete {
                recreates: true,
                grace,
            } => (&self.deleted, grace, "rollingUpdate"),
            Timed::Delete {
                recreates: false,
                grace,
            } => (&self.deleted, grace, "deletePod"),
        };
        let labels = [
            original_status(good),
            ("grace", grace.to_string()),
            ("action", action.to_owned()),
        ];
        durations.observe(&key.0, &[gd(key)], &labels, took);
    }

    pub(super) fn report(&self, key: &NamespacedName, wanted: i32, status: &GameDeploymentStatus) {
        let counts = [
            wanted,
            status.ready_replicas,
            status.available_replicas,
            status.updated_replicas,
            status.updated_ready_replicas,
        ];
        for (family, count) in self.pods.iter().zip(counts) {
            family.get_or_create(&vec![gd(key)]).set(count.into());
        }
    }

    pub(super) fn forget(&self, key: &NamespacedName) {
        let gd = gd(key);
        for durations in [&self.reconciled, &self.created, &self.updated, &self.deleted] {
            durations.forget(&gd);
        }
        for family in &self.pods {
            family.remove(&vec![gd.clone()]);
        }
    }
}

fn gd(key: &NamespacedName) -> Label {
    ("gd", format!("{}/{}", key.0, key.1))
}
