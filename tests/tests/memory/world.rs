//! Both operators over all namespaces, each with its Lease: one tenant with large objects, and others with work.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use operator_tests::fleet::Who;
use operator_tests::hook_rights::{grant_to_operator, hooks_kubeconfig_with_token};
use operator_tests::proof::Extent;
use operator_tests::{Fleet, Operator, Programs, Start, allow_election};
use serde_json::json;
use test_kit::assets::{self, Profile};
use test_kit::{Answer, ControlPlane, Webhook, eventually};

use crate::PATIENCE;
use crate::api::RawApi;
use crate::printer::Printer;

/// Operators that cargo built for this suite, in its profile.
const OF_SUITE: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};
pub(crate) const BOTH: [Who; 2] = [Who::Workloads, Who::Hooks];
/// Flag without which hooks cannot reach the servers of the tests.
pub(crate) const LOOPBACK: &str = "--egress-allow-loopback";
/// Duration of a Lease. A leader that was killed holds it for so long.
const LEASE: &str = "15s";

/// Returns whether the operators are optimized, as users run them: where the numbers of objects are whole, since it takes
/// minutes to build them.
pub(crate) fn are_optimized() -> bool {
    !cfg!(debug_assertions) || Extent::asked() != Extent::Sample
}

/// Returns the operators.
pub(crate) fn programs() -> Programs {
    static RELEASE: LazyLock<Programs> = LazyLock::new(|| {
        let built = |who: Who| -> &'static str {
            let path = assets::built(who.name(), Profile::Release).unwrap();
            path.to_str().unwrap().to_owned().leak()
        };
        Programs {
            workloads: built(Who::Workloads),
            hooks: built(Who::Hooks),
        }
    });
    if are_optimized() && cfg!(debug_assertions) {
        *RELEASE
    } else {
        OF_SUITE
    }
}

/// Tenants of a cluster, and both operators.
pub(crate) struct World<'c> {
    /// Workloads of a tenant, with nodes.
    pub(crate) fleet: Fleet<'c>,
    pub(crate) api: RawApi,
    pub(crate) printer: Printer,
    /// Namespace of the tenant with large objects. Lists are sorted: it comes first.
    pub(crate) hostile: String,
    /// Namespace of a tenant with HookRuns.
    pub(crate) runs: String,
    /// Server that the hooks of the other tenants ask. It allows everything, except at paths where it refuses.
    pub(crate) server: Webhook,
    /// Server that the hooks of the tenant with large objects ask. It allows nothing yet.
    pub(crate) hostile_server: Webhook,
    /// Namespace of the Leases.
    leases: String,
    /// Kubeconfig with which hook-operator carries out ExecutionHooks.
    executions: Option<PathBuf>,
    /// Number of names that were given.
    names: Cell<usize>,
    /// Pods of the workload `growing`.
    pub(crate) grown: Cell<usize>,
}

impl<'c> World<'c> {
    /// Returns tenants whose operators are down.
    pub(crate) async fn without_operators(control_plane: &'c ControlPlane) -> Self {
        let hostile = control_plane.namespace("a-hostile").await;
        let runs = control_plane.namespace("y-runs").await;
        let leases = control_plane.namespace("leases").await;
        let fleet = Fleet::on(control_plane, programs(), "z-games").await;
        allow_election(control_plane, &leases);
        let (server, hostile_server) = (Webhook::start().unwrap(), Webhook::start().unwrap());
        server.otherwise(Answer::json(json!({ "age": 45 })));
        hostile_server.otherwise(Answer::json(json!({ "age": 1 })));
        let api = RawApi::of(control_plane);
        let mut world = Self {
            fleet,
            printer: Printer::of(&api),
            api,
            hostile,
            runs,
            server,
            hostile_server,
            leases,
            executions: None,
            names: Cell::new(0),
            grown: Cell::new(0),
        };
        world.kill();
        world
    }

    pub(crate) async fn on(control_plane: &'c ControlPlane) -> Self {
        let mut world = Self::without_operators(control_plane).await;
        world.start().await;
        world
    }

    /// Makes hook-operator carry out ExecutionHooks when it starts again.
    pub(crate) async fn allow_executions(&mut self) {
        grant_to_operator(self.fleet.control_plane).await;
        self.executions = Some(hooks_kubeconfig_with_token(self.fleet.control_plane).await);
    }

    /// Starts both operators, and waits until they lead and are ready.
    pub(crate) async fn start(&mut self) {
        for who in BOTH {
            let start = self.start_of(who);
            self.fleet.start_unready(who, &start);
        }
        for who in BOTH {
            until_it_works(self.operator(who)).await;
        }
    }

    /// Kills both operators, stores a run of another tenant, and starts them again. Returns the time from the start to
    /// that run's question.
    pub(crate) async fn restart(&mut self) -> Duration {
        self.kill();
        let name = self.new_name("restart");
        let path = format!("/{name}");
        self.create_run(&name, &path, json!({})).await;
        let begun = Instant::now();
        self.start().await;
        let asked = self.server.await_requests(&path, 1, PATIENCE).await.unwrap();
        asked[0].at.saturating_duration_since(begun)
    }

    fn kill(&mut self) {
        (self.fleet.workloads, self.fleet.hooks) = (None, None);
    }

    fn start_of(&self, who: Who) -> Start {
        let mut flags = vec![
            "--lease-namespace",
            self.leases.as_str(),
            "--lease-duration",
            LEASE,
        ];
        flags.extend((who == Who::Hooks).then_some(LOOPBACK));
        let executions = self.executions.as_ref().filter(|_| who == Who::Hooks);
        flags.extend(executions.map(|_| "--execution-hooks"));
        let start = self.fleet.start_of(who, None).in_all_namespaces();
        let start = start.flags(&flags).elects();
        match executions {
            Some(kubeconfig) => start.kubeconfig(kubeconfig),
            None => start,
        }
    }

    pub(crate) fn operator(&self, who: Who) -> &Operator {
        self.fleet.operator(who).unwrap()
    }

    /// Returns the holders of both Leases, and how often they have changed.
    pub(crate) async fn leads(&self) -> Vec<(Option<String>, Option<i32>)> {
        let leases: Api<Lease> = Api::namespaced(self.fleet.client(), &self.leases);
        let mut leads = Vec::new();
        for who in BOTH {
            let lease = leases.get(who.name()).await.unwrap().spec.unwrap();
            leads.push((lease.holder_identity, lease.lease_transitions));
        }
        leads
    }

    /// Returns a new name.
    pub(crate) fn new_name(&self, prefix: &str) -> String {
        let number = self.names.get() + 1;
        self.names.set(number);
        format!("{prefix}-{number}")
    }
}

/// Waits until an operator leads, and is ready: it has listed everything.
async fn until_it_works(operator: &Operator) {
    eventually(PATIENCE, || async {
        let metrics = operator.ask("/metrics").await?.1;
        let mut lines = metrics.lines();
        let leads = lines.any(|line| line.starts_with("hookgate_leader{") && line.ends_with(" 1"));
        let (status, checks) = operator.ask("/readyz").await?;
        if leads && status == 200 {
            Ok(())
        } else {
            Err(format!("{checks}\n{}", operator.process.tail(5)))
        }
    })
    .await;
}
