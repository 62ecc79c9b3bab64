//! Both operators over all namespaces: one of a tenant whose objects cannot be read, and those of other tenants.

use std::cell::Cell;

use operator_tests::fleet::Who;
use operator_tests::hook_rights::{grant_to_operator, hooks_kubeconfig_with_token};
use operator_tests::{Fleet, Operator, Programs, SOON, Start, allow_election};
use serde_json::json;
use test_kit::{Answer, ControlPlane, Webhook, eventually};

use crate::api::RawApi;

const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};
const BOTH: [Who; 2] = [Who::Workloads, Who::Hooks];
/// Flag without which hooks cannot reach the servers of the tests.
const LOOPBACK: &str = "--egress-allow-loopback";

/// Tenants of a cluster, and both operators.
pub(crate) struct World<'c> {
    /// Workloads of a tenant, with nodes.
    pub(crate) fleet: Fleet<'c>,
    pub(crate) api: RawApi,
    /// Namespace of the tenant whose objects cannot be read. Lists are sorted: it comes first.
    pub(crate) hostile: String,
    /// Namespace of a tenant with HookRuns.
    pub(crate) runs: String,
    /// Server that all hooks ask. It allows everything, except at paths where it refuses.
    pub(crate) server: Webhook,
    /// Number of names that were given.
    names: Cell<usize>,
}

impl<'c> World<'c> {
    pub(crate) async fn on(control_plane: &'c ControlPlane) -> Self {
        let hostile = control_plane.namespace("a-hostile").await;
        let runs = control_plane.namespace("y-runs").await;
        let fleet = Fleet::on(control_plane, PROGRAMS, "z-games").await;
        let server = Webhook::start().unwrap();
        server.otherwise(Answer::json(json!({ "age": 45 })));
        let mut world = Self {
            fleet,
            api: RawApi::of(control_plane),
            hostile,
            runs,
            server,
            names: Cell::new(0),
        };
        world.restart().await;
        world
    }

    /// Kills both operators, and starts them again in all namespaces.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        for who in BOTH {
            let start = self.fleet.start_of(who, None).in_all_namespaces();
            self.fleet.start(who, &start).await;
        }
    }

    /// Like [`World::restart`], behind the proxy.
    pub(crate) async fn restart_behind_proxy(&mut self) {
        self.kill();
        for who in BOTH {
            let start = self.fleet.start_of(who, Some(&self.api.proxy));
            self.fleet.start(who, &start.in_all_namespaces()).await;
        }
    }

    /// Starts hook-operator with ExecutionHooks, in place of the running one.
    pub(crate) async fn start_executions(&mut self) {
        grant_to_operator(self.fleet.control_plane).await;
        let kubeconfig = hooks_kubeconfig_with_token(self.fleet.control_plane).await;
        let start = self.fleet.start_of(Who::Hooks, None).in_all_namespaces();
        let start = start.kubeconfig(&kubeconfig);
        let start = start.flags(&[LOOPBACK, "--execution-hooks"]);
        self.fleet.start(Who::Hooks, &start).await;
    }

    /// Starts two candidates for the lead of each operator, kills those that lead, and waits for their successors.
    pub(crate) async fn change_leaders(&mut self) {
        let leases = self.fleet.control_plane.namespace("leases").await;
        allow_election(self.fleet.control_plane, &leases);
        let mut successors = Vec::new();
        for who in BOTH {
            let start = self.candidate(who, &leases);
            self.fleet.start(who, &start).await;
            until_it_leads(self.fleet.operator(who).unwrap()).await;
            let successor = Operator::start(&start);
            successor.ready().await;
            successors.push(successor);
        }
        let (hooks, workloads) = (successors.pop(), successors.pop());
        // The leaders are killed here, and cannot release their Leases.
        (self.fleet.workloads, self.fleet.hooks) = (workloads, hooks);
        for who in BOTH {
            until_it_leads(self.fleet.operator(who).unwrap()).await;
        }
    }

    fn candidate(&self, who: Who, leases: &str) -> Start {
        let mut flags = vec!["--lease-namespace", leases, "--lease-duration", "3s"];
        flags.extend((who == Who::Hooks).then_some(LOOPBACK));
        let start = self.fleet.start_of(who, None).in_all_namespaces();
        start.flags(&flags).elects()
    }

    fn kill(&mut self) {
        (self.fleet.workloads, self.fleet.hooks) = (None, None);
    }

    /// Returns a metric of an operator.
    pub(crate) async fn metric(&self, who: Who, name: &str) -> u64 {
        self.fleet.operator(who).unwrap().metric(name, "").await
    }

    /// Returns a new name.
    pub(crate) fn new_name(&self, prefix: &str) -> String {
        let number = self.names.get() + 1;
        self.names.set(number);
        format!("{prefix}-{number}")
    }
}

async fn until_it_leads(operator: &Operator) {
    eventually(SOON, || async {
        let text = operator.ask("/metrics").await?.1;
        let mut lines = text.lines();
        if lines.any(|line| line.starts_with("hookgate_leader{") && line.ends_with(" 1")) {
            Ok(())
        } else {
            Err(operator.process.tail(5))
        }
    })
    .await;
}
