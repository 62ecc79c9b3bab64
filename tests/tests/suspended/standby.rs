//! A standby whose clocks jump waits for the Lease as long as before: the leader's time is not over.

use operator_tests::{SOON, allow_election};

use crate::candidates::{Candidate, lease, renewals};
use crate::machine::{Jump, Machine};
use crate::world::fleet;

/// Reads of the Lease that a standby makes meanwhile.
const READS: usize = 8;

/// An hour passes by the wall clock alone, and then for the whole machine.
const JUMPS: [Jump; 2] = [Jump::of(60, 0), Jump::of(60, 60)];

#[tokio::test]
async fn a_standby_whose_clocks_jump_takes_no_lease_from_a_healthy_leader() {
    let mut fleet = fleet("standby").await;
    fleet.workloads = None;
    allow_election(fleet.control_plane, &fleet.namespace);
    let leader = Candidate::start(&fleet, "3s").await;
    leader.until_it_leads().await;
    let machine = Machine::new();
    let standby = Candidate::start_as(&fleet, "3s", |start| machine.of(start)).await;
    let before = lease(&fleet).await;
    for jump in JUMPS {
        let reads = standby.proxy.count("get", "leases");
        machine.jump(jump);
        let waited = standby
            .proxy
            .await_count("get", "leases", reads + READS, SOON)
            .await;
        waited.unwrap();
    }
    machine.assert_read();
    let after = lease(&fleet).await;
    assert_eq!(after.holder_identity, before.holder_identity);
    assert_eq!(after.lease_transitions, before.lease_transitions);
    assert_ne!(after.renew_time, before.renew_time, "the leader was not healthy");
    assert!(renewals(&standby.proxy).is_empty());
}
