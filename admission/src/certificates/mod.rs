//! Automatically rotated certificates.
//!
//! | module | job |
//! | --- | --- |
//! | [`generation`] | creation, parsing and validation of an authority and its certificate |
//! | [`stored`] | newest and previous generation, as stored in the Secret, and the next rotation |
//! | [`present`] | choice of the presented certificate by what the API server trusts, and the handshake |
//! | [`store`] | all reads and writes of the Secret and of the ValidatingWebhookConfiguration |
//! | [`keep`] | the controller that runs in every replica |
//!
//! Each generation has its own authority. The authority's key is discarded after signing, so it cannot be
//! stolen. A new generation is created after two thirds of the previous one's validity, and `caBundle`
//! contains both authorities. A replica presents the new certificate after its authority has been in the
//! bundle for a while, so no caller sees a certificate that it does not trust yet. A replica that is late
//! keeps presenting the previous certificate, which remains trusted for the last third of its validity.
//!
//! Replicas agree through the Secret alone. Each write has a precondition on the version that was read, and
//! the replica that loses the race adopts the winner's content.

pub mod generation;
pub mod keep;
pub mod present;
pub mod store;
pub mod stored;

pub use keep::CertificateController;
pub use present::Presented;

use std::time::Duration;

/// Validity of certificates, and the durations derived from it.
#[derive(Debug, Clone, Copy)]
pub struct CertificateLifetimes {
    /// Validity of a new certificate.
    pub validity: Duration,
}

impl CertificateLifetimes {
    /// Returns the age at which a certificate is renewed.
    pub fn renewal(self) -> Duration {
        self.validity * 2 / 3
    }

    /// Returns how long an authority must have been in the bundle before its certificate is presented, so
    /// that every API server of the cluster has received it.
    pub fn settling(self) -> Duration {
        (self.validity / 20).min(Duration::from_mins(1))
    }
}
