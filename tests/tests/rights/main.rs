//! Checks that `deploy/rbac.yaml` and `deploy/rbac-namespaced.yaml` grant exactly the permissions that the
//! operators need: a story with all of them is never refused, and without any one of them it is. The API
//! server also enforces permission for blocking the deletion of an owner. The permissions in
//! `deploy/rbac-evictions.yaml` have a story of their own.
//!
//! `PROVE=all` removes every permission, one after the other; otherwise some.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use operator_tests::fleet::Who;
use operator_tests::proof::{Extent, played};
use operator_tests::{Fleet, GROUPS, Programs, Start, allow_election};
use test_kit::api_proxy::{Entry, Outcome};
use test_kit::{ApiProxy, ControlPlane, Options};
use tokio::sync::OnceCell;

mod evictions;
mod grants;
mod story;

use grants::{EVERYWHERE, Grant, NAMESPACED, apply, granted};

const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

const BOTH: [Who; 2] = [Who::Workloads, Who::Hooks];

/// Flags of hook-operator: with them, it does everything that it can do.
const HOOKS_FLAGS: [&str; 2] = ["--egress-allow-loopback", "--execution-hooks"];

/// Stories run concurrently.
const AT_A_TIME: usize = 4;

/// Time within which a request gets its response.
const ANSWER: Duration = Duration::from_secs(10);

static STRICT: OnceCell<ControlPlane> = OnceCell::const_new();

/// Returns an API server that enforces permission for blocking the deletion of owners, and serves Evictions.
async fn strict() -> &'static ControlPlane {
    let start = || async {
        let mut crds = shared_api::crd::all();
        crds.push(evictions::definition());
        let options = Options {
            crds,
            audit: true,
            api_server_arguments: vec![
                "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
            ],
            ..Options::default()
        };
        ControlPlane::start(options).await.unwrap()
    };
    STRICT.get_or_init(start).await
}

/// Returns a fleet whose operators work behind proxies, one of them as a user without a permission; and the
/// proxies.
async fn fleet_without(missing: Option<&Grant>) -> (Fleet<'static>, [ApiProxy; 2]) {
    let control_plane = strict().await;
    let mut fleet = Fleet::on(control_plane, PROGRAMS, "rights").await;
    allow_election(control_plane, &fleet.namespace);
    let proxies = [
        ApiProxy::start(control_plane).unwrap(),
        ApiProxy::start(control_plane).unwrap(),
    ];
    for (who, proxy) in BOTH.into_iter().zip(&proxies) {
        let start = match missing.filter(|missing| missing.who == who) {
            Some(missing) => {
                let user = missing.take_away(control_plane, &fleet.namespace).await;
                let kubeconfig = proxy.kubeconfig_as(&user, &GROUPS).unwrap();
                let program = if who == Who::Hooks {
                    PROGRAMS.hooks
                } else {
                    PROGRAMS.workloads
                };
                Start::new(program, &kubeconfig, &fleet.namespace)
            }
            None => fleet.start_of(who, Some(proxy)),
        };
        let flags: &[&str] = if who == Who::Hooks { &HOOKS_FLAGS } else { &[] };
        // An operator without a permission may never become ready.
        fleet.start_unready(who, &start.flags(flags).elects());
    }
    (fleet, proxies)
}

fn was_refused(entry: &Entry) -> bool {
    entry.outcome == Outcome::Status(403)
}

/// Whether the API server refuses the story without this permission.
async fn is_missed(missing: &Grant) -> bool {
    let (fleet, proxies) = fleet_without(Some(missing)).await;
    let proxy = &proxies[usize::from(missing.who == Who::Hooks)];
    is_refused_during(proxy, missing, tell(&fleet, &proxies, missing)).await
}

/// Whether the API server refuses a request during a story because this permission is missing.
async fn is_refused_during(proxy: &ApiProxy, missing: &Grant, story: impl Future<Output = ()>) -> bool {
    let refused = async {
        loop {
            let requests = proxy.requests();
            if requests
                .iter()
                .any(|entry| was_refused(entry) && missing.is_behind(&entry.call))
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let mut refused = std::pin::pin!(refused);
    tokio::select! {
        () = &mut refused => true,
        // The story may end with the very request that is about to be refused.
        () = story => tokio::time::timeout(ANSWER, refused).await.is_ok(),
    }
}

/// Plays the story, and the part that takes a minute if the missing permission is needed there.
async fn tell(fleet: &Fleet<'_>, proxies: &[ApiProxy; 2], missing: &Grant) {
    story::tell(fleet, proxies).await;
    if *missing == Grant::new(Who::Workloads, "get", "nodes") {
        story::lose_a_node(fleet, proxies).await;
    }
}

/// Plays the story and checks that nothing is refused and that each permission of a file is used. Returns
/// their number.
async fn told_with(fleet: &Fleet<'_>, proxies: &[ApiProxy; 2], rights: &str) -> usize {
    story::tell(fleet, proxies).await;
    if rights == EVERYWHERE {
        story::lose_a_node(fleet, proxies).await;
    }
    let mut used = BTreeSet::new();
    for (who, proxy) in BOTH.into_iter().zip(proxies) {
        let requests = proxy.requests();
        let refused: Vec<&Entry> = requests.iter().filter(|entry| was_refused(entry)).collect();
        assert!(refused.is_empty(), "{refused:?}");
        let resources = requests.iter().filter(|entry| !entry.call.resource.is_empty());
        used.extend(resources.map(|entry| Grant::new(who, entry.call.verb, &entry.call.resource)));
    }
    let granted: BTreeSet<Grant> = granted(rights).into_iter().collect();
    // Not a request, but a condition for creating dependents. Another test removes it.
    let hidden = Grant::new(Who::Workloads, "update", "gamedeployments/finalizers");
    let unused: Vec<&Grant> = granted
        .difference(&used)
        .filter(|grant| **grant != hidden)
        .collect();
    assert!(unused.is_empty(), "granted and never used: {unused:?}");
    let more: Vec<&Grant> = used.difference(&granted).collect();
    assert!(more.is_empty(), "used and not granted: {more:?}");
    granted.len()
}

#[tokio::test]
async fn every_right_is_used_and_nothing_is_refused() {
    let (fleet, proxies) = fleet_without(None).await;
    let granted = told_with(&fleet, &proxies, EVERYWHERE).await;
    played(
        "rights",
        "a story with all rights",
        &[("granted", &granted), ("refused", &0)],
    );
}

#[tokio::test]
async fn in_one_namespace_no_right_outside_of_it_is_needed() {
    let control_plane = strict().await;
    let mut fleet = Fleet::on(control_plane, PROGRAMS, "rights").await;
    let namespace = fleet.namespace.clone();
    apply(
        control_plane,
        NAMESPACED.replace("namespace: games", &format!("namespace: {namespace}")),
    );
    let proxies = [
        ApiProxy::start(control_plane).unwrap(),
        ApiProxy::start(control_plane).unwrap(),
    ];
    let groups = ["system:serviceaccounts", "system:authenticated"];
    for (who, proxy) in BOTH.into_iter().zip(&proxies) {
        let (program, name, flags): (_, _, &[&str]) = match who {
            Who::Workloads => (PROGRAMS.workloads, "gamedeployment-operator", &["--ignore-nodes"]),
            Who::Hooks => (PROGRAMS.hooks, "hook-operator", &HOOKS_FLAGS),
        };
        let user = format!("system:serviceaccount:{namespace}:{name}");
        let kubeconfig = proxy.kubeconfig_as(&user, &groups).unwrap();
        let start = Start::new(program, &kubeconfig, &namespace).flags(flags).elects();
        fleet.start_unready(who, &start);
    }
    let granted = told_with(&fleet, &proxies, NAMESPACED).await;
    played(
        "rights",
        "a story in one namespace, with its Roles alone",
        &[("granted", &granted), ("refused", &0)],
    );
}

#[tokio::test]
async fn without_any_one_right_something_is_refused() {
    let all = granted(EVERYWHERE);
    let some = ["gamedeployments/finalizers", "pods/status", "secrets"];
    let chosen: Vec<&Grant> = all
        .iter()
        .filter(|grant| Extent::asked() == Extent::All || some.contains(&grant.resource.as_str()))
        .collect();
    let tried = stream::iter(&chosen).map(|grant| async move { (grant, is_missed(grant).await) });
    let tried: Vec<_> = tried.buffer_unordered(AT_A_TIME).collect().await;
    let unmissed: Vec<_> = tried
        .iter()
        .filter(|(_, missed)| !missed)
        .map(|(grant, _)| grant)
        .collect();
    played(
        "rights",
        "a story with one right taken away",
        &[
            ("rights", &all.len()),
            ("taken away", &chosen.len()),
            ("not missed", &unmissed.len()),
        ],
    );
    assert!(unmissed.is_empty(), "nobody missed {unmissed:?}");
}
