//! How many pods to create and to delete: arithmetic on counts, total over all inputs.
//!
//! `replicas` pods are wanted, and while pods are being replaced up to `maxSurge` more. Of the wanted ones
//! `partition` stay at old revisions: where such a pod is missing, one is created at the current revision. Raising
//! the partition never turns an updated pod back.

/// The counts of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pods that there should be.
    pub replicas: usize,
    /// Pods that stay at old revisions, as it is asked for: it may be more than there are to be.
    pub partition: usize,
    /// Pods that may be there above `replicas` while others are being replaced.
    pub surge: usize,
    /// Pods that are being replaced, and whose successors may come before they go.
    pub replaced: usize,
    /// Pods at old revisions.
    pub old: usize,
    /// Pods at the update revision.
    pub updated: usize,
}

/// What the counts ask for. Never both creation and deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// Pods to create at the current revision.
    pub create_old: usize,
    /// Pods to create at the update revision.
    pub create_updated: usize,
    /// Pods to delete.
    pub delete: usize,
    /// How many of these are to be old pods, as far as there are any.
    pub delete_old: usize,
}

impl Need {
    /// What is left to create when pods are adopted: these take the places of their own revision first.
    #[must_use]
    pub fn after_adoption(self, old: usize, updated: usize) -> Self {
        let create = (self.create_old + self.create_updated).saturating_sub(old + updated);
        let create_old = self.create_old.saturating_sub(old).min(create);
        Self {
            create_old,
            create_updated: create - create_old,
            ..self
        }
    }
}

impl Counts {
    /// Wanted pods that stay at old revisions.
    pub fn to_keep_old(&self) -> usize {
        self.partition.min(self.replicas)
    }

    /// Wanted pods that are to have the update revision in the end. Pods that are there for an update alone are none.
    pub fn to_update_in_all(&self) -> usize {
        self.replicas - self.to_keep_old()
    }

    /// Old pods that are to be replaced.
    pub fn to_update(&self) -> usize {
        self.old.saturating_sub(self.to_keep_old())
    }

    /// Pods wanted now, surge included.
    pub fn wanted(&self) -> usize {
        self.replicas.saturating_add(self.surge.min(self.replaced))
    }

    /// Pods that there are above `replicas`.
    pub fn surplus(&self) -> usize {
        self.old
            .saturating_add(self.updated)
            .saturating_sub(self.replicas)
    }

    /// Of these, the ones that are there for an update.
    pub fn surging(&self) -> usize {
        self.surplus().min(self.surge.min(self.replaced))
    }

    /// What is to be done.
    pub fn need(&self) -> Need {
        let total = self.old.saturating_add(self.updated);
        let wanted = self.wanted();
        if total < wanted {
            let create = wanted - total;
            let create_old = self.to_keep_old().saturating_sub(self.old).min(create);
            return Need {
                create_old,
                create_updated: create - create_old,
                ..Need::default()
            };
        }
        let delete = total - wanted;
        Need {
            delete,
            delete_old: self.to_update().min(delete),
            ..Need::default()
        }
    }
}

#[cfg(test)]
mod tests;
