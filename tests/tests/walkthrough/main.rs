//! User's walk-through of `PreDelete` hooks, command by command, with the real kubectl. The output equals the
//! document's, except random parts of names, ages, and times that are shorter here.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod arguments;
mod failing_hook;
mod successful_hook;
mod terminal;

use std::time::Duration;

use operator_tests::{Fleet, Programs};
use serde_json::json;
use test_kit::node::{Options, Timing};
use test_kit::{Answer, ControlPlane, Webhook};

use terminal::Terminal;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Plays the whole document: its three parts one after the other, in the namespace `default`, like a reader.
#[tokio::test]
async fn the_document_from_its_first_command_to_its_last() {
    let control_plane = ControlPlane::start(test_kit::Options {
        crds: shared_api::crd::all(),
        audit: true,
        ..test_kit::Options::default()
    })
    .await
    .unwrap();
    // A game server takes a moment to end, so that the output shows it as Terminating.
    let timing = Timing {
        stop: Duration::from_secs(2),
        ..Timing::default()
    };
    let options = Options {
        timing,
        ..Options::default()
    };
    let fleet = Fleet::within(&control_plane, PROGRAMS, "default".to_owned(), options).await;
    // The document's sample server, outside the cluster.
    let server = Webhook::start().unwrap();
    server.on(
        "/",
        Answer::json(json!({ "name": "bryan", "male": "yes", "age": 45 })),
    );
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let terminal = Terminal {
        fleet: &fleet,
        directory,
    };
    successful_hook::play(&terminal, &server).await;
    failing_hook::play(&terminal, &server).await;
    arguments::play(&terminal).await;
}
