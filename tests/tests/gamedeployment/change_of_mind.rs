//! A user who changes the spec while many pods are being deleted stops the deletion of the next ones.

use operator_tests::fleet::{Who, game};
use serde_json::json;
use test_kit::ApiProxy;
use test_kit::api_proxy::{Matcher, Moment};

use crate::fleet;

const PODS: usize = 150;
/// Maximum writes of one decision.
const AT_A_TIME: usize = 128;

#[tokio::test]
async fn a_scale_down_that_is_taken_back_spares_all_pods_of_later_decisions() {
    let mut fleet = fleet("change-of-mind").await;
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    fleet.start_behind(&proxy, Who::Workloads).await;
    fleet.launch(&game(PODS, json!({}))).await;
    let before = fleet.names().await;
    let stalled = proxy.stall_after(Matcher::new("DELETE", "/pods/"), 5, Moment::BeforeForwarding);
    fleet.scale(0);
    stalled.struck().await;
    fleet.scale(PODS);
    let generation = fleet.game().await.metadata.generation;
    stalled.release();
    fleet.settled(PODS).await;
    assert_eq!(fleet.game().await.metadata.generation, generation);
    let left = fleet.names().await.intersection(&before).count();
    assert!(left >= PODS - AT_A_TIME, "{left} of {PODS} pods are left");
    assert!(proxy.count("delete", "pods") <= AT_A_TIME);
}
