//! `observedGeneration`: a client that waits for it then reads counts and revisions of exactly the applied
//! spec.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::WatchEvent;
use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;

use crate::fleet;
use crate::seen::Seen;

#[tokio::test]
async fn a_status_never_claims_a_spec_that_it_does_not_speak_of() {
    let fleet = fleet("observed-generation").await;
    fleet.hook("empty", until_empty()).await;
    let seen = Seen::of(fleet.games()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    for (image, replicas) in [("game:v2", 4), ("game:v3", 2), ("game:v1", 3)] {
        fleet.set_image(image).await;
        fleet.scale(replicas);
        fleet
            .until(|status| status.updated_ready_replicas == i32::try_from(replicas).unwrap())
            .await;
        fleet.settled(replicas).await;
    }
    let mut revisions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut newest = 0;
    for event in seen.up_to_now().await {
        let (WatchEvent::Added(game) | WatchEvent::Modified(game)) = event else {
            continue;
        };
        let status = game.status.clone().unwrap_or_default();
        let observed = status.observed_generation.unwrap_or_default();
        assert!(
            observed >= newest && Some(observed) <= game.metadata.generation,
            "{status:?}"
        );
        newest = observed;
        if Some(observed) == game.metadata.generation {
            let image = game.spec.template.value()["spec"]["containers"][0]["image"].to_string();
            revisions.entry(image).or_default().extend(status.update_revision);
            for condition in &status.conditions {
                assert_eq!(condition.observed_generation, Some(observed), "{condition:?}");
            }
        }
    }
    let each: Vec<usize> = revisions.values().map(BTreeSet::len).collect();
    assert_eq!(each, [1, 1, 1], "one revision for each image: {revisions:?}");
    let distinct: BTreeSet<_> = revisions.into_values().flatten().collect();
    assert_eq!(distinct.len(), 3);
}

#[tokio::test]
async fn a_spec_that_changes_nothing_and_one_that_is_wrong_are_observed_as_well() {
    let fleet = fleet("observed-generation").await;
    fleet.launch(&game(1, json!({}))).await;
    let before = fleet.settled(1).await;
    fleet.set(json!({ "revisionHistoryLimit": 3 })).await;
    let after = fleet.until(|_| true).await;
    assert_eq!(
        after.observed_generation,
        before.observed_generation.map(|generation| generation + 1)
    );
    let mut same = after.clone();
    same.observed_generation = before.observed_generation;
    for condition in &mut same.conditions {
        condition.observed_generation = before.observed_generation;
    }
    assert_eq!(same, before);
    fleet.set(json!({ "minReadySeconds": -1 })).await;
    fleet.says("InvalidSpec", "InvalidSpec").await;
    assert_eq!(
        fleet.status().await.observed_generation,
        fleet.game().await.metadata.generation
    );
}
