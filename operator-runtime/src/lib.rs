//! Runtime that both operators' shells share.
//!
//! | module | job |
//! | --- | --- |
//! | `answer` | answers of the API server by cause |
//! | [`calls`] | API calls, limited in number and time, with errors by class |
//! | [`client`] | a client of the API server with timeouts, no implicit retries, and every request counted |
//! | [`clock`] | clocks of the process, one of which counts the time that the machine was suspended |
//! | [`connections`] | a count of dropped connections, and a warning |
//! | [`crd_wait`] | waits for the CRDs instead of crashing without them |
//! | [`error`] | errors that end an operator |
//! | [`events`] | Kubernetes events, sent in the background so that they never delay a decision |
//! | [`fence`] | blocks writes once the lease may have been lost |
//! | [`flags`] | flags that several programs share, and the variables of all |
//! | [`health`] | `/healthz`, `/readyz`, `/metrics` |
//! | [`heartbeat`] | heartbeats of tasks, and the watchdog that ends a process in which one hangs |
//! | [`leader`] | leader election with a Lease |
//! | [`metrics`] | metrics that every component exports |
//! | `metrics_text` | text of `/metrics`, shared by clients that read slowly |
//! | [`objects`] | deletions, whose answers may hold objects that do not parse |
//! | [`outage`] | outages of the API server, from the requests that fail |
//! | `paged_watch` | watches whose lists ask for fewer objects when the API server is slow |
//! | [`patch`] | merge patches that replace the whole object |
//! | [`process`] | logs, TLS, runtime, and the report of a failed start |
//! | `random` | random numbers |
//! | [`shard`] | the part of the cluster that a process works on: all, one namespace, or a shard of them |
//! | [`shell`] | setup of an operator before it does its own work |
//! | [`shutdown`] | SIGTERM and SIGINT |
//! | [`telemetry`] | logs for people or machines |
//! | [`traces`] | spans for an OpenTelemetry collector, if one is configured |
//! | [`watch`] | all objects of a kind, then every change of them |
//!
//! The crate `connection-limit` bounds the connections to a listener; `utf8-body` replaces invalid UTF-8 in responses;
//! `fair-share` has the semaphore that is fair between namespaces; `runtime-core` decides who leads. This crate makes no
//! decisions and knows nothing of hooks or game servers.

mod answer;
pub mod calls;
pub mod client;
pub mod clock;
pub mod connections;
pub mod crd_wait;
pub mod error;
pub mod events;
pub mod fence;
pub mod flags;
pub mod health;
pub mod heartbeat;
pub mod leader;
pub mod metrics;
mod metrics_text;
pub mod objects;
pub mod outage;
mod paged_watch;
pub mod patch;
pub mod process;
mod random;
pub mod shard;
pub mod shell;
pub mod shutdown;
pub mod telemetry;
pub mod traces;
pub mod watch;
