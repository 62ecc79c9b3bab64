//! Processes of gamedeployment-operator that are candidates for its Lease, each with its own path to the API server.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use operator_tests::fleet::Who;
use operator_tests::{Fleet, Operator, SOON, Start};
use test_kit::api_proxy::{Entry, Handling, Moment, Outcome};
use test_kit::{ApiProxy, eventually};

/// Candidate behind a proxy.
pub(crate) struct Candidate {
    pub(crate) operator: Operator,
    pub(crate) proxy: ApiProxy,
}

impl Candidate {
    /// Starts a candidate with a Lease of this duration, and waits until it is ready.
    pub(crate) async fn start(fleet: &Fleet<'_>, lease: &str) -> Self {
        Self::start_as(fleet, lease, |start| start).await
    }

    /// Starts a candidate like [`start`](Self::start), with more options.
    pub(crate) async fn start_as(fleet: &Fleet<'_>, lease: &str, options: impl Fn(Start) -> Start) -> Self {
        let proxy = ApiProxy::start(fleet.control_plane).unwrap();
        let start = fleet.start_of(Who::Workloads, Some(&proxy));
        let start = start.flags(&["--lease-duration", lease]).elects();
        Self::start_behind(proxy, &options(start)).await
    }

    /// Starts a candidate whose requests arrive at this proxy.
    pub(crate) async fn start_behind(proxy: ApiProxy, start: &Start) -> Self {
        let operator = Operator::start(start);
        operator.ready().await;
        Self { operator, proxy }
    }

    pub(crate) async fn until_it_leads(&self) {
        eventually(SOON, || async {
            if shows_lead(&self.operator.ask("/metrics").await?.1) {
                Ok(())
            } else {
                Err(self.operator.process.tail(5))
            }
        })
        .await;
    }

    /// Waits until the process has ended by itself, in failure.
    pub(crate) async fn fails(&self) {
        let process = &self.operator.process;
        let status = process.wait(SOON).await.unwrap();
        assert_eq!(status.code(), Some(1), "{}", process.tail(5));
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Operator { process, address } = &self.operator;
            eprintln!(
                "the last lines of the candidate at {address}:\n{}\n",
                process.tail(40)
            );
        }
    }
}

/// Whether a process says in its metrics that it leads.
pub(crate) fn shows_lead(metrics: &str) -> bool {
    let mut lines = metrics.lines();
    lines.any(|line| line.starts_with("hookgate_leader{") && line.ends_with(" 1"))
}

/// Whether a request took or renewed the Lease.
pub(crate) fn is_renewal(entry: &Entry) -> bool {
    entry.call.resource == "leases"
        && ["create", "update", "patch"].contains(&entry.call.verb)
        && matches!(entry.outcome, Outcome::Status(200 | 201))
}

/// Returns the renewals of the Lease through a proxy.
pub(crate) fn renewals(proxy: &ApiProxy) -> Vec<Entry> {
    proxy.requests().into_iter().filter(is_renewal).collect()
}

/// Waits for the next renewal: then there is some time until another one.
pub(crate) async fn until_renewed(proxy: &ApiProxy) {
    let before = renewals(proxy).len();
    eventually(SOON, || async { (renewals(proxy).len() > before).then_some(()) }).await;
}

/// Holds back all requests about Leases, until the faults of the proxy are cleared.
pub(crate) fn swallow_leases(proxy: &ApiProxy) {
    proxy.decide_by(|call| {
        if call.resource == "leases" {
            Handling::Stall(Moment::BeforeForwarding)
        } else {
            Handling::Forward
        }
    });
}

/// Returns gamedeployment-operator's Lease.
pub(crate) async fn lease(fleet: &Fleet<'_>) -> LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(fleet.client(), &fleet.namespace);
    let lease = leases.get(Who::Workloads.name()).await.unwrap();
    lease.spec.unwrap()
}
