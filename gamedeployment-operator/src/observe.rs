//! The watches. Everything that this operator knows of the cluster comes through here; nothing is listed besides.

use futures::stream::{BoxStream, SelectAll};
use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::{Api, Client};
use operator_runtime::health::Health;
use operator_runtime::watch::{Observed, watch};
use shared_api::{GameDeployment, HookRun, HookTemplate};

/// Checks in `/readyz`: a kind has been listed and is being watched.
pub const CHECKS: [&str; 5] = [WORKLOADS, PODS, REVISIONS, RUNS, TEMPLATES];
/// The check of nodes, where they are watched.
pub const NODES: &str = "nodes-watch";
const WORKLOADS: &str = "gamedeployments-watch";
const PODS: &str = "pods-watch";
const REVISIONS: &str = "controllerrevisions-watch";
const RUNS: &str = "hookruns-watch";
const TEMPLATES: &str = "hooktemplates-watch";

/// What the watches show.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "news are taken in one at a time, never kept"
)]
pub enum News {
    /// Of workloads.
    Workload(Observed<GameDeployment>),
    /// Of pods.
    Pod(Observed<Pod>),
    /// Of ControllerRevisions.
    Revision(Observed<ControllerRevision>),
    /// Of HookRuns.
    Run(Observed<HookRun>),
    /// Of HookTemplates.
    Template(Observed<HookTemplate>),
    /// Of nodes.
    Node(Observed<Node>),
}

/// All of them, in one stream that never ends.
pub fn everything(
    client: &Client,
    namespace: Option<&str>,
    nodes: bool,
    health: &Health,
) -> impl Stream<Item = News> + Send + use<> {
    let mut all: SelectAll<BoxStream<'static, News>> = SelectAll::new();
    all.push(
        watch(api(client, namespace), WORKLOADS, health.clone())
            .map(News::Workload)
            .boxed(),
    );
    all.push(
        watch(api(client, namespace), PODS, health.clone())
            .map(News::Pod)
            .boxed(),
    );
    all.push(
        watch(api(client, namespace), REVISIONS, health.clone())
            .map(News::Revision)
            .boxed(),
    );
    all.push(
        watch(api(client, namespace), RUNS, health.clone())
            .map(News::Run)
            .boxed(),
    );
    all.push(
        watch(api(client, namespace), TEMPLATES, health.clone())
            .map(News::Template)
            .boxed(),
    );
    if nodes {
        let api: Api<DeserializeGuard<Node>> = Api::all(client.clone());
        all.push(watch(api, NODES, health.clone()).map(News::Node).boxed());
    }
    all
}

fn api<K>(client: &Client, namespace: Option<&str>) -> Api<DeserializeGuard<K>>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}
