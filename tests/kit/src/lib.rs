//! A real control plane, sample servers and faults for tests, demo and benches.
//!
//! | room              | what it gives                                                                   |
//! |-------------------|---------------------------------------------------------------------------------|
//! | [`assets`]        | the programs: an existing cluster, given binaries, or our own cached build      |
//! | [`control_plane`] | etcd, API server and controller manager as real processes on loopback           |
//! | [`real_node`]     | a real node: containerd, runc, CNI and the kubelet, in namespaces of their own; needs root |
//! | [`image`]         | container images from bytes, with no registry and no builder                    |
//! | [`process`]       | a program under test: its output, signals, restarts, memory and CPU time        |
//! | [`webhook`]       | a sample HTTP server that answers as told and remembers what it was asked       |
//! | [`api_proxy`]     | a proxy before the API server that counts, fails, stalls, freezes and cuts      |
//! | [`prometheus`]    | a real Prometheus that scrapes what the test names                              |
//! | [`node`]          | simulated nodes: pods become ready, answer HTTP, are updated, die and misbehave  |
//! | [`wait`]          | waiting for a condition with a deadline                                         |
//!
//! Whatever the kit starts ends with the process that started it, however that ends: see `keeper.rs`.
//! Every server listens on loopback only.

mod address;
pub mod api_proxy;
pub mod assets;
mod causes;
pub mod control_plane;
mod http_client;
pub mod image;
mod keeper;
mod loopback;
pub mod node;
mod ports;
pub mod process;
pub mod prometheus;
pub mod real_node;
pub mod usage;
pub mod wait;
pub mod webhook;

pub use address::free_address;
pub use api_proxy::ApiProxy;
pub use causes::whole;
pub use control_plane::{ControlPlane, Options};
pub use http_client::{http_client, install_tls};
pub use node::Nodes;
pub use ports::free as free_port;
pub use process::{Process, Program};
pub use prometheus::Prometheus;
pub use real_node::RealNode;
pub use wait::eventually;
pub use webhook::{Answer, Webhook};
