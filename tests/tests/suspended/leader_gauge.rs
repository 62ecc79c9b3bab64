//! The gauge `hookgate_leader` follows the Lease at each scrape, even while its process cannot renew it, or wakes up.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use futures::future::join_all;
use operator_tests::{Fleet, SOON, allow_election};
use test_kit::eventually;

use crate::candidates::{Candidate, renewals, shows_lead, swallow_leases, until_renewed};
use crate::world::fleet;

const LEASE: Duration = Duration::from_secs(6);
/// Time after the beginning of a renewal during which a leader may write: two thirds of the duration.
const LEADS: Duration = Duration::from_secs(4);

async fn leader(name: &str) -> (Fleet<'static>, Candidate) {
    let mut fleet = fleet(name).await;
    fleet.workloads = None;
    allow_election(fleet.control_plane, &fleet.namespace);
    let leader = Candidate::start(&fleet, "6s").await;
    leader.until_it_leads().await;
    (fleet, leader)
}

/// Returns the arrival of the last renewal that succeeded. Its sender began it before.
fn last_renewal(leader: &Candidate) -> Instant {
    renewals(&leader.proxy).last().unwrap().at
}

#[tokio::test]
async fn it_is_0_once_the_lead_is_over_although_no_request_is_answered() {
    let (_fleet, leader) = leader("gauge").await;
    swallow_leases(&leader.proxy);
    let leads = RefCell::new(Vec::new());
    eventually(SOON, || async {
        let scraped = Instant::now();
        let answer = leader.operator.ask("/metrics").await;
        if answer.is_ok_and(|(_, metrics)| shows_lead(&metrics)) {
            leads.borrow_mut().push(scraped);
        }
        leader.operator.process.exit_status().unwrap()
    })
    .await;
    leader.fails().await;
    let over = last_renewal(&leader) + LEADS;
    let leads = leads.into_inner();
    let late: Vec<Duration> = (leads.iter())
        .filter(|scraped| **scraped > over)
        .map(|scraped| *scraped - over)
        .collect();
    assert!(!leads.is_empty(), "it never led");
    assert!(late.is_empty(), "it still claims to lead after {late:?}");
}

#[tokio::test]
async fn it_is_0_at_the_first_scrape_after_the_process_has_slept_too_long() {
    let (_fleet, leader) = leader("gauge").await;
    // Right after a renewal, so that the process does not wait for an answer when it falls asleep.
    until_renewed(&leader.proxy).await;
    swallow_leases(&leader.proxy);
    let process = &leader.operator.process;
    process.pause().unwrap();
    // The kernel accepts connections for a process that sleeps, which answers them when it wakes up.
    let scrapes = join_all((0..4).map(|_| leader.operator.ask("/metrics")));
    let wakes_up = async {
        eventually(SOON, || async {
            (last_renewal(&leader).elapsed() > LEASE).then_some(())
        })
        .await;
        process.resume().unwrap();
    };
    let (answers, ()) = tokio::join!(scrapes, wakes_up);
    let leads = |(_, metrics): &(u16, String)| shows_lead(metrics);
    assert!(!answers.iter().flatten().any(leads), "{answers:?}");
    leader.fails().await;
}
