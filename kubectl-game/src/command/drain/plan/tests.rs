//! Tests of the treatment of pods.

use k8s_openapi::api::core::v1::Toleration;
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARD_ASK};

use super::*;
use crate::command::drain::workload::OwningGame;
use crate::view::samples;

const VALID_FOR: SignedDuration = SignedDuration::from_mins(15);

/// Builds a pod with this controller.
fn pod(name: &str, controller: Value) -> Pod {
    let owners = if controller.is_null() {
        json!([])
    } else {
        json!([controller])
    };
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "games", "uid": format!("u-{name}"), "ownerReferences": owners },
        "spec": { "nodeName": "node-1", "containers": [{ "name": "game" }] },
        "status": { "phase": "Running" }
    }))
    .unwrap()
}

fn owned(kind: &str, version: &str) -> Value {
    json!({ "apiVersion": version, "kind": kind, "name": "arena", "uid": "u-arena", "controller": true })
}

pub(in crate::command::drain) fn game_pod(name: &str) -> Pod {
    pod(name, owned("GameDeployment", "tkex.tencent.com/v1alpha1"))
}

pub(in crate::command::drain) fn of_daemon_set(name: &str) -> Pod {
    pod(name, owned("DaemonSet", "apps/v1"))
}

pub(in crate::command::drain) fn of_replica_set(name: &str) -> Pod {
    pod(name, owned("ReplicaSet", "apps/v1"))
}

fn with_phase(mut pod: Pod, phase: &str) -> Pod {
    pod.status.get_or_insert_default().phase = Some(phase.to_owned());
    pod
}

fn with_empty_dir(mut pod: Pod) -> Pod {
    let volumes = json!([{ "name": "cache", "emptyDir": {} }]);
    pod.spec.as_mut().unwrap().volumes = serde_json::from_value(volumes).unwrap();
    pod
}

pub(in crate::command::drain) fn terminating(mut pod: Pod) -> Pod {
    let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(samples::now());
    pod.metadata.deletion_timestamp = Some(at);
    pod
}

fn labelled(mut pod: Pod) -> Pod {
    let label = (REMOVAL_GUARD.to_owned(), REMOVAL_GUARD_ASK.to_owned());
    pod.metadata.labels.get_or_insert_default().extend([label]);
    pod
}

fn tolerant(mut pod: Pod) -> Pod {
    let toleration = Toleration {
        operator: Some("Exists".to_owned()),
        ..Toleration::default()
    };
    pod.spec.as_mut().unwrap().tolerations = Some(vec![toleration]);
    pod
}

pub(in crate::command::drain) fn guarded(policy: &str) -> GameDeployment {
    let mut game = samples::complete().game;
    game.spec.disruption = serde_json::from_value(json!({ "policy": policy })).unwrap();
    game
}

fn games(game: &GameDeployment) -> OwningGames {
    OwningGames::from([("u-arena".to_owned(), OwningGame::read(game))])
}

/// Returns the treatment of a pod, and the flags that are needed for it.
fn treated(
    pod: Pod,
    games: &OwningGames,
    before: Option<&BTreeSet<String>>,
) -> (Treatment, Vec<&'static str>) {
    let plan = Plan::of(vec![pod], games, before);
    let treatment = plan.pods[0].treatment.clone();
    let only = |flag: &str| Permits {
        evict_unguarded: flag != "--evict-unguarded",
        force: flag != "--force",
        delete_emptydir_data: flag != "--delete-emptydir-data",
    };
    let flags = ["--evict-unguarded", "--force", "--delete-emptydir-data"];
    let needed = flags
        .into_iter()
        .filter(|flag| !plan.objections(only(flag)).is_empty());
    (treatment, needed.collect())
}

#[test]
fn pods_are_treated_as_by_kubectl_drain_except_for_those_of_game_deployments() {
    use Skipped::{DaemonSet, Static};
    use Treatment::{AwaitDeletion, AwaitEnd, Evict, Request, Skip};
    let (ask, unguarded) = (games(&guarded("Ask")), games(&guarded("Unguarded")));
    let deleted = games(&samples::being_deleted(samples::complete(), true).game);
    let gone = OwningGames::new();
    let daemon = || of_daemon_set("d");
    let mut mirror = pod("m", owned("Node", "v1"));
    mirror.annotations_mut().insert(STATIC.to_owned(), "h".to_owned());
    let none: Vec<&str> = vec![];
    let cases = vec![
        (daemon(), &ask, Skip(DaemonSet), none.clone()),
        (with_phase(daemon(), "Failed"), &ask, Evict, none.clone()),
        (mirror, &ask, Skip(Static), none.clone()),
        (terminating(pod("t", Value::Null)), &ask, AwaitEnd, none.clone()),
        (terminating(game_pod("t")), &unguarded, AwaitEnd, none.clone()),
        (game_pod("g"), &ask, Request(VALID_FOR), none.clone()),
        (
            with_empty_dir(game_pod("g")),
            &ask,
            Request(VALID_FOR),
            none.clone(),
        ),
        (
            with_phase(game_pod("g"), "Failed"),
            &unguarded,
            Evict,
            none.clone(),
        ),
        (
            game_pod("g"),
            &deleted,
            AwaitDeletion("arena".to_owned()),
            none.clone(),
        ),
        (
            with_empty_dir(game_pod("g")),
            &unguarded,
            Evict,
            vec!["--evict-unguarded"],
        ),
        (game_pod("g"), &gone, Evict, vec!["--evict-unguarded"]),
        (of_replica_set("r"), &ask, Evict, none.clone()),
        (
            with_empty_dir(of_replica_set("r")),
            &ask,
            Evict,
            vec!["--delete-emptydir-data"],
        ),
        (pod("p", Value::Null), &ask, Evict, vec!["--force"]),
        // A GameDeployment may adopt it.
        (
            labelled(pod("p", Value::Null)),
            &ask,
            Evict,
            vec!["--evict-unguarded"],
        ),
        (
            with_empty_dir(pod("p", Value::Null)),
            &ask,
            Evict,
            vec!["--force", "--delete-emptydir-data"],
        ),
        (
            with_phase(with_empty_dir(pod("p", Value::Null)), "Succeeded"),
            &ask,
            Evict,
            none,
        ),
        // A kind of another group.
        (
            pod("o", owned("GameDeployment", "example.com/v1")),
            &unguarded,
            Evict,
            vec![],
        ),
    ];
    for (pod, games, treatment, flags) in cases {
        let shown = format!("{pod:?}");
        assert_eq!(treated(pod, games, None), (treatment, flags), "{shown}");
    }
}

#[test]
fn pods_that_tolerate_the_cordon_are_removed_once() {
    let ask = games(&guarded("Ask"));
    let before = BTreeSet::from(["u-g".to_owned()]);
    let request = Treatment::Request(VALID_FOR);
    let treatment = |pod: Pod, before| treated(pod, &ask, before).0;
    assert_eq!(treatment(tolerant(game_pod("g")), None), request);
    assert_eq!(treatment(tolerant(game_pod("g")), Some(&before)), request);
    let skipped = Treatment::Skip(Skipped::MayReturn);
    assert_eq!(treatment(tolerant(game_pod("h")), Some(&before)), skipped);
    // It was scheduled just before the cordon.
    assert_eq!(treatment(game_pod("h"), Some(&before)), request);
}

#[test]
fn each_refusal_names_the_pods_and_the_remedy() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let mut pods: Vec<Pod> = names.map(game_pod).into_iter().collect();
    pods.push(with_empty_dir(pod("p", Value::Null)));
    let plan = Plan::of(pods, &games(&guarded("Unguarded")), None);
    assert_eq!(
        plan.objections(Permits::default()),
        [
            "7 pods of GameDeployment games/arena: spec.disruption.policy is Unguarded; set it to Ask, so that the \
             hook runs first; or evict them with --evict-unguarded, which disconnects their players: games/a, games/b, \
             games/c, games/d, games/e and 2 more",
            "1 pod without a controller, which nothing would create again; evict them with --force: games/p",
            "1 pod with emptyDir volumes, whose data would be lost; evict them with --delete-emptydir-data: games/p",
        ]
    );
    let all = Permits {
        evict_unguarded: true,
        force: true,
        delete_emptydir_data: true,
    };
    assert!(plan.objections(all).is_empty());
}

#[test]
fn skipped_pods_are_counted() {
    let daemons = ["a", "b"].map(of_daemon_set);
    let mut mirror = pod("m", owned("Node", "v1"));
    mirror.annotations_mut().insert(STATIC.to_owned(), "h".to_owned());
    let pods = daemons.into_iter().chain([mirror, of_replica_set("r")]);
    let plan = Plan::of(pods.collect(), &OwningGames::new(), None);
    assert_eq!(plan.skipped().unwrap(), "3 pods (2 of DaemonSets, 1 static)");
    assert_eq!(plan.leaving().count(), 1);
    assert_eq!(Plan::default().skipped(), None);
}
