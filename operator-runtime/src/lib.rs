//! What the shells of both operators share.
//!
//! | module | job |
//! | --- | --- |
//! | [`calls`] | calls of the API server, bounded in number and time; what came of them by class |
//! | [`client`] | a client of the API server with bounded calls, no hidden retries, and every request counted |
//! | [`crd_wait`] | waits for the CRDs instead of crashing without them |
//! | [`error`] | why an operator could not start or go on |
//! | [`events`] | Kubernetes events, sent aside so that they never hold up a decision |
//! | [`fence`] | no write after the lease may have been lost |
//! | [`flags`] | flags that several programs have, and the variables of all |
//! | [`health`] | `/healthz`, `/readyz`, `/metrics` |
//! | [`leader`] | leader election with a Lease |
//! | [`metrics`] | what every component tells Prometheus |
//! | [`patch`] | merge patches that leave exactly what they hold |
//! | [`process`] | logs, TLS, runtime, and why an operator could not start |
//! | `random` | numbers that nobody can foresee |
//! | [`shard`] | what of the cluster a process works on: all, one namespace, or a shard of them |
//! | [`shell`] | what every operator stands on before it does its own work |
//! | [`shutdown`] | SIGTERM and SIGINT |
//! | [`telemetry`] | logs for people or machines |
//! | [`traces`] | spans for an OpenTelemetry collector, where one is named |
//! | [`watch`] | all objects of a kind, then every change of them |
//!
//! Slots and turns are in the crate `fair-share`; who leads is decided in `runtime-core`. No decision is taken here, and nothing here knows what a hook or a game server is.

pub mod calls;
pub mod client;
pub mod crd_wait;
pub mod error;
pub mod events;
pub mod fence;
pub mod flags;
pub mod health;
pub mod leader;
pub mod metrics;
pub mod patch;
pub mod process;
mod random;
pub mod shard;
pub mod shell;
pub mod shutdown;
pub mod telemetry;
pub mod traces;
pub mod watch;
