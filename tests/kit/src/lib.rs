//! A real control plane, sample servers and faults for tests, demo and benches.
//!
//! | room              | what it gives                                                                   |
//! |-------------------|---------------------------------------------------------------------------------|
//! | [`assets`]        | the programs: an existing cluster, given binaries, or our own cached build      |
//! | [`control_plane`] | etcd, API server and controller manager as real processes on loopback           |
//! | [`process`]       | a program under test: its output, signals, restarts, memory and CPU time        |
//! | [`wait`]          | waiting for a condition with a deadline                                         |
//!
//! Whatever the kit starts ends with the process that started it, however that ends: see `keeper.rs`.
//! Every server listens on loopback only.

pub mod assets;
pub mod control_plane;
mod keeper;
mod ports;
pub mod process;
pub mod usage;
pub mod wait;

pub use control_plane::{ControlPlane, Options};
pub use process::{Process, Program};
pub use wait::eventually;
