//! A machine is suspended while something is decided or measured, and goes on later: what the hook said before is over,
//! although the monotonic clock has hardly moved.

use std::time::Instant;

use operator_tests::fleet::{Who, game};
use operator_tests::{Fleet, SOON, allow_election};
use serde_json::json;
use test_kit::api_proxy::{Entry, Fault, Matcher};
use test_kit::tls_gate::TlsGate;
use test_kit::{ApiProxy, eventually};

use crate::candidates::{is_renewal, shows_lead, swallow_leases};
use crate::machine::{HELD, Jump, Machine, SUSPENDED};
use crate::players::{HeldAnswer, Players};
use crate::world::{PRE_DELETE, Victim, asked_and_held, behind_gate, fleet, launch};

/// Both operators on one machine. The requests of gamedeployment-operator arrive at the proxy.
struct World {
    fleet: Fleet<'static>,
    players: Players,
    proxy: ApiProxy,
    machine: Machine,
}

impl World {
    /// Returns a world in which hook-operator runs on the machine; gamedeployment-operator follows.
    async fn new(name: &str) -> Self {
        let mut fleet = fleet(name).await;
        let machine = Machine::new();
        let hooks = machine.of(fleet.start_of(Who::Hooks, None));
        fleet.start(Who::Hooks, &hooks).await;
        Self {
            proxy: ApiProxy::start(fleet.control_plane).unwrap(),
            players: Players::start(),
            fleet,
            machine,
        }
    }

    /// Starts gamedeployment-operator on the machine, without an election.
    async fn start_workloads(&mut self, flags: &[&str]) {
        let start = self.fleet.start_of(Who::Workloads, Some(&self.proxy));
        self.fleet
            .start(Who::Workloads, &self.machine.of(start.flags(flags)))
            .await;
    }

    /// Holds back a call of gamedeployment-operator for another workload.
    async fn hold_another_call(&self) -> Fault {
        let held = self
            .proxy
            .stall_next(Matcher::new("POST", "/controllerrevisions"));
        let labels = json!({ "app": "other" });
        let mut other = game(1, json!({ "selector": { "matchLabels": labels } }));
        other["metadata"] = json!({ "name": "other", "labels": labels });
        other["spec"]["template"]["metadata"]["labels"] = labels;
        self.fleet.apply(&other);
        held.await_hits(1, SOON).await.unwrap();
        held
    }

    /// Lets the hook say yes, and waits until gamedeployment-operator has decided on it.
    async fn decided(&self, answer: HeldAnswer) {
        let before = self.fleet.decisions().await;
        answer.release();
        self.fleet.approved().await;
        self.fleet.decided_since(before).await;
        let last = std::cell::Cell::new(before);
        eventually(SOON, || async {
            let now = self.fleet.decisions().await;
            (last.replace(now) == now).then_some(())
        })
        .await;
    }

    /// Checks that the pod outlives the only yes of before the jump, and goes on one of now.
    async fn ends_well(&self, victim: &Victim) {
        let Self { fleet, players, .. } = self;
        victim.lives_while_asked(fleet, players, 1).await;
        let sent = victim.deletions(&self.proxy);
        assert!(sent.is_empty(), "{sent:?}");
        self.machine.assert_read();
        victim.goes(fleet, players).await;
        let ended = fleet.nodes.terminated_pods();
        assert_eq!(ended, [victim.name.clone()].into());
    }
}

/// The deletion waits for its turn among the calls.
async fn while_a_deletion_waits_for_its_turn(jump: Jump) {
    let mut world = World::new("waits-for-its-turn").await;
    world
        .start_workloads(&["--api-concurrency=1", "--api-timeout=1m"])
        .await;
    let (victim, answer) = asked_and_held(&world.fleet, &world.players).await;
    let other = world.hold_another_call().await;
    world.decided(answer).await;
    victim.alive(&world.fleet).await;
    world.machine.jump(jump);
    other.release();
    world.ends_well(&victim).await;
}

#[tokio::test]
async fn a_suspension_while_a_deletion_waits_for_its_turn() {
    while_a_deletion_waits_for_its_turn(SUSPENDED).await;
}

#[tokio::test]
async fn a_hypervisors_pause_while_a_deletion_waits_for_its_turn() {
    while_a_deletion_waits_for_its_turn(HELD).await;
}

/// The deletion has begun, and waits for its connection.
async fn while_a_deletion_waits_for_its_connection(jump: Jump) {
    let mut world = World::new("waits-for-its-connection").await;
    let gate = TlsGate::start(&world.proxy.url()).unwrap();
    let start = behind_gate(&world.fleet, &gate).flags(&["--api-timeout=1m"]);
    let start = world.machine.of(start);
    world.fleet.start(Who::Workloads, &start).await;
    let (victim, answer) = asked_and_held(&world.fleet, &world.players).await;
    gate.hold();
    answer.release();
    gate.await_waiting(1, SOON).await.unwrap();
    world.machine.jump(jump);
    gate.release();
    world.ends_well(&victim).await;
}

#[tokio::test]
async fn a_suspension_while_a_deletion_waits_for_its_connection() {
    while_a_deletion_waits_for_its_connection(SUSPENDED).await;
}

#[tokio::test]
async fn a_hypervisors_pause_while_a_deletion_waits_for_its_connection() {
    while_a_deletion_waits_for_its_connection(HELD).await;
}

/// The answer of the hook is on its way: it says what was true before.
async fn while_the_hook_answers(jump: Jump) {
    let mut world = World::new("hook-answers").await;
    world.start_workloads(&[]).await;
    let (victim, answer) = asked_and_held(&world.fleet, &world.players).await;
    world.machine.jump(jump);
    answer.release();
    world.ends_well(&victim).await;
}

#[tokio::test]
async fn a_suspension_while_the_hook_answers() {
    while_the_hook_answers(SUSPENDED).await;
}

#[tokio::test]
async fn a_hypervisors_pause_while_the_hook_answers() {
    while_the_hook_answers(HELD).await;
}

/// A leader that was suspended does not know whether another one leads: it writes nothing until it has renewed its
/// Lease.
async fn while_it_leads(jump: Jump) {
    let mut world = World::new("leader").await;
    allow_election(world.fleet.control_plane, &world.fleet.namespace);
    let start = world.fleet.start_of(Who::Workloads, Some(&world.proxy)).elects();
    // Only the jump can end the time in which the leader may write while the test waits for that: two thirds of this.
    let start = world.machine.of(start.flags(&["--lease-duration=2m"]));
    world.fleet.start(Who::Workloads, &start).await;
    let World { fleet, players, .. } = &world;
    launch(fleet, players, 2, PRE_DELETE).await;
    fleet.quiet().await;
    let metrics = || async { fleet.operator(Who::Workloads).unwrap().get("/metrics").await };
    assert!(shows_lead(&metrics().await));

    swallow_leases(&world.proxy);
    let jumped = Instant::now();
    world.machine.jump(jump);
    // A scrape right after another one may get the same text.
    eventually(SOON, || async { (!shows_lead(&metrics().await)).then_some(()) }).await;
    let before = fleet.decisions().await;
    fleet.scale(1);
    fleet.decided_since(before).await;
    world.proxy.clear_faults();

    let (victim, _) = Victim::asked_for(fleet, players, 0).await;
    victim.lives_while_asked(fleet, players, 0).await;
    let entries = world.proxy.requests();
    let first = |wanted: &dyn Fn(&Entry) -> bool| {
        entries
            .iter()
            .position(|entry| entry.at >= jumped && wanted(entry))
            .unwrap()
    };
    let written = first(&|entry: &Entry| entry.call.method != "GET" && entry.call.resource != "leases");
    let renewed = first(&is_renewal);
    assert!(renewed < written, "{:?} was sent first", entries[written]);
    world.machine.assert_read();
    victim.goes(fleet, players).await;
    fleet.settled(1).await;
}

#[tokio::test]
async fn a_suspended_leader_writes_nothing_before_it_has_renewed_its_lease() {
    while_it_leads(SUSPENDED).await;
}

#[tokio::test]
async fn a_leader_that_a_hypervisor_paused_writes_nothing_before_it_has_renewed_its_lease() {
    while_it_leads(HELD).await;
}
