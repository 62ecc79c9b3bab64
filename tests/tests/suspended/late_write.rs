//! A write is on its way to the API server while its sender sleeps. Meanwhile another process leads and asks again, and
//! the hook says no. No clock tells the API server that the write is late: the new question must have given the pod
//! another version.

use kube::ResourceExt as _;
use operator_tests::{Fleet, SOON, allow_election};
use shared_api::HookRun;
use test_kit::api_proxy::{Fault, Matcher, Outcome};
use test_kit::eventually;

use crate::candidates::Candidate;
use crate::players::Players;
use crate::world::{PRE_DELETE, PRE_IN_PLACE, Victim, assert_noted_before, fleet, launch};

/// Duration of the Leases. The successor begins after a success has expired: otherwise it may use it, too.
const LEASE: &str = "10s";

/// Two candidates, the first of them leading. Fields drop in order, so the witness of the fleet judges last.
struct Stage {
    first: Candidate,
    second: Candidate,
    players: Players,
    fleet: Fleet<'static>,
}

impl Stage {
    async fn new(name: &str) -> Self {
        let mut fleet = fleet(name).await;
        fleet.workloads = None;
        allow_election(fleet.control_plane, &fleet.namespace);
        let first = Candidate::start(&fleet, LEASE).await;
        first.until_it_leads().await;
        Self {
            second: Candidate::start(&fleet, LEASE).await,
            first,
            players: Players::start(),
            fleet,
        }
    }
}

/// Write that waits in the proxy of the first candidate, which sleeps.
struct LateWrite {
    fault: Fault,
    victim: Victim,
    /// Version of the pod that the write was decided on.
    version: u64,
    /// Run whose success allowed it.
    run: HookRun,
}

impl LateWrite {
    /// Lets the hook say yes, holds back the write that follows, and puts its sender to sleep. Then players join.
    async fn on_its_way(stage: &Stage, asked: usize, matcher: impl Fn(&Victim) -> Matcher) -> Self {
        let Stage { fleet, players, .. } = stage;
        let (victim, run) = Victim::asked_for(fleet, players, asked).await;
        let fault = stage.first.proxy.stall_next(matcher(&victim));
        players.set(0);
        fault.await_hits(1, SOON).await.unwrap();
        stage.first.operator.process.pause().unwrap();
        players.set(5);
        let version = victim.version(fleet).await;
        Self {
            fault,
            victim,
            version,
            run,
        }
    }

    /// Waits until the second candidate leads and asks again, and checks that the pod has another version since.
    async fn is_overtaken(&self, stage: &Stage) {
        let Stage { fleet, players, .. } = stage;
        stage.second.until_it_leads().await;
        let runs = fleet
            .until_runs(|runs| runs.len() == 1 && runs[0].uid() != self.run.uid())
            .await;
        let asked = players.asked();
        players.until_asked(asked + 1).await;
        self.victim.alive(fleet).await;
        assert_noted_before(fleet, &self.victim, self.version, &runs[0]).await;
    }

    /// Lets the write through, and checks that it meets a conflict. Then its sender wakes up, and ends.
    async fn arrives(&self, stage: &Stage, verb: &str, resource: &str) {
        let Self { fault, victim, .. } = self;
        fault.release();
        let outcome = eventually(SOON, || async {
            let entries = stage.first.proxy.requests().into_iter();
            let mut writes = entries.filter(|entry| {
                (entry.call.verb, entry.call.resource.as_str()) == (verb, resource)
                    && entry.call.name == victim.name
            });
            let outcome = writes.next_back().map(|entry| entry.outcome);
            outcome.filter(|outcome| *outcome != Outcome::Pending)
        })
        .await;
        assert_eq!(outcome, Outcome::Status(409), "{verb} {resource}");
        victim.alive(&stage.fleet).await;
        stage.first.operator.process.resume().unwrap();
        stage.first.fails().await;
        let asked = stage.players.asked();
        victim
            .lives_while_asked(&stage.fleet, &stage.players, asked)
            .await;
        assert_eq!(stage.fleet.nodes.terminations().len(), 0);
    }
}

/// Holds back the deletion of a pod that leaves in a scale-down.
async fn late_deletion(stage: &Stage) -> LateWrite {
    launch(&stage.fleet, &stage.players, 2, PRE_DELETE).await;
    stage.fleet.scale(1);
    let deletion = |victim: &Victim| Matcher::new("DELETE", format!("/pods/{}", victim.name));
    LateWrite::on_its_way(stage, 0, deletion).await
}

async fn ends_with_one_pod(stage: &Stage, victim: &Victim) {
    victim.goes(&stage.fleet, &stage.players).await;
    stage.fleet.settled(1).await;
    let ended = stage.fleet.nodes.terminated_pods();
    assert_eq!(ended, [victim.name.clone()].into());
}

#[tokio::test]
async fn a_deletion_meets_a_conflict() {
    let stage = Stage::new("late-deletion").await;
    let late = late_deletion(&stage).await;
    late.is_overtaken(&stage).await;
    late.arrives(&stage, "delete", "pods").await;
    ends_with_one_pod(&stage, &late.victim).await;
}

/// The run is no witness of the question: people may delete it.
#[tokio::test]
async fn a_deletion_meets_a_conflict_although_its_run_was_deleted() {
    let stage = Stage::new("late-deletion").await;
    let late = late_deletion(&stage).await;
    stage.fleet.delete_run(&late.run.name_any()).await;
    late.is_overtaken(&stage).await;
    late.arrives(&stage, "delete", "pods").await;
    ends_with_one_pod(&stage, &late.victim).await;
}

#[tokio::test]
async fn an_update_in_place_meets_a_conflict() {
    let stage = Stage::new("late-update").await;
    let Stage { fleet, players, .. } = &stage;
    launch(fleet, players, 1, PRE_IN_PLACE).await;
    fleet.set_image("game:v2").await;
    // First the pod is taken out of service; its images follow.
    let update = |victim: &Victim| Matcher::new("PATCH", format!("/pods/{}/status", victim.name));
    let late = LateWrite::on_its_way(&stage, 0, update).await;
    late.is_overtaken(&stage).await;
    late.arrives(&stage, "patch", "pods/status").await;
    assert_eq!(fleet.images().await, ["game:v1".to_owned()].into());
    let pod = late.victim.alive(fleet).await;
    let conditions = pod.status.and_then(|status| status.conditions);
    let mut ready = conditions.into_iter().flatten();
    assert!(
        ready.any(|known| known.type_ == "Ready" && known.status == "True"),
        "the pod serves its players"
    );
    players.set(0);
    fleet.all_run("game:v2", 1).await;
    fleet.settled(1).await;
}
