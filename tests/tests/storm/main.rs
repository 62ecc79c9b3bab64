//! Storms: both operators work behind proxies that inject faults of every kind, are killed repeatedly, and
//! users change their minds meanwhile. When the faults end, everything must settle in the users' final state,
//! and the witness must find no broken promise. No container of a guarded pod may end during its match.
//!
//! Each storm has a seed. `STORM=17` plays only that one; `PROVE=quick` and `PROVE=all` play more of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use fastrand::Rng;
use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use operator_tests::fleet::Who;
use operator_tests::proof::{Extent, played};
use operator_tests::{Fleet, Programs, Start};
use test_kit::api_proxy::{FaultCounts, FaultKind};
use test_kit::node::Options;
use test_kit::{ApiProxy, ControlPlane};

mod people;
mod two_leaders;
mod workloads;

use people::People;
use workloads::WORKLOADS;

const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Storms run concurrently.
const AT_A_TIME: usize = 4;
/// Number of users' actions in a storm.
const ACTS: usize = 10;
/// Maximum time for which an operator is blind, because watches freeze and reconnect late.
const BLIND: Duration = Duration::from_secs(30);

/// Counts of the events in storms.
#[derive(Debug, Default)]
struct Tally {
    deeds: BTreeMap<FaultKind, u64>,
    kills: u64,
    acts: u64,
    removals: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        for (deed, count) in other.deeds {
            *self.deeds.entry(deed).or_default() += count;
        }
        self.kills += other.kills;
        self.acts += other.acts;
        self.removals += other.removals;
    }

    fn deeds(&self, deed: FaultKind) -> u64 {
        self.deeds.get(&deed).copied().unwrap_or_default()
    }
}

/// Returns start options behind a proxy, with an API timeout of two seconds.
fn start(fleet: &Fleet<'_>, who: Who, proxy: &ApiProxy) -> Start {
    let start = fleet.start_of(who, Some(proxy));
    match who {
        Who::Workloads => start.flags(&["--api-timeout", "2s"]),
        Who::Hooks => start.flags(&["--egress-allow-loopback", "--api-timeout", "2s"]),
    }
}

/// Plays one storm to its end.
async fn play(seed: u64) -> Tally {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let mut rng = Rng::with_seed(seed);
    let workload = &WORKLOADS[usize::try_from(seed).unwrap() % WORKLOADS.len()];
    // While one node is cordoned, replacements can run on the other.
    let options = Options {
        nodes: 2,
        ..Options::default()
    };
    let mut fleet = Fleet::with(control_plane, PROGRAMS, &format!("storm-{seed}"), options).await;
    fleet.blind = BLIND;
    let proxies = [
        ApiProxy::start(control_plane).unwrap(),
        ApiProxy::start(control_plane).unwrap(),
    ];
    for (who, proxy) in [Who::Workloads, Who::Hooks].into_iter().zip(&proxies) {
        let start = start(&fleet, who, proxy);
        fleet.start(who, &start).await;
    }
    workload.launch(&fleet).await;
    let deeds: Vec<FaultCounts> = (proxies.iter().zip(0..))
        .map(|(proxy, number)| proxy.begin_faults(seed.wrapping_mul(2).wrapping_add(number)))
        .collect();
    let mut people = People::new(&fleet, &proxies, workload);
    for _ in 0..ACTS {
        people.act(&mut rng).await;
    }
    for proxy in &proxies {
        proxy.clear_faults();
    }
    people.come_to_an_end().await;
    let mut tally = Tally {
        kills: people.kills,
        acts: ACTS as u64,
        removals: people.removals,
        ..Tally::default()
    };
    for deeds in deeds {
        tally.add(Tally {
            deeds: deeds.counts(),
            ..Tally::default()
        });
    }
    tally
}

#[tokio::test]
async fn after_every_storm_all_is_as_wanted_and_no_promise_was_broken() {
    let one = std::env::var("STORM")
        .ok()
        .map(|seed| seed.parse::<u64>().unwrap());
    let seeds = one.map_or(0..Extent::asked().of(3, 8, 200), |seed| seed..seed + 1);
    let count = seeds.end - seeds.start;
    let storms = stream::iter(seeds).map(|seed| async move {
        let played = AssertUnwindSafe(play(seed)).catch_unwind().await;
        played.map_err(|_| seed)
    });
    let ended: Vec<Result<Tally, u64>> = storms.buffer_unordered(AT_A_TIME).collect().await;
    let mut all = Tally::default();
    let mut failed = Vec::new();
    for storm in ended {
        match storm {
            Ok(tally) => all.add(tally),
            Err(seed) => failed.push(seed),
        }
    }
    let of = |deed| all.deeds(deed);
    played(
        "storm",
        "people change their minds while requests fail",
        &[
            ("seeds", &count),
            ("failed", &failed.len()),
            ("acts of people", &all.acts),
            ("removal requests, withdrawals, cordons, deletions", &all.removals),
            ("intermediate state (kills)", &all.kills),
            (
                "stale state (late, frozen, rewound watches)",
                &of(FaultKind::StaleWatch),
            ),
            (
                "unobserved state (lost events, 410; cut watches)",
                &(of(FaultKind::LostEvents) + of(FaultKind::CutWatch)),
            ),
            ("refused", &of(FaultKind::Refused)),
            ("answers lost after the effect", &of(FaultKind::AnswerLost)),
            ("delayed and overtaken", &of(FaultKind::Delayed)),
            ("never answered", &of(FaultKind::Stalled)),
            ("writes judged by the witness", &operator_tests::judged()),
        ],
    );
    assert!(
        failed.is_empty(),
        "storms {failed:?} did not end well; what each said stands above. \
         To play one again: STORM={} cargo test -p operator-tests --test storm",
        failed[0]
    );
    let calm = [
        FaultKind::StaleWatch,
        FaultKind::LostEvents,
        FaultKind::AnswerLost,
        FaultKind::Refused,
    ]
    .into_iter()
    .find(|deed| all.deeds(*deed) == 0);
    assert!(
        one.is_some() || calm.is_none(),
        "no faults at all: {calm:?}, {all:?}"
    );
    let is_sample = one.is_some() || Extent::asked() == Extent::Sample;
    assert!(is_sample || all.removals > 0, "no removals: {all:?}");
}
