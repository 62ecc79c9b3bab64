//! Name resolution that hands only those addresses to the connector that the egress policy admits. The connector
//! connects to exactly these, so a name cannot be judged by one address and called at another.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::egress::EgressPolicy;

/// A name that yields no address.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub(super) struct LookupFailed {
    reason: String,
}

type Found = Result<Arc<[SocketAddr]>, LookupFailed>;
type Lookup = Shared<BoxFuture<'static, Found>>;

pub(super) struct EgressResolver {
    policy: Arc<EgressPolicy>,
    /// Lookups under way. The system's resolver blocks a thread and cannot be called off, so a name whose server
    /// hangs may hold one thread, not one for each measurement.
    under_way: Arc<Mutex<HashMap<String, Lookup>>>,
}

impl EgressResolver {
    pub(super) fn new(policy: Arc<EgressPolicy>) -> Self {
        Self {
            policy,
            under_way: Arc::default(),
        }
    }

    /// The lookup of a name: the one under way, else a new one. Nothing is kept once it has ended.
    fn lookup(&self, name: &str) -> Lookup {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lookup) = under_way.get(name) {
            return lookup.clone();
        }
        let task = tokio::spawn({
            let under_way = Arc::clone(&self.under_way);
            let name = name.to_owned();
            async move {
                let found = ask_system(&name).await;
                under_way
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&name);
                found
            }
        });
        let lookup = async move {
            task.await.unwrap_or_else(|error| {
                Err(LookupFailed {
                    reason: error.to_string(),
                })
            })
        }
        .boxed()
        .shared();
        under_way.insert(name.to_owned(), lookup.clone());
        lookup
    }
}

async fn ask_system(name: &str) -> Found {
    let failed = |error: io::Error| LookupFailed {
        reason: error.to_string(),
    };
    let found: Arc<[SocketAddr]> = tokio::net::lookup_host((name, 0))
        .await
        .map_err(failed)?
        .collect();
    if found.is_empty() {
        return Err(LookupFailed {
            reason: "the name has no address".into(),
        });
    }
    Ok(found)
}

impl Resolve for EgressResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = self.lookup(name.as_str());
        let policy = Arc::clone(&self.policy);
        Box::pin(async move {
            let found = lookup.await?;
            let admitted = policy.admit(name.as_str(), &found)?;
            Ok(Box::new(admitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lookup_is_shared_while_it_lasts_and_forgotten_after() {
        let resolver = EgressResolver::new(Arc::default());
        let (first, second) = (resolver.lookup("localhost"), resolver.lookup("localhost"));
        assert_eq!(resolver.under_way.lock().unwrap().len(), 1);
        assert!(first.ptr_eq(&second));
        let (first, second) = futures::join!(first, second);
        assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
        assert_eq!(resolver.under_way.lock().unwrap().len(), 0);
    }

    #[tokio::test]
    async fn an_abandoned_lookup_is_forgotten_too() {
        let resolver = EgressResolver::new(Arc::default());
        drop(resolver.lookup("localhost"));
        while !resolver.under_way.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_refused_address_never_reaches_the_connector() {
        let resolver = EgressResolver::new(Arc::default());
        let Err(error) = resolver.resolve("localhost".parse().unwrap()).await else {
            panic!("localhost is a loopback address")
        };
        assert!(error.to_string().contains("--egress-allow-loopback"), "{error}");
    }
}
