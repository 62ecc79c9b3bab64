//! Certificates that look after themselves.
//!
//! | module | job |
//! | --- | --- |
//! | [`generation`] | an authority and the certificate that it signed: made, read, checked |
//! | [`stored`] | the newest generation and the one before it, as the Secret holds them; when a new one is due |
//! | [`present`] | which of them to present, by what the API server has been told to trust, and the handshake itself |
//! | [`store`] | every read and write of the Secret and of the ValidatingWebhookConfiguration |
//! | [`keep`] | all of it for ever, in every replica |
//!
//! Each generation has an authority of its own, whose key is thrown away once it has signed: what is not kept cannot be
//! stolen. A new generation is made after two thirds of the validity of the one before it, and both authorities stand in
//! `caBundle`. A replica presents the new certificate when the bundle has had its authority for a while, so no
//! caller meets a certificate that it does not trust yet; a replica that comes late goes on with the one before, which
//! is trusted for the last third of its validity.
//!
//! Replicas agree by the Secret alone: it is written under the precondition that nobody else has written it, and who
//! comes second takes what is there.

pub mod generation;
pub mod keep;
pub mod present;
pub mod store;
pub mod stored;

pub use keep::Keeper;
pub use present::Presented;

use std::time::Duration;

/// How long certificates live, and what follows from it.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// How long a new certificate is valid.
    pub validity: Duration,
}

impl Terms {
    /// After its making, a certificate is to be renewed.
    pub fn renewal(self) -> Duration {
        self.validity * 2 / 3
    }

    /// For so long an authority must have been in the bundle before its certificate is presented: every API server of
    /// the cluster has to hear of it.
    pub fn settling(self) -> Duration {
        (self.validity / 20).min(Duration::from_mins(1))
    }
}
