//! Health checks and actions of `examples/gitops/argocd-cm.yaml`, evaluated like Argo CD.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::lua;

const CONFIG: &str = include_str!("../../../examples/gitops/argocd-cm.yaml");
const GROUP: &str = "tkex.tencent.com";

/// Health that Argo CD accepts from these scripts.
const HEALTH: [&str; 4] = ["Degraded", "Healthy", "Progressing", "Suspended"];

/// Actions of a GameDeployment.
pub(crate) const ACTIONS: [&str; 6] = ["abort", "pause", "promote", "restart-rollout", "resume", "retry"];

/// Health of an object in Argo CD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) status: String,
    pub(crate) message: String,
}

/// Data of the ConfigMap.
pub(crate) static DATA: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let config: Value = serde_saphyr::from_str(CONFIG).unwrap();
    serde_json::from_value(config["data"].clone()).unwrap()
});

/// Scripts of the actions.
static CUSTOMIZATION: LazyLock<Value> = LazyLock::new(|| {
    let key = format!("resource.customizations.actions.{GROUP}_GameDeployment");
    serde_saphyr::from_str(&DATA[&key]).unwrap()
});

/// Returns the health of an object.
pub(crate) fn health(object: &Value) -> Health {
    let kind = object["kind"].as_str().unwrap();
    let key = format!("resource.customizations.health.{GROUP}_{kind}");
    let returned = lua::run(&DATA[&key], object);
    let text = |field: &str| returned[field].as_str().unwrap().to_owned();
    let health = Health {
        status: text("status"),
        message: text("message"),
    };
    assert!(
        HEALTH.contains(&health.status.as_str()) && !health.message.is_empty(),
        "{health:?}"
    );
    health
}

/// Returns the actions, and whether each is enabled.
pub(crate) fn actions(object: &Value) -> BTreeMap<String, bool> {
    let returned = lua::run(CUSTOMIZATION["discovery.lua"].as_str().unwrap(), object);
    let actions = returned.as_object().unwrap().iter();
    actions
        .map(|(name, action)| (name.clone(), !action["disabled"].as_bool().unwrap()))
        .collect()
}

/// Returns the definitions of the actions.
pub(crate) fn definitions() -> &'static [Value] {
    CUSTOMIZATION["definitions"].as_array().unwrap()
}

/// Returns the script of an action.
fn script_of(action: &str) -> &'static str {
    let mut definitions = definitions().iter();
    let definition = definitions.find(|definition| definition["name"] == action);
    let definition = definition.unwrap_or_else(|| panic!("no action {action}"));
    definition["action.lua"].as_str().unwrap()
}

/// Returns the merge patch that an action makes, or the text with which it is refused.
pub(crate) fn act(object: &Value, action: &str) -> Result<Value, String> {
    let mut returned = lua::try_run(script_of(action), object)?;
    restore(&mut returned, object);
    Ok(difference(object, &returned))
}

/// Returns the merge patch that an action makes; `None` if it is refused.
pub(crate) fn patch(object: &Value, action: &str) -> Option<Value> {
    act(object, action).ok()
}

/// Turns empty lists into objects again where the object had an empty object.
fn restore(returned: &mut Value, object: &Value) {
    if let (Some(returned), Some(object)) = (returned.as_object_mut(), object.as_object()) {
        for (name, field) in returned {
            match object.get(name) {
                Some(Value::Object(_)) if *field == json!([]) => *field = json!({}),
                Some(before) => restore(field, before),
                None => {}
            }
        }
    } else if let (Some(returned), Some(object)) = (returned.as_array_mut(), object.as_array()) {
        for (item, before) in returned.iter_mut().zip(object) {
            restore(item, before);
        }
    }
}

/// Returns the merge patch (RFC 7386) from one object to another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Some(before), Some(after)) = (from.as_object(), to.as_object()) else {
        return to.clone();
    };
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let mut patch: Map<String, Value> = removed.map(|name| (name.clone(), Value::Null)).collect();
    for (name, field) in after {
        match before.get(name) {
            Some(known) if known == field => {}
            Some(known) => {
                patch.insert(name.clone(), difference(known, field));
            }
            None => {
                patch.insert(name.clone(), field.clone());
            }
        }
    }
    Value::Object(patch)
}
