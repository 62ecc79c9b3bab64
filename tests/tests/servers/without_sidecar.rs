//! Checks of servers that serve the hook endpoint themselves.

use futures::future::{LocalBoxFuture, join, join_all};
use futures::{FutureExt as _, StreamExt as _, stream};
use operator_tests::SOON;
use serde_json::json;
use test_kit::{Process, Program, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::language::{Language, Samples};
use crate::server::{Hooks, Server, free_port};

type Check = for<'a> fn(&'a Server, &'a Hooks) -> LocalBoxFuture<'a, ()>;

/// Checks, each on a server of its own.
const CHECKS: [(&str, Check); 6] = [
    ("players are counted", |server, hooks| {
        players_are_counted(server, hooks).boxed_local()
    }),
    ("questions change nothing", |server, hooks| {
        questions_change_nothing(server, hooks).boxed_local()
    }),
    ("a drain stops joins", |server, hooks| {
        a_drain_stops_joins(server, hooks).boxed_local()
    }),
    ("a slow client blocks nobody", |server, hooks| {
        a_slow_client_blocks_nobody(server, hooks).boxed_local()
    }),
    ("many clients are served at once", |server, hooks| {
        many_clients_are_served_at_once(server, hooks).boxed_local()
    }),
    ("SIGTERM ends it", |server, hooks| {
        sigterm_ends_it(server, hooks).boxed_local()
    }),
];

/// Runs all checks.
pub(crate) async fn check(language: Language) {
    let Some(built) = language.build(Samples::WithoutSidecar) else {
        return;
    };
    for (name, check) in CHECKS {
        eprintln!("{language:?}: {name}");
        let (server, hooks) = start(&built.program).await;
        check(&server, &hooks).await;
    }
    eprintln!("{language:?}: a wrong port is reported");
    for variable in ["GAME_PORT", "HOOK_PORT"] {
        a_wrong_port_is_reported(&built.program, variable).await;
    }
}

/// Starts a server on ports that are free.
async fn start(program: &Program) -> (Server, Hooks) {
    for _ in 0..5 {
        let hooks = Hooks::on(free_port());
        let program = program.clone().env("HOOK_PORT", hooks.port().to_string());
        if let Some(server) = Server::start(program, free_port()).await {
            return (server, hooks);
        }
    }
    panic!("the server does not start");
}

async fn expect_players(hooks: &Hooks, count: usize) {
    let answer = hooks.ask("GET", "/players").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json, json!({ "players": count }));
    assert!(answer.content_type.starts_with("application/json"), "{answer:?}");
}

async fn players_are_counted(server: &Server, hooks: &Hooks) {
    expect_players(hooks, 0).await;
    server.join("ann").await;
    expect_players(hooks, 1).await;
    server.join("ann").await;
    expect_players(hooks, 1).await;
    // As typed into a terminal.
    assert_eq!(server.say("join bob\n").await, "welcome bob");
    expect_players(hooks, 2).await;
    server.leave("ann").await;
    server.leave("ann").await;
    expect_players(hooks, 1).await;

    let long = vec![b'x'; 60_000];
    let nonsense: [&[u8]; 7] = [
        b"",
        b"join",
        b"join a b",
        b"leave",
        b"dance ann",
        b"\xff\xfe \x00",
        &long,
    ];
    for words in nonsense {
        assert_eq!(server.say(words).await, "unknown");
    }
    expect_players(hooks, 1).await;
}

async fn questions_change_nothing(server: &Server, hooks: &Hooks) {
    server.join("ann").await;
    for _ in 0..10 {
        expect_players(hooks, 1).await;
    }
    for (method, path) in [
        ("GET", "/drain"),
        ("PUT", "/drain"),
        ("DELETE", "/drain"),
        ("POST", "/players"),
        ("PUT", "/players"),
        ("DELETE", "/players"),
    ] {
        let answer = hooks.ask(method, path).await;
        assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
    }
    for path in ["/", "/player", "/players/ann", "/drained"] {
        for method in ["GET", "POST"] {
            let answer = hooks.ask(method, path).await;
            assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        }
    }
    server.join("bob").await;
    expect_players(hooks, 2).await;
}

async fn a_drain_stops_joins(server: &Server, hooks: &Hooks) {
    server.join("ann").await;
    for _ in 0..2 {
        // Without a body and its length, as a hook sends it.
        let answer = hooks.ask("POST", "/drain").await;
        assert_eq!((answer.status, &answer.json), (200, &json!({ "draining": true })));
        assert!(answer.content_type.starts_with("application/json"), "{answer:?}");
    }
    let answer = hooks.post_json("/drain", &json!({ "reason": "update" })).await;
    assert_eq!((answer.status, answer.json), (200, json!({ "draining": true })));

    assert_eq!(server.say("join bob").await, "draining");
    expect_players(hooks, 1).await;
    server.leave("ann").await;
    expect_players(hooks, 0).await;
    assert_eq!(server.say("join ann").await, "draining");
    expect_players(hooks, 0).await;
}

/// Connects, and sends the beginning of a request.
async fn begin(hooks: &Hooks, beginning: &str) -> Result<TcpStream, String> {
    let connect = TcpStream::connect(("127.0.0.1", hooks.port())).await;
    let mut client = connect.map_err(|error| error.to_string())?;
    let sent = client.write_all(beginning.as_bytes()).await;
    sent.map_err(|error| error.to_string())?;
    Ok(client)
}

async fn a_slow_client_blocks_nobody(server: &Server, hooks: &Hooks) {
    server.join("ann").await;
    expect_players(hooks, 1).await;
    // The server may close the connection of a client that is too slow. On a busy machine this test may be.
    eventually(SOON, || async {
        let mut slow = begin(hooks, "GET /players HTTP/1.1\r\nHos").await?;
        let _silent = begin(hooks, "").await?;
        let _half_body = begin(
            hooks,
            "POST /drain HTTP/1.1\r\nHost: game\r\nContent-Length: 9\r\n\r\n{",
        )
        .await?;
        for answer in join_all((0..10).map(|_| hooks.try_ask("GET", "/players"))).await {
            assert_eq!(answer?.json, json!({ "players": 1 }));
        }
        // The slow client is still served: the others did not wait for its end.
        let rest = b"t: game\r\nConnection: close\r\n\r\n";
        let sent = slow.write_all(rest).await;
        sent.map_err(|error| error.to_string())?;
        let mut answer = String::new();
        let read = slow.read_to_string(&mut answer).await;
        read.map_err(|error| error.to_string())?;
        if answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#"{"players":1}"#) {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    server.assert_runs();
}

async fn many_clients_are_served_at_once(server: &Server, hooks: &Hooks) {
    const PLAYERS: usize = 100;
    let join_game = |number: usize| async move { server.join(&format!("player-{number}")).await };
    let joins = stream::iter(0..PLAYERS).for_each_concurrent(20, join_game);
    let count = |_| async {
        let answer = hooks.ask("GET", "/players").await;
        let players = answer.json["players"].as_u64();
        assert!(players.is_some_and(|players| players <= 100), "{answer:?}");
    };
    let questions = stream::iter(0..PLAYERS).for_each_concurrent(20, count);
    join(joins, questions).await;
    expect_players(hooks, PLAYERS).await;
}

async fn sigterm_ends_it(server: &Server, hooks: &Hooks) {
    server.join("ann").await;
    expect_players(hooks, 1).await;
    let _slow = begin(hooks, "GET /players HTTP/1.1\r\n").await.unwrap();
    server.end().await;
}

/// A typing error must not start a server on a port that nobody expects.
async fn a_wrong_port_is_reported(program: &Program, variable: &str) {
    let other = if variable == "GAME_PORT" {
        "HOOK_PORT"
    } else {
        "GAME_PORT"
    };
    for wrong in ["game", "0", "65536", ""] {
        let program = program.clone().env(variable, wrong);
        let process = Process::start(program.env(other, free_port().to_string())).unwrap();
        let status = process.wait(SOON).await.unwrap();
        let error = process.stderr();
        assert_eq!(status.code(), Some(1), "{variable}={wrong}: {status}: {error}");
        assert!(error.contains(variable), "{variable}={wrong}: {error}");
    }
}
