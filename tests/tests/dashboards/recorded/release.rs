//! Processes of a release, and how Prometheus knows them.

use std::path::PathBuf;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams};
use operator_tests::fleet::Who;
use operator_tests::{
    GROUPS, Operator, SOON, Start, allow_election, hooks_kubeconfig, hooks_kubeconfig_behind,
};
use serde_json::json;
use test_kit::{ApiProxy, ControlPlane, eventually};
use tokio::sync::OnceCell;

use super::recording::Target;
use crate::PROGRAMS;
use crate::installation::{Installation, Replica};

/// Name of the component for admission.
pub(crate) const ADMISSION: &str = "hookgate-admission";
/// User of gamedeployment-operator.
const WORKLOADS_USER: &str = "system:serviceaccount:hookgate:gamedeployment-operator";
/// Short, so that a lost leader is soon replaced, and long enough for a busy machine.
pub(crate) const LEASE: &str = "--lease-duration=5s";

/// Process of an operator.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) operator: Operator,
    pub(crate) target: Target,
}

impl Peer {
    /// Starts a process without waiting for it.
    pub(crate) fn start(who: Who, pod: &str, start: &Start) -> Self {
        let operator = Operator::start(start);
        let target = Target::new(who.name(), pod, operator.address);
        Self { operator, target }
    }

    /// Waits until it answers scrapes.
    pub(crate) async fn listens(&self) {
        eventually(SOON, || async { self.operator.ask("/metrics").await.map(drop) }).await;
    }

    pub(crate) async fn leads(&self) -> Result<bool, String> {
        let text = self.operator.ask("/metrics").await?.1;
        let mut lines = text.lines();
        Ok(lines.any(|line| line.starts_with("hookgate_leader{") && line.ends_with(" 1")))
    }

    pub(crate) async fn until_it_leads(&self) {
        eventually(SOON, || async {
            if self.leads().await? {
                Ok(())
            } else {
                Err(self.operator.process.tail(5))
            }
        })
        .await;
    }

    /// Returns the sum of a metric over the series whose labels contain this text.
    pub(crate) async fn sum(&self, name: &str, labels: &str) -> Result<f64, String> {
        let text = self.operator.ask("/metrics").await?.1;
        let lines = text
            .lines()
            .filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(labels));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }

    /// Waits until such a sum is above a bound, and returns it.
    pub(crate) async fn until_above(&self, bound: f64, name: &str, labels: &str) -> f64 {
        eventually(SOON, || async {
            let sum = self.sum(name, labels).await?;
            if sum > bound {
                Ok(sum)
            } else {
                Err(format!("{sum}: {}", self.operator.process.tail(10)))
            }
        })
        .await
    }

    /// Ends it without a chance to clean up, like the kernel does when memory runs out.
    pub(crate) fn crash(&self) {
        self.operator.process.kill_hard().unwrap();
    }

    /// Ends it as its kubelet does.
    pub(crate) async fn end(&self) {
        let status = self.operator.process.terminate(SOON).await.unwrap();
        assert!(status.success(), "{status}: {}", self.operator.process.tail(5));
    }

    /// Starts it again in the same pod. Start times are in whole seconds, and a kubelet waits longer than that, so it
    /// starts in a later second.
    pub(crate) async fn restart(&self) {
        let second = || Timestamp::now().as_second();
        let ended = second();
        eventually(SOON, || async { (second() > ended).then_some(()) }).await;
        self.operator.process.restart().unwrap();
    }

    /// Starts it again and ends it at once: no scrape sees it.
    pub(crate) fn flicker(&self) {
        self.operator.process.restart().unwrap();
        self.crash();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Operator { process, address } = &self.operator;
            eprintln!(
                "the last lines of the process at {address}:\n{}\n",
                process.tail(20)
            );
        }
    }
}

/// Namespace with the Leases of some processes, which work in it.
#[derive(Debug)]
pub(crate) struct Place<'c> {
    pub(crate) control_plane: &'c ControlPlane,
    pub(crate) namespace: String,
}

impl Place<'static> {
    /// Returns a new namespace on the shared control plane.
    pub(crate) async fn new(name: &str) -> Self {
        Self::on(crate::shared().await, name).await
    }
}

impl<'c> Place<'c> {
    pub(crate) async fn on(control_plane: &'c ControlPlane, name: &str) -> Self {
        let namespace = control_plane.namespace(name).await;
        // Grants both operators their permissions.
        let _ = hooks_kubeconfig(control_plane).await;
        allow_election(control_plane, &namespace);
        Self {
            control_plane,
            namespace,
        }
    }

    async fn kubeconfig(&self, who: Who, proxy: Option<&ApiProxy>) -> PathBuf {
        match (who, proxy) {
            (Who::Hooks, None) => hooks_kubeconfig(self.control_plane).await,
            (Who::Hooks, Some(proxy)) => hooks_kubeconfig_behind(self.control_plane, proxy).await,
            (Who::Workloads, None) => self.control_plane.kubeconfig_as(WORKLOADS_USER, &GROUPS).unwrap(),
            (Who::Workloads, Some(proxy)) => proxy.kubeconfig_as(WORKLOADS_USER, &GROUPS).unwrap(),
        }
    }

    /// Returns the options of a process that works without an election.
    pub(crate) async fn alone(&self, who: Who, proxy: Option<&ApiProxy>) -> Start {
        let kubeconfig = self.kubeconfig(who, proxy).await;
        match who {
            Who::Workloads => Start::new(PROGRAMS.workloads, &kubeconfig, &self.namespace).flags(&[]),
            Who::Hooks => Start::new(PROGRAMS.hooks, &kubeconfig, &self.namespace),
        }
    }

    /// Returns the options of a candidate for the Lease of its operator.
    pub(crate) async fn candidate(&self, who: Who, proxy: Option<&ApiProxy>) -> Start {
        let start = self.alone(who, proxy).await;
        match who {
            Who::Workloads => start.flags(&[LEASE]).elects(),
            Who::Hooks => start.flags(&["--egress-allow-loopback", LEASE]).elects(),
        }
    }

    /// Starts two candidates and waits until both are ready. The first one leads.
    pub(crate) async fn pair(&self, who: Who, proxy: Option<&ApiProxy>) -> [Peer; 2] {
        let start = self.candidate(who, proxy).await;
        pair_of(who, &start).await
    }

    /// Deletes the Lease of an operator whose processes have crashed: more time has passed for the rules than it lasts.
    pub(crate) async fn expire_lease(&self, who: Who) {
        let leases: Api<Lease> = Api::namespaced(self.control_plane.client(), &self.namespace);
        match leases.delete(who.name(), &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Starts two candidates like [`Place::pair`].
pub(crate) async fn pair_of(who: Who, start: &Start) -> [Peer; 2] {
    let leader = Peer::start(who, &format!("{}-0", who.name()), start);
    leader.until_it_leads().await;
    let standby = Peer::start(who, &format!("{}-1", who.name()), start);
    leader.operator.ready().await;
    standby.operator.ready().await;
    [leader, standby]
}

/// Processes to which nothing happens: the rest of the release in a case about some of them.
pub(crate) struct Quiet {
    operators: Vec<Peer>,
    /// Its webhooks are those of the first replica.
    pub(crate) installation: Installation<'static>,
    replicas: Vec<(Replica, Target)>,
}

/// Returns the processes to which nothing happens.
pub(crate) async fn quiet() -> &'static Quiet {
    static QUIET: OnceCell<Quiet> = OnceCell::const_new();
    QUIET.get_or_init(Quiet::start).await
}

impl Quiet {
    async fn start() -> Self {
        let place = Place::new("quiet").await;
        let mut operators = Vec::new();
        for who in [Who::Hooks, Who::Workloads] {
            // The default duration of a Lease: a process that cannot run for some seconds keeps the lead.
            let start = place.alone(who, None).await.elects();
            operators.extend(pair_of(who, &start).await);
        }
        let installation = Installation::new(place.control_plane).await;
        let replicas = [installation.replica(&[]), installation.replica(&[])];
        installation.configure(replicas[0].tls, &json!({})).await;
        let mut admission = Vec::new();
        for (number, replica) in replicas.into_iter().enumerate() {
            replica.ready().await;
            let target = Target::new(ADMISSION, &format!("{ADMISSION}-{number}"), replica.health);
            admission.push((replica, target));
        }
        Self {
            operators,
            installation,
            replicas: admission,
        }
    }

    /// Returns all targets but those of these components.
    pub(crate) fn but(&self, components: &[&str]) -> Vec<&Target> {
        let operators = self.operators.iter().map(|peer| &peer.target);
        let all = operators.chain(self.replicas.iter().map(|(_, target)| target));
        all.filter(|target| !components.contains(&target.component))
            .collect()
    }
}

/// Returns the targets of these processes and of the rest of the release.
pub(crate) fn with<'t>(rest: &[&'t Target], peers: &'t [Peer]) -> Vec<&'t Target> {
    let own = peers.iter().map(|peer| &peer.target);
    rest.iter().copied().chain(own).collect()
}
