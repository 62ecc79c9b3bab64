//! Answers the core's questions about a workload's surroundings from the index and the workload's back-off.

use gamedeployment_core::cluster::{
    Cluster, EvictionRequests, FoundTemplate, Node, NodeDisruption, RejectedNotice,
};
use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::write_backoff::WriteBackoff;
use jiff::{SignedDuration, Timestamp};
use runtime_core::clock::Now;
use shared_api::spelling::is_slip;

use crate::NamespacedName;

use super::Index;

/// View of the cluster for one workload.
#[derive(Debug, Clone, Copy)]
pub struct ClusterView<'a> {
    /// Cached view of the cluster.
    pub index: &'a Index,
    /// Namespace.
    pub namespace: &'a str,
    /// Rejected writes of the workload, if any.
    pub backoff: Option<&'a WriteBackoff>,
    /// Time of the decision.
    pub now: Now,
}

impl ClusterView<'_> {
    fn key(&self, name: &str) -> NamespacedName {
        (self.namespace.to_owned(), name.to_owned())
    }

    /// Returns the name of the HookTemplate that a misspelt name probably means.
    fn near(&self, name: &str) -> Option<&str> {
        let mut names = self.index.templates.names_in(self.namespace);
        names.find(|known| is_slip(name, known))
    }
}

impl Cluster for ClusterView<'_> {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        match self
            .index
            .templates
            .get(&self.key(name))
            .map(|template| &template.spec)
        {
            None => self
                .near(name)
                .map_or(FoundTemplate::Missing, FoundTemplate::Misspelt),
            Some(Ok(spec)) => FoundTemplate::Found(spec),
            Some(Err(why)) => FoundTemplate::Unusable(why),
        }
    }

    fn template_problem(&self, name: &str) -> Option<&str> {
        self.index.templates.get(&self.key(name))?.problem.as_deref()
    }

    fn node(&self, name: &str) -> Node {
        self.index.nodes.state(name, self.now.monotonic)
    }

    fn node_ready_since(&self, name: &str) -> Option<Timestamp> {
        self.index.nodes.ready_since(name)
    }

    fn node_disruption(&self, name: &str) -> Option<NodeDisruption<'_>> {
        self.index.nodes.disruption(name)
    }

    fn eviction_requests(&self, pod_uid: &str) -> Option<&EvictionRequests> {
        self.index.evictions.requests(self.namespace, pod_uid)
    }

    fn serves_evictions(&self) -> bool {
        self.index.evictions.is_served()
    }

    fn node_cost(&self, name: &str) -> Option<f64> {
        self.index.nodes.cost(name)
    }

    fn verdict_seen_for(&self, run: &Run) -> Option<SignedDuration> {
        let arrivals = &self.index.arrivals;
        arrivals.known_for(&self.key(&run.name), &run.uid, self.now.elapsed)
    }

    fn is_new_question(&self, pod: &Pod) -> bool {
        self.index.questions.is_new(pod)
    }

    fn has_run(&self, namespace: &str, name: &str) -> bool {
        self.index
            .runs
            .get(&(namespace.to_owned(), name.to_owned()))
            .is_some()
    }

    fn rejected_notice(&self, name: &str) -> Option<RejectedNotice<'_>> {
        self.backoff?.rejected_notice(name, self.now.elapsed)
    }

    fn run_without_owner(&self, name: &str) -> Option<&Run> {
        let run = self.index.runs.get(&self.key(name));
        run.filter(|run| run.lacks_owner())
    }

    fn has_pod(&self, name: &str) -> bool {
        let key = self.key(name);
        self.index.pods.get(&key).is_some() || self.index.requested_names.contains(&key, self.now.elapsed)
    }
}
