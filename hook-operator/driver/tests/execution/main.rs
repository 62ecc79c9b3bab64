//! Tests of an execution in a small world: an API server, pods and a virtual clock. The records of the server and of the
//! containers are judged, not the execution's own view.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod action;
mod crashes;
mod ends;
mod judge;
mod random;
mod tries;
mod world;
mod writes;
