//! What this operator tells Prometheus. Labels of counters are classes; gauges name their workload and vanish with it.

use std::time::Duration;

use gamedeployment_core::plan::Gauges;
use operator_runtime::watch::Key;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use shared_api::GameDeploymentStatus;
use shared_api::reason::WorkloadCondition;

const SECONDS: [f64; 9] = [0.0001, 0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0];

/// The operator's own metrics.
#[derive(Debug, Clone)]
pub struct Metrics {
    decisions: Counter,
    decision_seconds: Histogram,
    actions: Family<ActionLabels, Counter>,
    /// Objects that could not be read as their kind.
    pub unreadable: Counter,
    /// Objects read directly because the watch did not show a write in time, or its answer was lost.
    pub direct_reads: Counter,
    replicas: Family<ReplicaLabels, Gauge>,
    waiting: Family<WaitingLabels, Gauge>,
    waiting_since: Family<WorkloadLabels, Gauge>,
    blocked: Family<BlockedLabels, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkloadLabels {
    namespace: String,
    gamedeployment: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReplicaLabels {
    namespace: String,
    gamedeployment: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaitingLabels {
    namespace: String,
    gamedeployment: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BlockedLabels {
    namespace: String,
    gamedeployment: String,
    condition: &'static str,
}

/// Conditions that say that something needs a person.
const BLOCKED: [WorkloadCondition; 3] = [
    WorkloadCondition::ScaleBlocked,
    WorkloadCondition::UpdateBlocked,
    WorkloadCondition::InvalidSpec,
];

impl Default for Metrics {
    fn default() -> Self {
        Self {
            decisions: Counter::default(),
            decision_seconds: Histogram::new(SECONDS),
            actions: Family::default(),
            unreadable: Counter::default(),
            direct_reads: Counter::default(),
            replicas: Family::default(),
            waiting: Family::default(),
            waiting_since: Family::default(),
            blocked: Family::default(),
        }
    }
}

impl Metrics {
    /// Offers everything at `/metrics`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("hookgate_gamedeployment");
        registry.register("decisions", "Decisions taken", self.decisions.clone());
        let help = "Time that a decision took, without the writes that follow";
        registry.register("decision_seconds", help, self.decision_seconds.clone());
        let help = "Writes by kind and outcome (done, conflict, gone, refused, unknown)";
        registry.register("actions", help, self.actions.clone());
        registry.register(
            "unreadable",
            "Objects that could not be read as their kind",
            self.unreadable.clone(),
        );
        let help =
            "Objects read directly, because a write's answer was lost or the watch did not show it in time";
        registry.register("direct_reads", help, self.direct_reads.clone());
        registry.register(
            "pods",
            "Pods by state, as the workload's status counts them",
            self.replicas.clone(),
        );
        let help = "Pods that wait for a hook: asking (no verdict yet), refused (no success), blocked (cannot be asked)";
        registry.register("hook_waiting_pods", help, self.waiting.clone());
        let help = "When the longest-waiting pod began to wait, in seconds since 1970; 0: none waits";
        registry.register("hook_waiting_since_seconds", help, self.waiting_since.clone());
        let help = "1 while the condition is True: something needs a person";
        registry.register("blocked", help, self.blocked.clone());
    }

    /// A decision was taken.
    pub fn decided(&self, took: Duration) {
        self.decisions.inc();
        self.decision_seconds.observe(took.as_secs_f64());
    }

    /// A write was made, or not.
    pub fn acted(&self, action: &'static str, outcome: &'static str) {
        self.actions
            .get_or_create(&ActionLabels { action, outcome })
            .inc();
    }

    /// Where a workload stands.
    pub fn report(&self, key: &Key, status: &GameDeploymentStatus, gauges: Gauges) {
        let (namespace, gamedeployment) = key.clone();
        let counts = [
            ("total", status.replicas),
            ("ready", status.ready_replicas),
            ("available", status.available_replicas),
            ("updated", status.updated_replicas),
            ("updated_ready", status.updated_ready_replicas),
        ];
        for (state, count) in counts {
            let labels = ReplicaLabels {
                namespace: namespace.clone(),
                gamedeployment: gamedeployment.clone(),
                state,
            };
            self.replicas.get_or_create(&labels).set(i64::from(count));
        }
        for (state, count) in waiting_states(gauges) {
            let labels = WaitingLabels {
                namespace: namespace.clone(),
                gamedeployment: gamedeployment.clone(),
                state,
            };
            self.waiting
                .get_or_create(&labels)
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let since = gauges.waiting_since.map_or(0, jiff::Timestamp::as_second);
        self.waiting_since.get_or_create(&workload(key)).set(since);
        for condition in BLOCKED {
            let holds = |known: &&_| is_true(known, condition);
            let value = i64::from(status.conditions.iter().find(holds).is_some());
            self.blocked.get_or_create(&blocked(key, condition)).set(value);
        }
    }

    /// A workload is gone: its gauges go, too.
    pub fn forget(&self, key: &Key) {
        let (namespace, gamedeployment) = key;
        for state in ["total", "ready", "available", "updated", "updated_ready"] {
            let (namespace, gamedeployment) = (namespace.clone(), gamedeployment.clone());
            self.replicas.remove(&ReplicaLabels {
                namespace,
                gamedeployment,
                state,
            });
        }
        for (state, _) in waiting_states(Gauges::default()) {
            let (namespace, gamedeployment) = (namespace.clone(), gamedeployment.clone());
            self.waiting.remove(&WaitingLabels {
                namespace,
                gamedeployment,
                state,
            });
        }
        self.waiting_since.remove(&workload(key));
        for condition in BLOCKED {
            self.blocked.remove(&blocked(key, condition));
        }
    }
}

fn is_true(
    known: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition,
    condition: WorkloadCondition,
) -> bool {
    known.type_ == condition.as_str() && known.status == "True"
}

fn waiting_states(gauges: Gauges) -> [(&'static str, usize); 3] {
    [
        ("asking", gauges.asking),
        ("refused", gauges.refused),
        ("blocked", gauges.blocked),
    ]
}

fn workload(key: &Key) -> WorkloadLabels {
    WorkloadLabels {
        namespace: key.0.clone(),
        gamedeployment: key.1.clone(),
    }
}

fn blocked(key: &Key, condition: WorkloadCondition) -> BlockedLabels {
    BlockedLabels {
        namespace: key.0.clone(),
        gamedeployment: key.1.clone(),
        condition: condition.as_str(),
    }
}
