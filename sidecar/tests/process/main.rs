//! Tests of the program as a pod runs it: real sockets, real files, and a game server in a process of its own.
//!
//! The tests judge by what the game server sent, never by what the program says about itself: see [`world`].
//!
//! | file | subject |
//! | --- | --- |
//! | `grammar` | every form of a report, readable or not, from every source |
//! | `restart` | a game server that ends, or is replaced by another one on the same port |
//! | `stopped` | a sidecar that did not run for a while, with reports waiting for it |
//! | `stale` | reports that stop |
//! | `file` | everything that can become of a file |
//! | `put` | reports by HTTP |
//! | `answers` | the port that hooks and probes read |
//! | `connections` | clients that never finish, on both ports |
//! | `crowd` | thousands of such clients from another pod, on both ports |
//! | `flood` | more datagrams than anyone can read |
//! | `game_port` | the sockets that count as the game server |
//! | `process` | start, exit, logs |
//! | `flags` | errors on the command line |
//! | `metrics` | the page for Prometheus |
//! | `random` | random sequences of all of these |
//!
//! `game`, `http`, `sidecar`, `wait` and `world` are the tools.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the clocks of tests decide nothing")]

mod answers;
mod connections;
mod crowd;
mod file;
mod flags;
mod flood;
mod game;
mod game_port;
mod grammar;
mod http;
mod metrics;
mod process;
mod put;
mod random;
mod restart;
mod sidecar;
mod stale;
mod stopped;
mod wait;
mod world;
