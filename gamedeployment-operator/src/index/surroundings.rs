//! What the core asks about a workload's surroundings, answered from the index.

use gamedeployment_core::cluster::Cluster;
use gamedeployment_core::gate::FoundTemplate;
use operator_runtime::watch::Key;

use super::Index;

/// What a namespace's workloads see around them.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// What is known.
    pub index: &'a Index,
    /// The namespace.
    pub namespace: &'a str,
}

impl Surroundings<'_> {
    fn key(&self, name: &str) -> Key {
        (self.namespace.to_owned(), name.to_owned())
    }
}

impl Cluster for Surroundings<'_> {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        match self
            .index
            .templates
            .get(&self.key(name))
            .map(|template| &template.spec)
        {
            None => FoundTemplate::Missing,
            Some(Ok(spec)) => FoundTemplate::Found(spec),
            Some(Err(why)) => FoundTemplate::Unreadable(why),
        }
    }

    fn node_is_gone(&self, name: &str) -> bool {
        self.index.nodes_known && !self.index.nodes.contains_key(name)
    }

    fn node_cost(&self, name: &str) -> Option<f64> {
        self.index.nodes.get(name)?.cost
    }

    fn has_run(&self, namespace: &str, name: &str) -> bool {
        self.index
            .runs
            .get(&(namespace.to_owned(), name.to_owned()))
            .is_some()
    }

    fn has_pod(&self, name: &str) -> bool {
        self.index.pods.get(&self.key(name)).is_some()
    }
}
