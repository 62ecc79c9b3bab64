//! Number of pods to create and delete: arithmetic on counts, total over all inputs.
//!
//! `replicas` pods are wanted, plus up to `maxSurge` more while pods are being replaced. Of the wanted pods,
//! `partition` stay at old revisions: a missing one is created at the current revision. Raising the partition
//! never reverts an updated pod.

/// The counts of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Desired number of pods.
    pub replicas: usize,
    /// Pods that stay at old revisions, as requested; may exceed `replicas`.
    pub partition: usize,
    /// Pods allowed above `replicas` while others are being replaced.
    pub surge: usize,
    /// Pods being replaced whose successors may come first.
    pub replaced: usize,
    /// Pods at old revisions.
    pub old: usize,
    /// Pods at the update revision.
    pub updated: usize,
}

/// Required changes. Never both creations and deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScaleDiff {
    /// Pods to create at the current revision.
    pub create_old: usize,
    /// Pods to create at the update revision.
    pub create_updated: usize,
    /// Pods to delete.
    pub delete: usize,
    /// Number of these that should be old pods, if there are enough.
    pub delete_old: usize,
}

impl ScaleDiff {
    /// Returns what is left to create after adoption. Adopted pods first fill the places of their own
    /// revision.
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

    /// Wanted pods that end up at the update revision, excluding surge pods.
    pub fn to_update_in_all(&self) -> usize {
        self.replicas - self.to_keep_old()
    }

    /// Old pods to replace.
    pub fn to_update(&self) -> usize {
        self.old.saturating_sub(self.to_keep_old())
    }

    /// Pods wanted now, surge included.
    pub fn wanted(&self) -> usize {
        self.replicas.saturating_add(self.surge.min(self.replaced))
    }

    /// Pods above `replicas`.
    pub fn surplus(&self) -> usize {
        self.old
            .saturating_add(self.updated)
            .saturating_sub(self.replicas)
    }

    /// Surplus pods that exist because others are being replaced.
    pub fn surging(&self) -> usize {
        self.surplus().min(self.surge.min(self.replaced))
    }

    /// Computes the required changes.
    pub fn diff(&self) -> ScaleDiff {
        let total = self.old.saturating_add(self.updated);
        let wanted = self.wanted();
        if total < wanted {
            let create = wanted - total;
            let create_old = self.to_keep_old().saturating_sub(self.old).min(create);
            return ScaleDiff {
                create_old,
                create_updated: create - create_old,
                ..ScaleDiff::default()
            };
        }
        let delete = total - wanted;
        ScaleDiff {
            delete,
            delete_old: self.to_update().min(delete),
            ..ScaleDiff::default()
        }
    }
}

#[cfg(test)]
mod tests;
