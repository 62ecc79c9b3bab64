//! ServiceAccount [`HOOKS_ACCOUNT`] of each namespace, as which hooks act in the cluster. A hook can do nothing that its
//! namespace has not granted to this account.

use kube::Client;
use operator_runtime::client::acting_as;
use shared_api::names::HOOKS_ACCOUNT;

/// Returns a client that acts as the account of a namespace.
pub fn of_hooks(client: &Client, namespace: &str) -> Client {
    acting_as(
        client,
        &format!("system:serviceaccount:{namespace}:{HOOKS_ACCOUNT}"),
    )
}
