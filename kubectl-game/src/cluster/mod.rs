//! The cluster: how it is found, as whom it is asked, and what is said where it does not answer as hoped.
//!
//! | module | job |
//! | --- | --- |
//! | [`flags`] | the flags that kubectl has, too, and a client made from them |
//! | [`failure`] | from the API's errors to what the reader can do about them |
//! | [`fetch`] | objects by name, and everything about one workload |
//! | [`change`] | writes, each with the state that it was decided on |
//! | [`live`] | the same objects as they change |
//! | [`who`] | who types |

mod change;
mod failure;
mod fetch;
mod flags;
mod live;
mod who;

pub(crate) use failure::Failure;
pub(crate) use fetch::{Kind, Listed, Snapshot, Unreadable, name_of};
pub(crate) use flags::{Cluster, Flags};
pub(crate) use live::{Live, LiveList, News, interrupted};
