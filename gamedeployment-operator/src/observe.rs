//! The watches. Everything that this operator knows of the cluster comes through here; nothing is listed besides.

use futures::stream::{BoxStream, SelectAll};
use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::DeserializeGuard;
use kube::{Api, Client};
use operator_runtime::health::Health;
use operator_runtime::shard::Scope;
use operator_runtime::watch::{Observed, watch, watch_in};
use shared_api::{GameDeployment, HookRun, HookTemplate};

/// Checks in `/readyz`: a kind has been listed and is being watched.
pub const CHECKS: [&str; 5] = [WORKLOADS, PODS, REVISIONS, RUNS, TEMPLATES];
/// The check of nodes, where they are watched.
pub const NODES: &str = "nodes-watch";
const WORKLOADS: &str = "gamedeployments-watch";
const PODS: &str = "pods-watch";
const REVISIONS: &str = "controllerrevisions-watch";
/// The check of HookRuns.
pub const RUNS: &str = "hookruns-watch";
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

/// All of what is in a scope, in one stream that never ends. Nodes are in every scope.
pub fn everything(
    client: &Client,
    scope: &Scope,
    nodes: bool,
    health: &Health,
) -> impl Stream<Item = News> + Send + use<> {
    let mut all: SelectAll<BoxStream<'static, News>> = SelectAll::new();
    all.push(
        watch_in(client, scope, WORKLOADS, health.clone())
            .map(News::Workload)
            .boxed(),
    );
    all.push(
        watch_in(client, scope, PODS, health.clone())
            .map(News::Pod)
            .boxed(),
    );
    all.push(
        watch_in(client, scope, REVISIONS, health.clone())
            .map(News::Revision)
            .boxed(),
    );
    all.push(
        watch_in(client, scope, RUNS, health.clone())
            .map(News::Run)
            .boxed(),
    );
    all.push(
        watch_in(client, scope, TEMPLATES, health.clone())
            .map(News::Template)
            .boxed(),
    );
    if nodes {
        let api: Api<DeserializeGuard<Node>> = Api::all(client.clone());
        all.push(watch(api, NODES, health.clone()).map(News::Node).boxed());
    }
    all
}
