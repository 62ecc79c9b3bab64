//! Facts about removals of pods on a real API server that the removal guard relies on, and that a new version of
//! Kubernetes may change. `docs/removals.md` lists each.

mod collections;
mod deletions;
mod drains;
mod evictions;
mod failures;
mod namespaces;
mod owners;
mod retries;
mod reviewer;
mod selection;
mod taints;
mod ways_around;
