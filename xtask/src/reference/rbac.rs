//! `docs/reference/rbac.md`: permissions in the manifests, each with its purpose. A permission without a
//! purpose, or a purpose without a permission, is an error.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::purposes::{ALL, Purpose};
use super::{beginning, cell};

/// Manifests with cluster-wide permissions.
const MANIFESTS: [&str; 3] = [
    "deploy/rbac.yaml",
    "deploy/admission.yaml",
    "deploy/admission-removals.yaml",
];
/// Manifests that are not generated, with the permissions of the eviction responder, and of the providers `job`,
/// `kubernetes` and `exec`.
const WRITTEN_BY_HAND: [&str; 6] = [
    include_str!("../../../deploy/rbac-evictions.yaml"),
    include_str!("../../../deploy/rbac-hooks.yaml"),
    include_str!("../../../deploy/hookgate-hooks.yaml"),
    include_str!("../../../deploy/hookgate-hooks-get.yaml"),
    include_str!("../../../deploy/hookgate-hooks-patch.yaml"),
    include_str!("../../../deploy/hookgate-hooks-exec.yaml"),
];

/// Role that several accounts have.
const SHARED: &str = "hookgate-leader-election";
/// Role of gamedeployment-operator for the eviction responder.
const EVICTIONS: &str = "gamedeployment-operator-evictions";
/// Role of hook-operator for the providers `job`, `kubernetes` and `exec`.
const HOOKS: &str = "hook-operator-hooks";
/// Roles of the account of a namespace for the providers `kubernetes` and `exec`.
const NAMESPACE_ROLES: [&str; 3] = [
    "hookgate-hooks-get",
    "hookgate-hooks-patch",
    "hookgate-hooks-exec",
];

const INTRODUCTION: &str = "
The permissions are defined in [`deploy/rbac.yaml`](../../deploy/rbac.yaml) for operators of a whole cluster, in
[`deploy/rbac-namespaced.yaml`](../../deploy/rbac-namespaced.yaml) for operators of one namespace, and in
[`deploy/admission.yaml`](../../deploy/admission.yaml). All tests run with exactly these permissions, and one test
proves that the operators need each of theirs. For the risks of each permission, see
[security](../security.md#rights).

The additional permissions of the removal guard, which is disabled by default, are defined in
[`deploy/admission-removals.yaml`](../../deploy/admission-removals.yaml).

Those of the [eviction responder](../eviction-responder.md), which is disabled by default, are defined in
[`deploy/rbac-evictions.yaml`](../../deploy/rbac-evictions.yaml).

The permissions of the providers `job`, `kubernetes` and `exec`, which are disabled by default, are defined in
[`deploy/rbac-hooks.yaml`](../../deploy/rbac-hooks.yaml) and in four files for the namespaces whose hooks use them:
[`deploy/hookgate-hooks.yaml`](../../deploy/hookgate-hooks.yaml) for [Jobs](../security.md#jobs),
[`deploy/hookgate-hooks-get.yaml`](../../deploy/hookgate-hooks-get.yaml) and
[`deploy/hookgate-hooks-patch.yaml`](../../deploy/hookgate-hooks-patch.yaml) for [objects](../security.md#objects), and
[`deploy/hookgate-hooks-exec.yaml`](../../deploy/hookgate-hooks-exec.yaml) for [commands](../security.md#commands).
";

/// Permission of an account for one verb and one kind of object.
type Permission = (String, String, String);

pub(super) fn page(files: &[(PathBuf, String)]) -> Result<String, Box<dyn Error>> {
    let granted = granted(files)?;
    let explained: BTreeSet<Permission> = ALL.iter().flat_map(permissions).collect();
    let difference: Vec<&Permission> = granted.symmetric_difference(&explained).collect();
    if !difference.is_empty() {
        return Err(
            format!("permissions without purpose, or purposes without permission: {difference:?}").into(),
        );
    }
    let mut text = beginning("Permissions", "deploy/ and xtask/src/reference/purposes.rs");
    text.push_str(INTRODUCTION);
    let mut accounts: Vec<&str> = Vec::new();
    for purpose in ALL {
        if !accounts.contains(&purpose.account) {
            accounts.push(purpose.account);
            let _ = write!(
                text,
                "\n## {}\n\n| resources | verbs | purpose | without it |\n| --- | --- | --- | --- |\n",
                purpose.account
            );
        }
        let list = |words: &str| words.split(' ').collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            list(purpose.resources),
            list(purpose.verbs),
            cell(purpose.what_for),
            cell(purpose.without)
        );
    }
    Ok(text)
}

fn permissions(purpose: &'static Purpose) -> impl Iterator<Item = Permission> {
    let of = move |resource: &'static str| {
        let verbs = purpose.verbs.split(' ');
        verbs.map(move |verb| (purpose.account.to_owned(), resource.to_owned(), verb.to_owned()))
    };
    purpose.resources.split(' ').flat_map(of)
}

/// Returns the permissions that the manifests grant to each account.
fn granted(files: &[(PathBuf, String)]) -> Result<BTreeSet<Permission>, Box<dyn Error>> {
    let mut granted = BTreeSet::new();
    let mut texts = WRITTEN_BY_HAND.to_vec();
    for manifest in MANIFESTS {
        let made = files.iter().find(|(path, _)| *path == Path::new(manifest));
        let (_, text) = made.ok_or(format!("{manifest} is not made"))?;
        texts.push(text);
    }
    for text in texts {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
        for role in documents.iter().filter(|document| document["rules"].is_array()) {
            let name = role["metadata"]["name"].as_str().unwrap_or_default();
            let accounts = match name {
                SHARED => vec!["hook-operator", "gamedeployment-operator"],
                EVICTIONS => vec!["gamedeployment-operator"],
                HOOKS => vec!["hook-operator"],
                name if NAMESPACE_ROLES.contains(&name) => vec!["hookgate-hooks"],
                name => vec![name],
            };
            for rule in role["rules"].as_array().into_iter().flatten() {
                for (resource, verb) in pairs(rule) {
                    granted.extend(
                        accounts
                            .iter()
                            .map(|account| ((*account).to_owned(), resource.clone(), verb.clone())),
                    );
                }
            }
        }
    }
    Ok(granted)
}

fn pairs(rule: &Value) -> Vec<(String, String)> {
    let words = |field: &str| -> Vec<String> {
        let words = rule[field].as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let verbs = words("verbs");
    let each = |resource: String| {
        verbs
            .iter()
            .map(move |verb| (resource.clone(), verb.clone()))
            .collect::<Vec<_>>()
    };
    words("resources").into_iter().flat_map(each).collect()
}
