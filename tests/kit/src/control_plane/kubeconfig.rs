//! Kubeconfig files: the only way to point programs under test at a cluster.

use std::path::Path;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::Error;

/// Builds a kubeconfig with one cluster and one user. JSON is valid YAML.
pub(crate) fn text(cluster: &Value, user: &Value) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    })
    .to_string()
}

pub(super) async fn load(path: &Path) -> Result<Config, Error> {
    let wrong = |source| Error::Kubeconfig {
        path: path.to_owned(),
        source,
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(wrong)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(wrong)
}

/// Builds a kubeconfig of the same cluster with a bearer token.
pub(super) fn with_token(path: &Path, token: &str) -> Result<String, Error> {
    let kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    Ok(text(
        &kubeconfig["clusters"][0]["cluster"],
        &json!({ "token": token }),
    ))
}

/// Builds a kubeconfig with another default namespace.
pub(super) fn in_namespace(path: &Path, namespace: &str) -> Result<String, Error> {
    let mut kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    kubeconfig["contexts"][0]["context"]["namespace"] = namespace.into();
    Ok(kubeconfig.to_string())
}

/// Builds a kubeconfig in which the administrator impersonates another user.
pub(super) fn impersonating(path: &Path, user: &str, groups: &[&str]) -> Result<String, Error> {
    let mut kubeconfig = Kubeconfig::read_from(path).map_err(|source| Error::Kubeconfig {
        path: path.to_owned(),
        source,
    })?;
    for who in kubeconfig
        .auth_infos
        .iter_mut()
        .filter_map(|named| named.auth_info.as_mut())
    {
        who.impersonate = Some(user.to_owned());
        who.impersonate_groups = Some(groups.iter().map(|&group| group.to_owned()).collect());
    }
    Ok(serde_json::to_string(&kubeconfig)?)
}
