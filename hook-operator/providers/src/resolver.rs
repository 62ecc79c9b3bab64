//! Name resolution that passes only addresses that the egress policy admits. The connector uses exactly
//! these, so a name cannot be checked with one address and called at another.
//!
//! The system's resolver blocks a thread and cannot be cancelled. So concurrent lookups are limited,
//! namespaces take turns, and some slots stay free: names whose server hangs delay only the namespace that
//! uses them.

use std::{
    collections::HashMap,
    error::Error,
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    vec,
};

use fair_share::semaphore::{FairSemaphore, Permit};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

use crate::egress::EgressPolicy;

/// Concurrent lookups; far below the runtime's 512 blocking threads.
const MAX_LOOKUPS: usize = 128;

tokio::task_local! {
    /// Namespace of the current call; the HTTP client passes only the name.
    static NAMESPACE: Arc<str>;
}

/// Runs calls whose lookups count for a namespace.
pub(crate) async fn for_namespace<T>(namespace: &str, calls: impl Future<Output = T>) -> T {
    NAMESPACE.scope(Arc::from(namespace), calls).await
}

/// Error of a lookup that found no address.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct LookupFailed {
    reason: String,
}

type LookupResult = Result<Arc<[SocketAddr]>, LookupFailed>;
type LookupFuture = BoxFuture<'static, LookupResult>;
type Lookup = Shared<LookupFuture>;
/// Namespace and host name.
type LookupKey = (Arc<str>, String);
/// Looks up a name's addresses, blocking.
type LookupFn = fn(&str) -> io::Result<Vec<SocketAddr>>;
/// Addresses of a name that may be called.
type Admitted = Result<vec::IntoIter<SocketAddr>, Box<dyn Error + Send + Sync>>;

/// Resolver of the clients. Clones share their lookups.
#[derive(Clone)]
pub(crate) struct EgressResolver {
    policy: Arc<EgressPolicy>,
    ask: LookupFn,
    turns: FairSemaphore,
    /// Lookups under way: a name is looked up once for all waiters, and not again while the lookup hangs.
    under_way: Arc<Mutex<HashMap<LookupKey, LookupState>>>,
}

/// Lookup under way.
enum LookupState {
    /// Waits for its turn; dropped when the last waiter is gone.
    Waits(WeakShared<LookupFuture>),
    /// Occupies a thread.
    Runs(Lookup),
}

/// Removes a lookup when it ends or its last waiter is gone.
struct LookupGuard {
    under_way: Arc<Mutex<HashMap<LookupKey, LookupState>>>,
    key: LookupKey,
}

impl LookupGuard {
    /// Runs the lookup to its end, even if no waiter is left.
    fn run(self, turn: Permit, ask: LookupFn) -> Lookup {
        let (under_way, key) = (Arc::clone(&self.under_way), self.key.clone());
        let task = tokio::spawn(async move {
            let name = self.key.1.clone();
            let asked = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                ask(&name)
            });
            let found = asked.await.map_err(io::Error::other).flatten();
            drop(self);
            addresses(found)
        });
        let ended = async {
            task.await
                .unwrap_or_else(|error| addresses(Err(io::Error::other(error))))
        };
        let lookup = ended.boxed().shared();
        let mut under_way = under_way.lock().unwrap_or_else(PoisonError::into_inner);
        // The lookup may have ended just now.
        if under_way.contains_key(&key) {
            under_way.insert(key, LookupState::Runs(lookup.clone()));
        }
        lookup
    }
}

impl Drop for LookupGuard {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.remove(&self.key);
    }
}

impl EgressResolver {
    pub(crate) fn new(policy: Arc<EgressPolicy>) -> Self {
        Self::asking(policy, |name| Ok((name, 0).to_socket_addrs()?.collect()))
    }

    fn asking(policy: Arc<EgressPolicy>, ask: LookupFn) -> Self {
        Self {
            policy,
            ask,
            turns: FairSemaphore::with_reserve(MAX_LOOKUPS),
            under_way: Arc::default(),
        }
    }

    /// Returns the lookup of a name for a namespace: the one under way, or a new one. A new lookup waits for
    /// its turn only while it has waiters.
    fn lookup(&self, namespace: &Arc<str>, name: &str) -> Lookup {
        let key = (namespace.clone(), name.to_owned());
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match under_way.get(&key) {
            Some(LookupState::Waits(lookup)) => lookup.upgrade(),
            Some(LookupState::Runs(lookup)) => Some(lookup.clone()),
            None => None,
        };
        if let Some(lookup) = known {
            return lookup;
        }
        let entry = LookupGuard {
            under_way: Arc::clone(&self.under_way),
            key: key.clone(),
        };
        let (turns, ask) = (self.turns.clone(), self.ask);
        let lookup = async move {
            let turn = turns.take(&entry.key.0).await;
            entry.run(turn, ask).await
        }
        .boxed()
        .shared();
        if let Some(weak) = lookup.downgrade() {
            under_way.insert(key, LookupState::Waits(weak));
        }
        lookup
    }
}

fn addresses(found: io::Result<Vec<SocketAddr>>) -> LookupResult {
    let reason = match found {
        Ok(found) if !found.is_empty() => return Ok(found.into()),
        Ok(_) => "the name has no addresses".into(),
        Err(error) => error.to_string(),
    };
    Err(LookupFailed { reason })
}

impl EgressResolver {
    fn resolve(&self, name: &Name) -> BoxFuture<'static, Admitted> {
        let namespace = NAMESPACE.try_with(Arc::clone).unwrap_or_default();
        let lookup = self.lookup(&namespace, name.as_str());
        let (policy, name) = (Arc::clone(&self.policy), name.clone());
        Box::pin(async move {
            let found = lookup.await?;
            Ok(policy.admit(name.as_str(), &found)?.into_iter())
        })
    }
}

impl Service<Name> for EgressResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Admitted>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        self.resolve(&name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn games() -> Arc<str> {
        Arc::from("games")
    }

    fn name(name: &str) -> Name {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn a_lookup_is_shared_while_it_lasts_and_forgotten_after() {
        let resolver = EgressResolver::new(Arc::default());
        let (first, second) = (
            resolver.lookup(&games(), "localhost"),
            resolver.lookup(&games(), "localhost"),
        );
        assert_eq!(resolver.under_way.lock().unwrap().len(), 1);
        assert!(first.ptr_eq(&second));
        let (first, second) = futures::join!(first, second);
        assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
        assert_eq!(resolver.under_way.lock().unwrap().len(), 0);
    }

    #[tokio::test]
    async fn an_abandoned_lookup_is_forgotten_too() {
        let resolver = EgressResolver::new(Arc::default());
        drop(resolver.lookup(&games(), "localhost"));
        assert!(resolver.under_way.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_refused_address_never_reaches_the_connector() {
        let resolver = EgressResolver::new(Arc::default());
        let Err(error) = resolver.resolve(&name("localhost")).await else {
            panic!("localhost is a loopback address")
        };
        assert!(error.to_string().contains("--egress-allow-loopback"), "{error}");
    }

    /// Lookups hang until the test ends, except that of `localhost`.
    static ENDED: AtomicBool = AtomicBool::new(false);
    static HANGING: AtomicUsize = AtomicUsize::new(0);

    fn hang(name: &str) -> io::Result<Vec<SocketAddr>> {
        if name == "localhost" {
            return Ok(vec![([127, 0, 0, 1], 0).into()]);
        }
        HANGING.fetch_add(1, Ordering::SeqCst);
        while !ENDED.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(io::Error::other("ended"))
    }

    /// Ends the threads of a test, also when it fails, because its runtime waits for them.
    struct Ends;

    impl Drop for Ends {
        fn drop(&mut self) {
            ENDED.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn names_that_hang_hold_up_only_who_wrote_them() {
        let _ends = Ends;
        let policy = EgressPolicy {
            allow_loopback: true,
            ..EgressPolicy::default()
        };
        let resolver = Arc::new(EgressResolver::asking(Arc::new(policy), hang));
        let crowd: Vec<_> = (0..2000)
            .map(|number| {
                let resolver = resolver.clone();
                let name = name(&format!("game-{number}.example"));
                tokio::spawn(for_namespace("crowd", async move {
                    resolver.resolve(&name).await.map(drop)
                }))
            })
            .collect();
        while HANGING.load(Ordering::SeqCst) < MAX_LOOKUPS / 2 {
            tokio::task::yield_now().await;
        }
        let asked = for_namespace("few", resolver.resolve(&name("localhost")));
        let found = tokio::time::timeout(Duration::from_secs(5), asked).await;
        assert_eq!(found.unwrap().unwrap().count(), 1);
        for call in crowd {
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
        }
        // Lookups that had not started are cancelled; those that hang stay.
        assert_eq!(resolver.under_way.lock().unwrap().len(), MAX_LOOKUPS / 2);
        // Another caller of a hanging lookup waits for the same thread.
        drop(for_namespace("crowd", resolver.resolve(&name("game-0.example"))).now_or_never());
        assert_eq!(HANGING.load(Ordering::SeqCst), MAX_LOOKUPS / 2);
    }
}
