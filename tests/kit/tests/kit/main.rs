//! Tests of the kit with the real programs.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions too"
)]

mod api_proxy;
mod control_plane;
mod life;
mod node;
mod process;
mod prometheus;
mod webhook;
