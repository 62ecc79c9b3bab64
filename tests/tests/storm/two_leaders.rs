//! Two processes of each operator, with leases moved by force: the old leader cannot renew, does not know it,
//! and continues as long as it may, while the other already leads. Both work on the same workload and the
//! same HookRun.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams, PostParams};
use operator_tests::fleet::{Who, game, until_empty};
use operator_tests::proof::{Extent, played};
use operator_tests::{Fleet, Operator, SOON, Start, allow_election};
use serde_json::json;
use shared_api::HookRun;
use test_kit::api_proxy::{Fault, Matcher, Moment};
use test_kit::webhook::Script;
use test_kit::{Answer, ApiProxy, ControlPlane, Webhook, eventually};

use crate::PROGRAMS;

const BOTH: [Who; 2] = [Who::Workloads, Who::Hooks];

/// One of two candidates for a lease, with its own path to the API server.
struct Candidate {
    operator: Operator,
    proxy: ApiProxy,
    start: Start,
}

impl Candidate {
    async fn of(fleet: &Fleet<'_>, who: Who) -> Self {
        let proxy = ApiProxy::start(fleet.control_plane).unwrap();
        let start = fleet.start_of(who, Some(&proxy)).elects();
        let operator = Operator::start(&start);
        operator.ready().await;
        Self {
            operator,
            proxy,
            start,
        }
    }

    async fn leads(&self) -> Result<bool, String> {
        let text = self.operator.ask("/metrics").await?.1;
        Ok(text
            .lines()
            .any(|line| line.starts_with("hookgate_leader{") && line.ends_with(" 1")))
    }

    async fn until_it_leads(&self) {
        eventually(SOON, || async {
            let leads = self.leads().await?;
            if leads {
                Ok(())
            } else {
                Err(self.operator.process.tail(5))
            }
        })
        .await;
    }

    /// Waits until the process ends because it lost the lead, and starts it again like its kubelet.
    async fn ends_and_begins_again(&mut self, stalled: Fault) {
        let process = &self.operator.process;
        let status = process.wait(SOON).await.unwrap();
        assert_eq!(status.code(), Some(1), "{}", process.tail(5));
        stalled.release();
        self.proxy.clear_faults();
        self.operator = Operator::start(&self.start);
        self.operator.ready().await;
    }
}

/// Moves the lead away from one candidate and waits until the other has it, too.
async fn move_lease(fleet: &Fleet<'_>, who: Who, from: &Candidate, to: &Candidate) -> Fault {
    from.until_it_leads().await;
    let stalled = from
        .proxy
        .stall_after(Matcher::any("/leases"), 0, Moment::BeforeForwarding);
    stalled.struck().await;
    let leases: Api<Lease> = Api::namespaced(fleet.client(), &fleet.namespace);
    let name = who.name();
    let nobody = Patch::Merge(json!({ "spec": { "holderIdentity": "" } }));
    leases
        .patch(name, &PatchParams::default(), &nobody)
        .await
        .unwrap();
    to.until_it_leads().await;
    stalled
}

/// Creates a run of many measurements, whose values are unique numbers.
async fn numbered(fleet: &Fleet<'_>, server: &Webhook, name: &str) -> i64 {
    let next = AtomicI64::new(1);
    server.on(
        &format!("/{name}"),
        Script::by(move |_| Answer::json(json!({ "n": next.fetch_add(1, Ordering::Relaxed) }))),
    );
    let count = 30;
    let spec = json!({ "metrics": [{
        "name": "n", "count": count, "interval": "200ms", "successCondition": "asInt(result) > 0",
        "provider": { "web": { "url": server.url(&format!("/{name}")), "jsonPath": "{$.n}" } }
    }] });
    let run = HookRun::new(name, serde_json::from_value(spec).unwrap());
    fleet.runs().create(&PostParams::default(), &run).await.unwrap();
    count
}

/// Checks that this many of a run's measurements are recorded, none of them twice.
async fn recorded_once(fleet: &Fleet<'_>, name: &str, count: i64) {
    let status = eventually(SOON, || async {
        let run = fleet.runs().get(name).await.map_err(|error| error.to_string())?;
        let status = run.status.unwrap_or_default();
        if status.phase.is_final() {
            Ok(status)
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await;
    let result = &status.metric_results[0];
    assert_eq!((result.count, result.successful), (count, count), "{status:?}");
    let kept: Vec<_> = result.measurements.iter().map(|one| one.value.clone()).collect();
    let distinct: BTreeSet<_> = kept.iter().collect();
    assert_eq!(kept.len(), distinct.len(), "recorded twice: {kept:?}");
    fleet.delete_run(name).await;
}

#[tokio::test]
async fn both_believe_that_they_lead_and_nothing_is_done_twice() {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let mut fleet = Fleet::on(control_plane, PROGRAMS, "two-leaders").await;
    (fleet.workloads, fleet.hooks) = (None, None);
    allow_election(control_plane, &fleet.namespace);
    let server = Webhook::start().unwrap();
    let mut candidates = Vec::new();
    for who in BOTH {
        candidates.push([Candidate::of(&fleet, who).await, Candidate::of(&fleet, who).await]);
    }
    let hook = json!({ "hook": { "templateName": "empty" } });
    let spec = json!({ "preDeleteUpdateStrategy": hook, "preInplaceUpdateStrategy": hook });
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(4, spec)).await;
    let rounds = Extent::asked().of(1, 2, 20);
    let mut measured = 0;
    for round in 0..usize::try_from(rounds).unwrap() {
        let name = format!("numbered-{round}");
        let count = numbered(&fleet, &server, &name).await;
        let (from, to) = (round % 2, (round + 1) % 2);
        let moves = BOTH
            .iter()
            .zip(&candidates)
            .map(|(who, pair)| move_lease(&fleet, *who, &pair[from], &pair[to]));
        let stalled = join_all(moves).await;
        // Both have work: some pods must go and come back, and all of them change.
        fleet.scale(2);
        fleet.set_image(&format!("game:v{round}")).await;
        fleet.until(|status| status.replicas <= 3).await;
        fleet.scale(4);
        for (pair, stalled) in candidates.iter_mut().zip(stalled) {
            pair[from].ends_and_begins_again(stalled).await;
        }
        let status = fleet
            .until(|status| {
                (
                    status.updated_ready_replicas,
                    status.replicas,
                    status.hook_pending_replicas,
                ) == (4, 4, 0)
            })
            .await;
        assert_eq!(status.ready_replicas, 4);
        let images = fleet.images().await;
        assert_eq!(images, BTreeSet::from([format!("game:v{round}")]));
        recorded_once(&fleet, &name, count).await;
        measured += count;
    }
    // The witness judges when the fleet ends; all operators must have ended by then.
    drop(candidates);
    played(
        "two leaders",
        "the lease is moved by force while both believe they lead",
        &[
            ("moves", &(rounds * 2)),
            ("measurements", &measured),
            ("recorded twice", &0),
        ],
    );
}
