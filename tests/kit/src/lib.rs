//! Real control plane, sample servers and fault injection for tests, demo and benchmarks.
//!
//! | module            | contents                                                                        |
//! |-------------------|---------------------------------------------------------------------------------|
//! | [`assets`]        | the programs: an existing cluster, given binaries, or our own cached build      |
//! | [`control_plane`] | etcd, API server and controller manager as real processes on loopback           |
//! | [`real_node`]     | a real node: containerd, runc, CNI, kubelet, in its own namespaces; needs root  |
//! | [`image`]         | builds container images from bytes, without a registry or builder               |
//! | [`process`]       | a program under test: its output, signals, restarts, memory and CPU time        |
//! | [`webhook`]       | a sample HTTP server with scripted responses and a record of its requests       |
//! | [`api_proxy`]     | a proxy to the API server that counts, fails, stalls, freezes and cuts          |
//! | [`prometheus`]    | a real Prometheus that scrapes the targets of the test                          |
//! | [`node`]          | simulated nodes: pods become ready, answer HTTP, update, die and misbehave      |
//! | [`flood`]         | thousands of hostile connections, and what an observer sees of their target     |
//! | [`tls_gate`]      | holds TLS handshakes, so that requests wait for their connections               |
//! | [`wait`]          | waits for a condition with a deadline                                           |
//!
//! Everything that the kit starts ends with the process that started it, however that ends: see `keeper.rs`.
//! Every server listens on loopback only.

mod address;
pub mod api_proxy;
pub mod assets;
mod causes;
pub mod control_plane;
pub mod flood;
mod http_client;
pub mod image;
mod keeper;
mod loopback;
pub mod node;
mod ports;
pub mod process;
pub mod prometheus;
pub mod real_node;
pub mod tls_gate;
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
