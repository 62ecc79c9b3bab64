//! Resources that all tenants of a process share fairly.
//!
//! | module | job |
//! | --- | --- |
//! | [`semaphore`] | a number of permits, shared fairly between namespaces |
//! | [`compute`] | CPU-bound work off the runtime's threads, with turns between namespaces |
//!
//! It needs a runtime for waiting, but neither a client nor a clock. The operators, the admission webhook and
//! the kubectl plugin use it.

pub mod compute;
pub mod semaphore;
