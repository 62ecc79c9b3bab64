//! Deletions, whose answers may hold objects that do not parse.

use kube::api::{DeleteParams, ListParams};
use kube::core::{NamespaceResourceScope, ObjectList, Request};
use kube::{Client, Error, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use shared_api::parsed::Parsed;

/// Deletes an object. Returns it if it stays for now, because of its grace period or finalizers.
///
/// # Errors
/// Those of the API server.
pub async fn delete<K>(
    client: &Client,
    namespace: &str,
    name: &str,
    params: &DeleteParams,
) -> Result<Option<Parsed<K>>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned,
{
    let request = Request::new(K::url_path(&(), Some(namespace)));
    let request = request.delete(name, params).map_err(Error::BuildRequest)?;
    read(&client.request_text(request).await?)
}

/// Deletes the selected objects. Returns them as they were before.
///
/// # Errors
/// Those of the API server.
pub async fn delete_collection<K>(
    client: &Client,
    namespace: &str,
    params: &DeleteParams,
    selected: &ListParams,
) -> Result<Vec<Parsed<K>>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone,
{
    let request = Request::new(K::url_path(&(), Some(namespace)));
    let request = request.delete_collection(params, selected);
    let text = client.request_text(request.map_err(Error::BuildRequest)?).await?;
    let list: Option<ObjectList<Parsed<K>>> = read(&text)?;
    Ok(list.map(|list| list.items).unwrap_or_default())
}

/// Parses the answer of a deletion; `None` for a `Status`, which says that the object is gone.
fn read<T: DeserializeOwned>(answer: &str) -> Result<Option<T>, Error> {
    #[derive(Deserialize)]
    struct Kind {
        kind: Option<String>,
    }
    let Kind { kind } = serde_json::from_str(answer).map_err(Error::SerdeError)?;
    if kind.as_deref() == Some("Status") {
        return Ok(None);
    }
    serde_json::from_str(answer).map(Some).map_err(Error::SerdeError)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn an_answer_is_a_status_or_an_object_of_any_nesting() {
        let status = r#"{"kind":"Status","status":"Success","details":{"name":"a","uid":"u"}}"#;
        assert!(read::<Parsed<Pod>>(status).unwrap().is_none());
        let deep = format!("{}1{}", r#"{"f:a":"#.repeat(500), "}".repeat(500));
        let pod = format!(
            r#"{{"kind":"Pod","metadata":{{"name":"a","managedFields":[{{"fieldsV1":{deep}}}]}},"spec":{{"containers":[]}}}}"#
        );
        let Parsed(read_pod) = read::<Parsed<Pod>>(&pod).unwrap().unwrap();
        assert_eq!(read_pod.unwrap().metadata.name.as_deref(), Some("a"));
        let list = format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"items":[{pod}]}}"#);
        let list: ObjectList<Parsed<Pod>> = read(&list).unwrap().unwrap();
        assert_eq!(list.items.len(), 1);
        assert!(read::<Parsed<Pod>>("<html>").is_err());
    }
}
