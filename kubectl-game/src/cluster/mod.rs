//! Access to the cluster: connection, identity, and explanations of its errors.
//!
//! | module | job |
//! | --- | --- |
//! | [`flags`] | flags shared with kubectl, and a client configured by them |
//! | [`failure`] | conversion of API errors to messages that name the remedy |
//! | [`fetch`] | single objects, lists, and everything that belongs to one workload |
//! | [`change`] | writes with a precondition on the state they were decided on |
//! | [`live`] | live views of the same objects |
//! | [`node`] | nodes, and evictions of their pods |
//! | [`who`] | identity of the user |

mod change;
mod failure;
mod fetch;
mod flags;
mod live;
mod node;
mod who;

pub(crate) use failure::Failure;
pub(crate) use fetch::{Kind, ListResult, Snapshot, UnreadableObject, name_of};
pub(crate) use flags::{ClusterConnection, Flags, quoted};
pub(crate) use live::{Live, LiveList, News, interrupted};
pub(crate) use node::Eviction;
