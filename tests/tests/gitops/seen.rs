//! Objects of the API server, as both tools see them.

use kube::Resource;
use kube::api::{Api, ApiResource, DynamicObject};
use operator_tests::fleet::GAME;
use operator_tests::{Fleet, SOON};
use serde_json::Value;
use shared_api::GameDeployment;
use test_kit::eventually;

use crate::argo::{self, Health};
use crate::flux;

/// Object, and its health in Argo CD.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) object: Value,
    pub(crate) health: Health,
}

impl Seen {
    /// Asserts that the message is that of a condition; with the message of Progressing if something else has stopped
    /// the rollout as well.
    #[track_caller]
    pub(crate) fn quotes(&self, kind: &str) {
        let conditions = self.object["status"]["conditions"].as_array().unwrap();
        let find = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
        let found = find(kind).unwrap_or_else(|| panic!("no {kind}: {}", self.object["status"]));
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
        let mut expected = format!("{}: {}", text(found, "reason"), text(found, "message"));
        let stopped = find("Progressing").filter(|progressing| progressing["status"] == "False");
        let stopped = stopped.filter(|progressing| progressing["reason"] != found["reason"]);
        if let Some(stopped) = stopped.filter(|_| kind != "InvalidSpec") {
            expected = format!("{expected}; {}", text(stopped, "message"));
        }
        assert_eq!(self.health.message, expected);
    }
}

/// Returns the objects of a kind in a namespace, with all fields that the API server has.
pub(crate) fn objects<K: Resource<DynamicType = ()>>(
    fleet: &Fleet<'_>,
    namespace: &str,
) -> Api<DynamicObject> {
    Api::namespaced_with(fleet.client(), namespace, &ApiResource::erase::<K>(&()))
}

/// Reads an object.
pub(crate) async fn read<K: Resource<DynamicType = ()>>(
    fleet: &Fleet<'_>,
    name: &str,
) -> Result<Value, String> {
    let object = objects::<K>(fleet, &fleet.namespace).get(name).await;
    let object = object.map_err(|error| error.to_string())?;
    serde_json::to_value(object).map_err(|error| error.to_string())
}

/// Waits until an object has this health in Argo CD, with a message that contains these words. Both tools must agree on
/// every object on the way.
pub(crate) async fn becomes<K: Resource<DynamicType = ()>>(
    fleet: &Fleet<'_>,
    name: &str,
    status: &str,
    words: &str,
) -> Seen {
    eventually(SOON, || async {
        let object = read::<K>(fleet, name).await?;
        let health = argo::health(&object);
        flux::agrees(&object, &health);
        if health.status == status && health.message.contains(words) {
            Ok(Seen { object, health })
        } else {
            Err(format!("{health:?}: {}", object["status"]))
        }
    })
    .await
}

/// Waits like [`becomes`], for the workload.
pub(crate) async fn game_becomes(fleet: &Fleet<'_>, status: &str, words: &str) -> Seen {
    becomes::<GameDeployment>(fleet, GAME, status, words).await
}
