//! Thousands of connections from a pod without credentials, to the port of each operator for probes and
//! metrics. The checks come from outside: the kernel's counts of the process's memory and of its connections,
//! the Lease in the API server, probes as the kubelet sends them, and the operator's work.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use operator_tests::fleet::{Who, game, hooked, until_empty};
use operator_tests::{Fleet, Programs, allow_election, hooks_kubeconfig};
use test_kit::flood::{Flood, Footprint, ProbeReport, Probes, STRANGER, Script, SocketWatch, Sockets};

use kube::api::{Api, PostParams};
use operator_tests::proof::played;
use operator_tests::{Operator, SOON, Start, alone};
use serde_json::json;
use shared_api::HookRun;
use shared_api::hook_run::HookRunSpec;
use test_kit::{Answer, Webhook, eventually};

use super::{CONNECTIONS, DROPPED, FEW_CONNECTIONS, FILES, MACHINE, REPEATED, length};

const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};
const PROGRAM: &str = PROGRAMS.hooks;
/// Memory limit of each operator in `deploy/install.yaml`, in bytes.
const LIMIT: u64 = 512 << 20;
/// Duration of a Lease, as in a cluster.
const LEASE: SignedDuration = SignedDuration::from_secs(15);

/// Behaviours of a peer at the port for probes and metrics.
fn scripts() -> [(&'static str, Script); 3] {
    [
        ("connections that send nothing", Script::silent()),
        ("heads that never end", Script::endless_head()),
        (
            "readers that never read their metrics",
            Script::unread_get("/metrics"),
        ),
    ]
}

/// Leading operator, and its Lease.
struct Leader<'o> {
    name: &'static str,
    operator: &'o Operator,
    leases: Api<Lease>,
}

impl Leader<'_> {
    async fn lease(&self) -> LeaseSpec {
        self.leases.get(self.name).await.unwrap().spec.unwrap()
    }

    /// Returns the holder of the Lease, and how often it has changed.
    async fn lead(&self) -> (Option<String>, Option<i32>) {
        let lease = self.lease().await;
        (lease.holder_identity, lease.lease_transitions)
    }

    /// Records the longest time since the last renewal, until it is cancelled.
    async fn watch_renewals(&self, longest: &Cell<SignedDuration>) {
        loop {
            let renewed = self.lease().await.renew_time.unwrap().0;
            let age = Timestamp::now().duration_since(renewed);
            longest.set(longest.get().max(age));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Floods the operator while it works, and returns the probes.
    async fn flooded(
        &self,
        what: &str,
        from: Ipv4Addr,
        scripts: &[Script],
        work: &impl AsyncFn(),
    ) -> ProbeReport {
        let address = self.operator.address;
        let lead = self.lead().await;
        let flood = Flood::start(address, from, CONNECTIONS, scripts).unwrap();
        let (probes, sockets) = (
            Probes::start(address, &["/healthz", "/readyz"]),
            SocketWatch::start(self.operator.process.id(), address),
        );
        let (late, rounds) = (Cell::new(SignedDuration::ZERO), Cell::new(0_u32));
        let worked = async {
            let begun = Instant::now();
            while begun.elapsed() < length() || rounds.get() < 2 {
                work().await;
                rounds.set(rounds.get() + 1);
            }
        };
        tokio::select! {
            () = worked => {}
            () = self.watch_renewals(&late) => {}
        }
        let probes = probes.end().await;
        let Footprint { sockets, files } = sockets.end().await.unwrap();
        let flood = flood.end().await;
        let peak = self.operator.process.peak_rss_bytes();
        let what = format!("{}: {what}, from {from}", self.name);
        played(
            "fairness",
            &what,
            &[
                ("connections", &flood.opened),
                ("closed by the operator", &flood.closed),
                ("MiB of memory at most", &(peak >> 20)),
                ("accepted at once", &sockets.connections),
                ("files at once", &files),
                ("KiB in the kernel at most", &(sockets.bytes >> 10)),
                ("ms since the last renewal at most", &late.get().as_millis()),
                ("probes", &probes.count),
                ("probes that failed", &probes.failed.len()),
                ("of them in a row", &probes.most_in_a_row),
                ("ms for the slowest probe", &probes.slowest.as_millis()),
                ("pieces of work", &rounds.get()),
            ],
        );
        let process = &self.operator.process;
        assert!(
            process.exit_status().unwrap().is_none(),
            "{what}: {}",
            process.tail(20)
        );
        assert!(flood.opened >= CONNECTIONS as u64, "{what}: {flood:?}");
        assert!(
            peak > 0 && peak + sockets.bytes < LIMIT,
            "{what}: {peak} bytes and {sockets:?}"
        );
        assert!(files < FILES, "{what}: {files} open files");
        assert!(late.get() < LEASE, "{what}: not renewed for {:?}", late.get());
        assert_eq!(self.lead().await, lead, "{what}");
        assert!(probes.count >= 4, "{what}: {probes:?}");
        self.recovers(&what, work).await;
        probes
    }

    /// Checks that the operator works as before, and keeps none of the flood's connections.
    async fn recovers(&self, what: &str, work: &impl AsyncFn()) {
        work().await;
        self.operator.ready().await;
        eventually(SOON, || async {
            let sockets = Sockets::of(self.operator.address).map_err(|error| error.to_string())?;
            if sockets.connections < FEW_CONNECTIONS {
                Ok(())
            } else {
                Err(format!("{what}: {sockets:?}"))
            }
        })
        .await;
    }

    /// Waits until the metrics show the flood. They may be several seconds old.
    async fn noticed(&self) {
        eventually(SOON, || async {
            let dropped = self.operator.metric(DROPPED, "listener=\"http\"").await;
            if dropped > 1_000 {
                Ok(())
            } else {
                Err(format!("{dropped} connections dropped"))
            }
        })
        .await;
    }

    /// Floods the operator in every way, twice.
    async fn withstands_all(&self, work: &impl AsyncFn()) {
        let all = scripts().map(|(_, script)| script);
        for (what, script) in scripts() {
            let probes = self.flooded(what, STRANGER, &[script], work).await;
            assert!(probes.failed.is_empty(), "{what}: {:#?}", probes.failed);
        }
        let once = self.operator.process.peak_rss_bytes();
        let probes = self.flooded("all of them again", STRANGER, &all, work).await;
        assert!(probes.failed.is_empty(), "{:#?}", probes.failed);
        let twice = self.operator.process.peak_rss_bytes();
        assert!(twice < once + REPEATED, "{once} bytes, then {twice}");
        self.noticed().await;
        // Nothing tells the flood from the probes here, so probes may lose their connections, though not most
        // of them.
        let probes = self.flooded("all of them", Ipv4Addr::LOCALHOST, &all, work).await;
        let failed = u64::try_from(probes.failed.len()).unwrap();
        assert!((probes.count - failed) * 4 > probes.count, "{:#?}", probes.failed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_connections_does_not_hold_up_hook_operator() {
    let _alone = MACHINE.lock().await;
    let control_plane = alone().await;
    let namespace = control_plane.namespace("runs").await;
    let leases = control_plane.namespace("leases").await;
    allow_election(&control_plane, &leases);
    let server = Webhook::start().unwrap();
    server.on("/", Answer::json(json!({ "age": 45 })));
    let kubeconfig = hooks_kubeconfig(&control_plane).await;
    let flags = [
        "--egress-allow-loopback",
        "--lease-namespace",
        leases.as_str(),
        "--lease-duration",
        "15s",
    ];
    let operator = Operator::start(&Start::everywhere(PROGRAM, &kubeconfig).flags(&flags).elects());
    operator.ready().await;
    let spec: HookRunSpec = serde_json::from_value(json!({ "metrics": [{
        "name": "one", "successCondition": "asInt(result) > 30",
        "provider": { "web": { "url": server.url("/"), "jsonPath": "{$.age}" } }
    }] }))
    .unwrap();
    let api: Api<HookRun> = Api::namespaced(control_plane.client(), &namespace);
    let number = Cell::new(0_u32);
    let verdict = async || {
        let name = format!("run-{}", number.replace(number.get() + 1));
        let run = HookRun::new(&name, spec.clone());
        api.create(&PostParams::default(), &run).await.unwrap();
        let status = eventually(SOON, || async {
            let run = api.get(&name).await.map_err(|error| error.to_string())?;
            let status = run.status.unwrap_or_default();
            if status.phase.is_final() {
                Ok(status)
            } else {
                Err(format!("{status:?}\n{}", operator.process.tail(10)))
            }
        })
        .await;
        assert_eq!(status.phase.as_str(), "Successful", "{status:?}");
    };
    // The first verdict comes with the lead.
    verdict().await;
    let leader = Leader {
        name: "hook-operator",
        operator: &operator,
        leases: Api::namespaced(control_plane.client(), &leases),
    };
    leader.withstands_all(&verdict).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_connections_does_not_hold_up_gamedeployment_operator() {
    let _alone = MACHINE.lock().await;
    let control_plane = alone().await;
    let mut fleet = Fleet::on(&control_plane, PROGRAMS, "flood").await;
    allow_election(&control_plane, &fleet.namespace);
    let namespace = fleet.namespace.clone();
    let flags = ["--lease-namespace", namespace.as_str(), "--lease-duration", "15s"];
    let start = fleet.start_of(Who::Workloads, None).flags(&flags).elects();
    fleet.start(Who::Workloads, &start).await;
    let fleet = fleet;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    let has = async |replicas: usize| {
        fleet.scale(replicas);
        let wanted = i32::try_from(replicas).unwrap();
        fleet
            .until(|status| {
                status.replicas == wanted
                    && status.ready_replicas == wanted
                    && status.hook_pending_replicas == 0
            })
            .await;
        fleet.until_pods(|pods| pods.len() == replicas).await;
        fleet.until_runs(<[HookRun]>::is_empty).await;
    };
    // A pod goes only when its hook has succeeded.
    let scaled = async || {
        has(2).await;
        has(1).await;
    };
    scaled().await;
    let leader = Leader {
        name: Who::Workloads.name(),
        operator: fleet.operator(Who::Workloads).unwrap(),
        leases: Api::namespaced(control_plane.client(), &namespace),
    };
    leader.withstands_all(&scaled).await;
    fleet.settled(1).await;
}
