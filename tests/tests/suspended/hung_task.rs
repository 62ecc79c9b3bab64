//! The loop of a leader hangs. It may renew its Lease for a while, but not for ever: the process says so, ends, and
//! leaves the work to another one.

use std::time::Duration;

use operator_tests::{SOON, allow_election};
use serde_json::json;
use test_kit::eventually;

use crate::candidates::Candidate;
use crate::machine::Machine;
use crate::players::Players;
use crate::world::{PRE_DELETE, Victim, fleet, launch};

/// Time until a process in which a task hangs has ended.
const ENDS_WITHIN: Duration = Duration::from_mins(2);

#[tokio::test]
async fn a_process_whose_loop_hangs_ends_and_another_one_finishes() {
    let mut fleet = fleet("hung-task").await;
    fleet.workloads = None;
    allow_election(fleet.control_plane, &fleet.namespace);
    let players = Players::start();
    let machine = Machine::new();
    let first = Candidate::start_as(&fleet, "3s", |start| machine.of(start)).await;
    first.until_it_leads().await;
    let second = Candidate::start(&fleet, "3s").await;
    launch(&fleet, &players, 2, PRE_DELETE).await;
    fleet.scale(1);
    let (victim, _) = Victim::asked_for(&fleet, &players, 0).await;

    machine.hang();
    // An event wakes the loop.
    let touched = json!({ "metadata": { "annotations": { "touched": "yes" } } });
    fleet.patch(touched).await;
    machine.hangs().await;
    players.set(0);
    let process = &first.operator.process;
    let (ended, said) = tokio::join!(
        process.wait(ENDS_WITHIN),
        eventually(SOON, || async {
            let (status, text) = first.operator.ask("/healthz").await?;
            if status == 503 { Ok(text) } else { Err(text) }
        })
    );
    assert!(said.contains("driver"), "{said}");
    let ended = ended.unwrap();
    assert_eq!(ended.code(), Some(1), "{}", process.tail(5));
    second.until_it_leads().await;
    victim.goes(&fleet, &players).await;
    fleet.settled(1).await;
}
