//! Two shards of both operators, each with a namespace whose game scales down behind its hook.

use std::collections::BTreeSet;

use clap::Parser as _;
use operator_tests::fleet::{Who, game, hooked, until_empty};
use operator_tests::{Fleet, Operator, allow_election};
use test_kit::api_proxy::Entry;
use test_kit::{ApiProxy, ControlPlane};

use crate::{LEASE, PROGRAMS, alone, held, until_it_leads};

const BOTH: [Who; 2] = [Who::Workloads, Who::Hooks];
const SHARDS: [&str; 2] = ["0/2", "1/2"];

/// Process and its proxy.
struct Process {
    who: Who,
    shard: usize,
    operator: Operator,
    proxy: ApiProxy,
}

impl Process {
    /// Returns the namespaces where it has written or requested an object by name, except its Leases.
    fn touched(&self) -> BTreeSet<String> {
        let of_one = |entry: &Entry| {
            !["list", "watch"].contains(&entry.call.verb)
                && !entry.call.namespace.is_empty()
                && entry.call.resource != "leases"
        };
        let entries = self.proxy.requests().into_iter().filter(of_one);
        entries.map(|entry| entry.call.namespace).collect()
    }

    fn lease(&self) -> String {
        format!("{}-shard-{}-of-2", self.who.name(), self.shard)
    }
}

/// Starts a process of each operator for each shard.
fn processes(fleet: &Fleet<'_>, leases: &str) -> Vec<Process> {
    let mut all = Vec::new();
    for who in BOTH {
        for (shard, text) in SHARDS.iter().enumerate() {
            let proxy = ApiProxy::start(fleet.control_plane).unwrap();
            let mut flags = vec![LEASE.to_owned()];
            flags.extend([format!("--shard={text}"), format!("--lease-namespace={leases}")]);
            flags.extend((who == Who::Hooks).then(|| "--egress-allow-loopback".to_owned()));
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let start = fleet.start_of(who, Some(&proxy)).in_all_namespaces();
            let operator = Operator::start(&start.flags(&flags).elects());
            all.push(Process {
                who,
                shard,
                operator,
                proxy,
            });
        }
    }
    all
}

/// Returns the shard of a namespace, as seen by hook-operator.
fn shard_of(namespace: &str) -> usize {
    let has = |shard: &str| {
        let config = hook_operator::config::Config::try_parse_from(["hook-operator", "--shard", shard]);
        config.unwrap().operator.scope().has(namespace)
    };
    SHARDS.iter().position(|shard| has(shard)).unwrap()
}

/// Creates a namespace for each shard, with nodes and without operators.
async fn fleets(control_plane: &ControlPlane) -> [Fleet<'_>; 2] {
    let mut names = [None, None];
    while names.iter().any(Option::is_none) {
        let name = control_plane.namespace("games").await;
        names[shard_of(&name)].get_or_insert(name);
    }
    let [first, second] = names.map(Option::unwrap);
    let fleet = async |name| {
        let mut fleet =
            Fleet::within(control_plane, PROGRAMS, name, test_kit::node::Options::default()).await;
        (fleet.workloads, fleet.hooks) = (None, None);
        fleet
    };
    [fleet(first).await, fleet(second).await]
}

/// Launches a game of three pods, and removes one once it has no players.
async fn scale_down(fleet: &Fleet<'_>) {
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.scale(2);
    fleet.settled(2).await;
}

#[tokio::test]
async fn each_process_does_the_work_of_its_own_namespaces() {
    let control_plane = alone().await;
    let leases = control_plane.namespace("leases").await;
    allow_election(&control_plane, &leases);
    let fleets = fleets(&control_plane).await;
    let processes = processes(&fleets[0], &leases);
    for process in &processes {
        until_it_leads(&process.operator).await;
    }
    let held = held(&control_plane, &leases).await;
    let names: Vec<String> = held.iter().map(|(name, _)| name.clone()).collect();
    let holders: BTreeSet<&String> = held.iter().map(|(_, holder)| holder).collect();
    assert_eq!(names, processes.iter().map(Process::lease).collect::<Vec<_>>());
    assert_eq!(holders.len(), 4, "{held:?}");

    futures::future::join_all(fleets.iter().map(scale_down)).await;
    for process in &processes {
        let own = BTreeSet::from([fleets[process.shard].namespace.clone()]);
        assert_eq!(process.touched(), own, "{} {}", process.who.name(), process.shard);
        let said = process.operator.process.tail(10_000);
        assert!(
            said.contains(&format!("\"shard\":\"{}\"", SHARDS[process.shard])),
            "{said}"
        );
    }
    // Later writes are not judged.
    drop(processes);
}

#[tokio::test]
async fn a_shard_whose_leader_is_killed_is_taken_over_by_its_own_standby() {
    let control_plane = alone().await;
    let leases = control_plane.namespace("leases").await;
    allow_election(&control_plane, &leases);
    let fleets = fleets(&control_plane).await;
    let first = processes(&fleets[0], &leases);
    for process in &first {
        until_it_leads(&process.operator).await;
    }
    let standbys = processes(&fleets[0], &leases);
    for standby in &standbys {
        standby.operator.ready().await;
    }
    let before = held(&control_plane, &leases).await;
    for process in first.iter().filter(|process| process.shard == 0) {
        process.operator.process.kill_hard().unwrap();
    }
    // The other shard continues meanwhile.
    scale_down(&fleets[1]).await;
    for standby in standbys.iter().filter(|standby| standby.shard == 0) {
        until_it_leads(&standby.operator).await;
    }
    scale_down(&fleets[0]).await;
    let after = held(&control_plane, &leases).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(
            before == after,
            before.0.contains("-shard-1-"),
            "{before:?} {after:?}"
        );
    }
    for standby in &standbys {
        let own = (fleets[..1].iter()).filter(|_| standby.shard == 0);
        let own: BTreeSet<String> = own.map(|fleet| fleet.namespace.clone()).collect();
        assert_eq!(standby.touched(), own, "{} {}", standby.who.name(), standby.shard);
    }
    drop((first, standbys));
}
