//! Calls to the API server about Jobs, as the ServiceAccount of the namespace.

use std::sync::Arc;

use http::Request;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use operator_runtime::calls::{CallError, CallLimiter};
use operator_runtime::objects;
use serde_json::Value;
use shared_api::names::job::RUN_UID;
use shared_api::parsed::Parsed;

use crate::account;

/// Makes the calls.
#[derive(Clone)]
pub struct JobCalls {
    client: Client,
    limiter: Arc<CallLimiter>,
}

impl JobCalls {
    /// Creates the calls of a client that may impersonate the accounts.
    pub fn new(client: Client, limiter: Arc<CallLimiter>) -> Self {
        Self { client, limiter }
    }

    /// Returns the API of Jobs as the namespace's account.
    pub(super) fn jobs<J>(&self, namespace: &str) -> Api<J>
    where
        J: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.acting(namespace), namespace)
    }

    /// Creates a Job. Fields that this program does not know are kept, and refused by an API server that does not know
    /// them either; one before 1.25 drops them.
    pub(super) async fn create(&self, namespace: &str, job: &Value) -> Result<Job, CallError> {
        let client = self.acting(namespace);
        let path = format!("{}?fieldValidation=Strict", Job::url_path(&(), Some(namespace)));
        let request = Request::post(path)
            .header(CONTENT_TYPE, "application/json")
            .body(job.to_string().into_bytes());
        let call = async move { client.request(request.map_err(kube::Error::HttpError)?).await };
        let step = "create a Job";
        readable(step, self.limiter.call(namespace, step, call).await?)
    }

    pub(super) async fn read(&self, namespace: &str, name: &str) -> Result<Job, CallError> {
        let api: Api<Parsed<Job>> = self.jobs(namespace);
        let step = "read a Job";
        readable(step, self.limiter.call(namespace, step, api.get(name)).await?)
    }

    /// Deletes a Job and its pods, if it is still this one.
    pub(super) async fn delete(&self, namespace: &str, job: &Job) -> Result<(), CallError> {
        let client = self.acting(namespace);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: job.uid(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let name = job.name_any();
        let call = objects::delete::<Job>(&client, namespace, &name, &params);
        self.limiter.call(namespace, "delete a Job", call).await.map(drop)
    }

    /// Lists the pods of a Job.
    pub(super) async fn pods(&self, namespace: &str, job: &Job) -> Result<Vec<Pod>, CallError> {
        let api: Api<Parsed<Pod>> = Api::namespaced(self.acting(namespace), namespace);
        let run = job.labels().get(RUN_UID).cloned().unwrap_or_default();
        let params = ListParams::default().labels(&format!("{RUN_UID}={run}"));
        let call = api.list(&params);
        let step = "list the pods of the Job";
        let pods = self.limiter.call(namespace, step, call).await?;
        let uid = job.uid();
        let is_of_job = |pod: &Parsed<Pod>| {
            let mut owners = pod.owner_references().iter();
            owners.any(|owner| Some(&owner.uid) == uid.as_ref())
        };
        let pods = pods.items.into_iter().filter(is_of_job);
        pods.map(|pod| readable(step, pod)).collect()
    }

    fn acting(&self, namespace: &str) -> Client {
        account::of_hooks(&self.client, namespace)
    }
}

/// Returns the object of an answer. Without it, what happened is unknown.
fn readable<K>(step: &'static str, Parsed(read): Parsed<K>) -> Result<K, CallError> {
    read.map_err(|invalid| CallError::Unknown {
        step,
        message: format!("the object cannot be parsed: {invalid}"),
    })
}
