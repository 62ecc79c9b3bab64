//! What all tenants of a process share, divided fairly between them.
//!
//! | module | job |
//! | --- | --- |
//! | [`slots`] | a number of slots, shared fairly between namespaces |
//! | [`compute`] | work that only computes, off the threads of the runtime, in turns between namespaces |
//!
//! It needs a runtime for waiting, and neither a client nor a clock. The operators, the admission webhook and the
//! kubectl plugin use it.

pub mod compute;
pub mod slots;
