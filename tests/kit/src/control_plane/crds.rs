//! Installs custom resource definitions.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};

use super::{Error, api_error};
use crate::wait::within;

/// Field manager of `kubectl apply --server-side`: a page that applies the definitions meets no conflict.
const MANAGER: &str = "kubectl";
const ESTABLISHED_IN: Duration = Duration::from_secs(30);

/// Applies the definitions and waits until the API server serves them all.
pub(super) async fn install(client: &Client, definitions: &[CustomResourceDefinition]) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions {
        let name = definition.name_any();
        api.patch(
            &name,
            &PatchParams::apply(MANAGER).force(),
            &Patch::Apply(definition),
        )
        .await
        .map_err(|source| api_error(format!("apply the definition {name}"), source))?;
    }
    for definition in definitions {
        let name = definition.name_any();
        within(ESTABLISHED_IN, || async {
            let found = api.get(&name).await.map_err(|error| error.to_string())?;
            if is_established(&found) {
                Ok(())
            } else {
                Err(format!("{:?}", found.status))
            }
        })
        .await
        .map_err(|source| Error::NotReady {
            what: format!("the definition {name} established"),
            source,
        })?;
    }
    Ok(())
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    // The conditions are null for an instant after creation.
    let conditions = definition
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|one| one.type_ == "Established" && one.status == "True")
}
