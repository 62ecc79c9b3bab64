//! Part of the cluster that a process works on: one namespace, all of them, or those of its shard.

use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
pub use runtime_core::shard::{NoShard, Shard};

/// Part of the cluster that a process works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Single namespace, if the process works in only one.
    pub namespace: Option<String>,
    /// Shard of all namespaces, if they are divided.
    pub shard: Option<Shard>,
}

impl Scope {
    /// Whether a namespace belongs to the scope.
    pub fn has(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
            && self.shard.is_none_or(|shard| shard.has(namespace))
    }

    /// Returns the API to list and watch a kind. The API server cannot filter by shard.
    pub fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_has_what_its_parts_both_have() {
        let everything = Scope::default();
        let one = Scope {
            namespace: Some("games".to_owned()),
            shard: None,
        };
        assert!(everything.has("games") && everything.has("other"));
        assert!(one.has("games") && !one.has("other"));
        let of = ["0/3", "1/3", "2/3"].into_iter().map(|shard| Scope {
            namespace: None,
            shard: shard.parse().ok(),
        });
        assert_eq!(of.filter(|scope| scope.has("games")).count(), 1);
    }
}
