//! A CRD that is older than the operator drops fields of the status.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use operator_tests::Fleet;
use operator_tests::fleet::{empty_now, game, hooked};
use test_kit::ControlPlane;
use test_kit::control_plane::Options;

use crate::PROGRAMS;

/// Most writes of the status: a dozen while the fleet changes, and as many of repeated ones. Without a
/// back-off there would be hundreds a second.
const MOST_WRITES: u64 = 100;

/// Returns the CRDs; that of GameDeployments lacks `status.phase` and `status.reason`.
fn older() -> Vec<CustomResourceDefinition> {
    let mut crds = shared_api::crd::all();
    let games = crds
        .iter_mut()
        .find(|crd| crd.spec.names.kind == "GameDeployment");
    let schema = games.unwrap().spec.versions[0].schema.as_mut().unwrap();
    let schema = schema.open_api_v3_schema.as_mut().unwrap();
    let status = schema.properties.as_mut().unwrap().get_mut("status").unwrap();
    for field in ["phase", "reason"] {
        let removed = status.properties.as_mut().unwrap().remove(field);
        assert!(removed.is_some(), "{field}");
    }
    crds
}

#[tokio::test]
async fn the_status_is_written_ever_more_rarely_and_says_why_and_pods_are_scaled() {
    let options = Options {
        crds: older(),
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await.unwrap();
    let fleet = Fleet::on(&control_plane, PROGRAMS, "older-crd").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    let message = fleet.says("UpdateBlocked", "WriteFailed").await;
    assert!(
        message.contains("the API server accepted the write but stored something else"),
        "{message}"
    );
    for replicas in [6, 1, 4] {
        fleet.scale(replicas);
        let wanted = i32::try_from(replicas).unwrap();
        fleet
            .until(|status| (status.replicas, status.ready_replicas) == (wanted, wanted))
            .await;
    }
    assert_eq!(fleet.nodes.terminations().len(), 5, "six pods became one");
    let writes = fleet
        .metric("hookgate_gamedeployment_actions_total", "action=\"status\"")
        .await;
    assert!((3..MOST_WRITES).contains(&writes), "{writes}");
}
