//! The CustomResourceDefinitions, as `cargo xtask gen` writes them to `shared-api/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{GameDeployment, HookRun, HookTemplate};

/// The definitions of all kinds.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![HookTemplate::crd(), HookRun::crd(), GameDeployment::crd()]
}
