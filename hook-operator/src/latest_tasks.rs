//! At most one task for each object: a newer task aborts the older.

use std::collections::{HashMap, HashSet};

use operator_runtime::watch::NamespacedName;
use tokio::task::{AbortHandle, JoinSet};

/// Newest task of each object. Dropping it aborts them all.
#[derive(Debug, Default)]
pub(crate) struct LatestTasks {
    handles: HashMap<NamespacedName, AbortHandle>,
    tasks: JoinSet<()>,
}

impl LatestTasks {
    /// Starts a task for an object and aborts the previous one.
    pub(crate) fn start(&mut self, key: NamespacedName, task: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        // Sweep only now and then: a sweep for every start would be quadratic.
        if self.handles.len() > 2 * self.tasks.len() + 64 {
            self.handles.retain(|_, task| !task.is_finished());
        }
        self.cancel(&key);
        self.handles.insert(key, self.tasks.spawn(task));
    }

    /// Aborts the task of an object.
    pub(crate) fn cancel(&mut self, key: &NamespacedName) {
        if let Some(task) = self.handles.remove(key) {
            task.abort();
        }
    }

    /// Aborts the tasks of all objects that are not listed.
    pub(crate) fn retain(&mut self, listed: &HashSet<NamespacedName>) {
        let gone: Vec<NamespacedName> = self
            .handles
            .keys()
            .filter(|key| !listed.contains(*key))
            .cloned()
            .collect();
        for key in gone {
            self.cancel(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> NamespacedName {
        operator_runtime::watch::key_of(&kube::core::ObjectMeta {
            name: Some(name.to_owned()),
            ..kube::core::ObjectMeta::default()
        })
    }

    #[tokio::test]
    async fn an_object_has_one_task_and_none_once_it_is_gone() {
        let mut tasks = LatestTasks::default();
        for _ in 0..1000 {
            tasks.start(key("one"), std::future::pending());
            tokio::task::yield_now().await;
        }
        tasks.start(key("two"), std::future::pending());
        tasks.start(key("three"), std::future::pending());
        tokio::task::yield_now().await;
        while tasks.tasks.try_join_next().is_some() {}
        assert_eq!((tasks.tasks.len(), tasks.handles.len()), (3, 3));
        tasks.cancel(&key("one"));
        tasks.retain(&HashSet::from([key("two")]));
        while tasks.tasks.len() > 1 {
            let _ = tasks.tasks.join_next().await;
        }
        assert!(tasks.handles.contains_key(&key("two")));
    }
}
