//! Lookup of a GameDeployment's hooks when it is written. A hook that cannot run is only a warning, because
//! its HookTemplate may be written next. A failed lookup produces no warning.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use gamedeployment_core::cluster::{Cluster, FoundTemplate, Node};
use gamedeployment_core::gate::unresolved;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::unusable_template::UnusableTemplate;
use gamedeployment_core::workload::Workload;
use serde_json::Value;
use shared_api::spelling::is_slip;
use shared_api::{GameDeployment, HookTemplateSpec, parsed};
use tokio::sync::OwnedSemaphorePermit;

use crate::review::AdmissionRequest;
use crate::validate::ValidatedKind;

/// Fields that reference hooks.
const NAMING: [&str; 5] = [
    "/spec/preDeleteUpdateStrategy/hook",
    "/spec/preDeleteUpdateStrategy/notice",
    "/spec/preInplaceUpdateStrategy/hook",
    "/spec/postInplaceUpdateStrategy/hook",
    "/spec/updateStrategy/canary",
];

/// Returns the workload whose hooks must be looked up; `None` if no hook is set or changed.
pub fn to_look_up(request: &AdmissionRequest) -> Option<Workload> {
    let is_workload = matches!(
        ValidatedKind::of(&request.kind),
        Some(ValidatedKind::GameDeployment)
    );
    if !is_workload || !request.is_whole() || !matches!(request.operation.as_str(), "CREATE" | "UPDATE") {
        return None;
    }
    let (object, old) = (&request.object, &request.old_object);
    let hook = |of: &Value, field: &str| of.pointer(field).cloned().unwrap_or_default();
    let mut fields = NAMING.into_iter();
    if !fields.any(|field| !hook(object, field).is_null() && hook(object, field) != hook(old, field)) {
        return None;
    }
    let game: GameDeployment = parsed::parse(&object.to_string()).0.ok()?;
    Workload::read(&game).ok()
}

/// HookTemplates of a namespace, as far as a workload names them.
#[derive(Debug, Default)]
pub struct Templates {
    /// Templates that exist, or the reason why no hook can use one.
    pub found: BTreeMap<String, Result<HookTemplateSpec, UnusableTemplate>>,
    /// Names of all templates, if one was not found.
    pub names: Vec<String>,
    /// Room of the templates.
    pub room: Option<OwnedSemaphorePermit>,
}

/// Returns the names of the HookTemplates that a workload needs.
pub fn names(workload: &Workload) -> BTreeSet<String> {
    let names = RefCell::new(BTreeSet::new());
    let note = |name: &str| {
        names.borrow_mut().insert(name.to_owned());
        FoundTemplate::Missing
    };
    unresolved(workload, &Lookup(&note));
    names.into_inner()
}

/// Returns warnings about hooks that cannot run with these HookTemplates.
pub fn warnings(workload: &Workload, templates: &Templates) -> Vec<String> {
    let find = |name: &str| match templates.found.get(name) {
        Some(Ok(spec)) => FoundTemplate::Found(spec),
        Some(Err(why)) => FoundTemplate::Unusable(why),
        None => {
            let near = templates.names.iter().find(|known| is_slip(name, known));
            near.map_or(FoundTemplate::Missing, |near| FoundTemplate::Misspelt(near))
        }
    };
    let found = unresolved(workload, &Lookup(&find))
        .unwrap_or_default()
        .into_iter();
    found
        .map(|found| format!("{}: {}", found.path, found.blocker.message))
        .collect()
}

/// Surroundings of a workload that is not running: this lookup of HookTemplates, and nothing else.
struct Lookup<'t>(&'t dyn Fn(&str) -> FoundTemplate<'t>);

impl Cluster for Lookup<'_> {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        self.0(name)
    }

    fn node(&self, _: &str) -> Node {
        Node::Ready
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn is_new_question(&self, _: &Pod) -> bool {
        false
    }

    fn has_run(&self, _: &str, _: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use gamedeployment_core::unusable_template::TooLarge;
    use serde_json::json;

    use super::*;

    fn request(template: &str, old: &str) -> AdmissionRequest {
        let object = |template: &str| {
            json!({
                "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
                "metadata": {"name": "arena", "namespace": "games"},
                "spec": {
                    "selector": {"matchLabels": {"app": "arena"}},
                    "template": {
                        "metadata": {"labels": {"app": "arena"}},
                        "spec": {"containers": [{"name": "game", "image": "game:v1"}]},
                    },
                    "preDeleteUpdateStrategy": {"hook": {"templateName": template}},
                },
            })
        };
        serde_json::from_value(json!({
            "uid": "u", "operation": "UPDATE", "kind": {"group": "tkex.tencent.com", "kind": "GameDeployment"},
            "object": object(template), "oldObject": object(old),
        }))
        .unwrap()
    }

    #[test]
    fn a_hook_that_is_set_or_changed_is_looked_up_and_a_misspelt_name_is_a_warning() {
        assert!(
            to_look_up(&request("nobody", "nobody")).is_none(),
            "it was so before"
        );
        let workload = to_look_up(&request("nobdy", "nobody")).unwrap();
        assert_eq!(names(&workload), BTreeSet::from(["nobdy".to_owned()]));
        let templates = Templates {
            found: BTreeMap::from([("nobody".to_owned(), Ok(HookTemplateSpec::default()))]),
            names: vec!["nobody".to_owned()],
            room: None,
        };
        assert_eq!(
            warnings(&workload, &templates),
            ["spec.preDeleteUpdateStrategy.hook: HookTemplate nobdy does not exist; did you mean nobody?"]
        );
        let workload = to_look_up(&request("nobody", "nobdy")).unwrap();
        assert_eq!(warnings(&workload, &templates), [""; 0]);
        let mut with_notice = request("nobody", "nobody");
        with_notice.object["spec"]["preDeleteUpdateStrategy"]["notice"] = json!({"templateName": "nobdy"});
        let workload = to_look_up(&with_notice).unwrap();
        assert_eq!(
            warnings(&workload, &templates),
            ["spec.preDeleteUpdateStrategy.notice: HookTemplate nobdy does not exist; did you mean nobody?"]
        );
    }

    #[test]
    fn a_template_that_no_hook_can_use_is_a_warning() {
        let workload = to_look_up(&request("nobody", "nobdy")).unwrap();
        let table = [
            (
                UnusableTemplate::Unreadable("spec: no".to_owned()),
                "cannot be parsed: spec: no",
            ),
            (
                TooLarge::Spec(1_300_000).into(),
                "is too large for a GameDeployment hook: its spec is 1300000 bytes; the limit is 131072",
            ),
        ];
        for (why, words) in table {
            let templates = Templates {
                found: BTreeMap::from([("nobody".to_owned(), Err(why))]),
                ..Templates::default()
            };
            let words = format!("spec.preDeleteUpdateStrategy.hook: HookTemplate nobody {words}");
            assert_eq!(warnings(&workload, &templates), [words]);
        }
    }
}
