//! Name resolution that hands only those addresses to the connector that the egress policy admits. The connector
//! connects to exactly these, so a name cannot be judged by one address and called at another.
//!
//! The system's resolver blocks a thread and cannot be called off. So look-ups are few at a time, in turns between
//! namespaces, and some turns are kept free: names whose server hangs hold up the namespace that wrote them.

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::{Arc, Mutex, PoisonError},
};

use fair_share::slots::{Slot, Slots};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::egress::EgressPolicy;

/// Look-ups at a time; far below the 512 threads that the runtime has for what blocks.
const AT_ONCE: usize = 128;

tokio::task_local! {
    /// For whom a call is made; the HTTP client hands over nothing but the name.
    static NAMESPACE: Arc<str>;
}

/// Makes calls whose names are looked up for a namespace.
pub(crate) async fn for_namespace<T>(namespace: &str, calls: impl Future<Output = T>) -> T {
    NAMESPACE.scope(Arc::from(namespace), calls).await
}

/// A name that yields no address.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct LookupFailed {
    reason: String,
}

type Found = Result<Arc<[SocketAddr]>, LookupFailed>;
type Asking = BoxFuture<'static, Found>;
type Lookup = Shared<Asking>;
/// Who wants it, and the name.
type Key = (Arc<str>, String);
/// Asks for a name's addresses, and blocks until there is an answer.
type Ask = fn(&str) -> io::Result<Vec<SocketAddr>>;

pub(crate) struct EgressResolver {
    policy: Arc<EgressPolicy>,
    ask: Ask,
    turns: Slots,
    /// So that a name is asked for once, however many wait for it, and is not asked for again while it hangs.
    under_way: Arc<Mutex<HashMap<Key, Known>>>,
}

/// A look-up that has not ended.
enum Known {
    /// Of its turn; it goes when nobody waits for it any more.
    Waits(WeakShared<Asking>),
    /// It holds a thread.
    Runs(Lookup),
}

/// Forgets a look-up when it has ended, or when nobody waits for it any more.
struct Entry {
    under_way: Arc<Mutex<HashMap<Key, Known>>>,
    key: Key,
}

impl Entry {
    /// Asks for the name, to the end, whoever waits for it.
    fn run(self, turn: Slot, ask: Ask) -> Lookup {
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
        // Unless it has ended in this moment.
        if under_way.contains_key(&key) {
            under_way.insert(key, Known::Runs(lookup.clone()));
        }
        lookup
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.remove(&self.key);
    }
}

impl EgressResolver {
    pub(crate) fn new(policy: Arc<EgressPolicy>) -> Self {
        Self::asking(policy, |name| Ok((name, 0).to_socket_addrs()?.collect()))
    }

    fn asking(policy: Arc<EgressPolicy>, ask: Ask) -> Self {
        Self {
            policy,
            ask,
            turns: Slots::with_room(AT_ONCE),
            under_way: Arc::default(),
        }
    }

    /// The look-up of a name for a namespace: the one under way, else a new one. It waits for its turn only while
    /// somebody waits for it.
    fn lookup(&self, namespace: &Arc<str>, name: &str) -> Lookup {
        let key = (namespace.clone(), name.to_owned());
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match under_way.get(&key) {
            Some(Known::Waits(lookup)) => lookup.upgrade(),
            Some(Known::Runs(lookup)) => Some(lookup.clone()),
            None => None,
        };
        if let Some(lookup) = known {
            return lookup;
        }
        let entry = Entry {
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
            under_way.insert(key, Known::Waits(weak));
        }
        lookup
    }
}

fn addresses(found: io::Result<Vec<SocketAddr>>) -> Found {
    let reason = match found {
        Ok(found) if !found.is_empty() => return Ok(found.into()),
        Ok(_) => "the name has no address".into(),
        Err(error) => error.to_string(),
    };
    Err(LookupFailed { reason })
}

impl Resolve for EgressResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let namespace = NAMESPACE.try_with(Arc::clone).unwrap_or_default();
        let lookup = self.lookup(&namespace, name.as_str());
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
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn games() -> Arc<str> {
        Arc::from("games")
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
        let Err(error) = resolver.resolve("localhost".parse().unwrap()).await else {
            panic!("localhost is a loopback address")
        };
        assert!(error.to_string().contains("--egress-allow-loopback"), "{error}");
    }

    /// Names of this resolver hang until the test ends, but for `localhost`.
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

    /// Lets the threads of a test end, also when it fails: its runtime waits for them.
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
                let name: Name = format!("game-{number}.example").parse().unwrap();
                tokio::spawn(for_namespace("crowd", async move {
                    resolver.resolve(name).await.map(drop)
                }))
            })
            .collect();
        while HANGING.load(Ordering::SeqCst) < AT_ONCE / 2 {
            tokio::task::yield_now().await;
        }
        let asked = for_namespace("few", resolver.resolve("localhost".parse().unwrap()));
        let found = tokio::time::timeout(Duration::from_secs(5), asked).await;
        assert_eq!(found.unwrap().unwrap().count(), 1);
        for call in crowd {
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
        }
        // Those that were not asked for yet are called off, and those that hang are as many as before.
        assert_eq!(resolver.under_way.lock().unwrap().len(), AT_ONCE / 2);
        // Who asks for one that hangs waits for the same thread.
        drop(for_namespace("crowd", resolver.resolve("game-0.example".parse().unwrap())).now_or_never());
        assert_eq!(HANGING.load(Ordering::SeqCst), AT_ONCE / 2);
    }
}
