//! Tests of the providers over real connections on loopback. Each file covers one behaviour that a hook's
//! author or the platform team may rely on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod ask;
mod cancel;
mod connection;
mod egress;
mod limits;
mod prometheus;
mod proxy;
mod redirect;
mod server;
mod size;
mod time;
mod tls;
mod trouble;
mod web;
