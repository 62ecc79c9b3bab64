//! Checks of servers that report to a real hookgate-sidecar: its answers follow the server that runs now, and
//! it never returns a number that this server has not reported.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, join_all};
use operator_tests::SOON;
use serde_json::json;
use test_kit::{Process, Program, eventually};

use crate::SIDECAR;
use crate::language::{Language, Samples};
use crate::server::{Answer, Hooks, Server, free_port};

type Check = for<'a> fn(&'a Pod) -> LocalBoxFuture<'a, ()>;

/// Checks, each on a pod of its own.
const CHECKS: [(&str, Check); 5] = [
    ("the number follows the players", |pod| {
        the_number_follows_the_players(pod).boxed_local()
    }),
    ("a dead server has no number", |pod| {
        a_dead_server_has_no_number(pod).boxed_local()
    }),
    ("a hung server has no number", |pod| {
        a_hung_server_has_no_number(pod).boxed_local()
    }),
    ("the server survives the sidecar", |pod| {
        the_server_survives_the_sidecar(pod).boxed_local()
    }),
    ("SIGTERM ends it", |pod| sigterm_ends_it(pod).boxed_local()),
];

/// Game server and sidecar, which share the network.
struct Pod {
    server: Server,
    sidecar: Process,
    hooks: Hooks,
}

/// Runs all checks.
pub(crate) async fn check(language: Language) {
    let Some(built) = language.build(Samples::WithSidecar) else {
        return;
    };
    // At once, because they mostly wait for reports to come or to become stale.
    join_all(CHECKS.map(async |(name, check)| {
        let pod = Pod::start(&built.program).await;
        let checked = AssertUnwindSafe(check(&pod)).catch_unwind().await;
        checked.unwrap_or_else(|failure| {
            eprintln!("{language:?}: failed: {name}");
            resume_unwind(failure)
        });
    }))
    .await;
}

impl Pod {
    /// Starts both on ports that are free. The server is first, so its first reports are refused.
    async fn start(program: &Program) -> Self {
        for _ in 0..5 {
            let (game_port, report_port) = (free_port(), free_port());
            let program = program.clone().env("SIDECAR_PORT", report_port.to_string());
            let Some(server) = Server::start(program, game_port).await else {
                continue;
            };
            let hooks = Hooks::on(free_port());
            let sidecar = Program::new(SIDECAR).args([
                "--source=udp".to_owned(),
                format!("--game-port={game_port}/udp"),
                "--fresh-for=6s".to_owned(),
                format!("--listen=127.0.0.1:{}", hooks.port()),
                format!("--report-address=127.0.0.1:{report_port}"),
            ]);
            let sidecar = Process::start(sidecar).unwrap();
            let works = eventually(SOON, || async {
                if sidecar.exit_status().unwrap().is_some() {
                    eprintln!("{}", sidecar.tail(20));
                    return Ok(false);
                }
                hooks
                    .try_ask("GET", "/healthz")
                    .await
                    .map(|answer| answer.status == 200)
            });
            if works.await {
                let pod = Self {
                    server,
                    sidecar,
                    hooks,
                };
                pod.expect_players(0).await;
                return pod;
            }
        }
        panic!("the server or the sidecar does not start");
    }

    async fn players(&self) -> Answer {
        self.hooks.ask("GET", "/players").await
    }

    /// Waits until the sidecar returns this number. Until then, no other number may appear.
    async fn expect_players(&self, count: u64) {
        let reached = eventually(SOON, || async {
            let answer = self.hooks.try_ask("GET", "/players").await?;
            match answer.status {
                200 if answer.json["players"] == count => Ok(Ok(())),
                503 => Err(format!("{answer:?}")),
                _ => Ok(Err(answer)),
            }
        });
        if let Err(answer) = reached.await {
            panic!("{answer:?} instead of {count}");
        }
        self.server.assert_runs();
    }

    /// Asserts that an answer is 503 with this reason.
    fn assert_unknown(answer: &Answer, reason: &str) {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.json["reason"], reason, "{answer:?}");
    }
}

/// The server reports before it replies. So the sidecar never returns the number from before to somebody who
/// knows that a player has joined.
async fn the_number_follows_the_players(pod: &Pod) {
    pod.server.join("ann").await;
    pod.expect_players(1).await;
    pod.server.join("ann").await;
    pod.expect_players(1).await;
    pod.server.join("bob").await;
    pod.expect_players(2).await;
    assert_eq!(pod.server.say("dance ann").await, "unknown");
    pod.expect_players(2).await;
    for (number, name) in ["ann", "bob"].iter().enumerate() {
        pod.server.leave(name).await;
        pod.expect_players(1 - number as u64).await;
    }
    for number in 1..=20 {
        pod.server.join(&format!("player-{number}")).await;
        pod.expect_players(number).await;
    }
}

async fn a_dead_server_has_no_number(pod: &Pod) {
    pod.server.join("ann").await;
    pod.server.join("bob").await;
    pod.expect_players(2).await;

    pod.server.process.kill_hard().unwrap();
    for _ in 0..20 {
        Pod::assert_unknown(&pod.players().await, "GameGone");
    }
    pod.server.process.restart().unwrap();
    // The new server has no players. Until it has reported that itself, no number may appear.
    pod.expect_players(0).await;
    pod.server.join("cid").await;
    pod.expect_players(1).await;
}

async fn a_hung_server_has_no_number(pod: &Pod) {
    pod.server.join("ann").await;
    pod.expect_players(1).await;

    pod.server.process.pause().unwrap();
    eventually(SOON, || async {
        let answer = pod.players().await;
        if answer.status == 200 {
            assert_eq!(answer.json["players"], json!(1));
            return Err(answer);
        }
        Pod::assert_unknown(&answer, "Stale");
        Ok(())
    })
    .await;
    for _ in 0..20 {
        Pod::assert_unknown(&pod.players().await, "Stale");
    }
    pod.server.process.resume().unwrap();
    pod.expect_players(1).await;
}

async fn the_server_survives_the_sidecar(pod: &Pod) {
    pod.server.join("ann").await;
    pod.expect_players(1).await;

    pod.sidecar.kill_hard().unwrap();
    // Each of these sends a report that is refused.
    for name in ["bob", "cid", "dan", "eve"] {
        pod.server.join(name).await;
    }
    pod.sidecar.restart().unwrap();
    pod.expect_players(5).await;
    pod.server.leave("ann").await;
    pod.expect_players(4).await;
}

async fn sigterm_ends_it(pod: &Pod) {
    pod.server.join("ann").await;
    pod.expect_players(1).await;
    pod.server.end().await;
    Pod::assert_unknown(&pod.players().await, "GameGone");
}
