//! A certificate authority and the one certificate that it signed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;

/// Time by which the start of a certificate's validity is backdated, because the clocks of API servers may be
/// slow.
const BACKDATED: Duration = Duration::from_hours(1);

/// A certificate authority and the one certificate that it signed, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Generation {
    /// Authority that callers must trust.
    pub authority: String,
    /// Certificate presented to callers.
    pub certificate: String,
    /// Private key of the certificate.
    pub key: String,
    /// Time of creation.
    pub since: Timestamp,
    /// Time of expiry.
    pub until: Timestamp,
}

/// Omits the key.
impl std::fmt::Debug for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Generation({} to {})", self.since, self.until)
    }
}

/// Reason why a certificate cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate could not be created.
    #[error("failed to create a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The time cannot be represented in a certificate.
    #[error("failed to create a certificate: its expiry time is out of range")]
    Time,
    /// The text is not PEM.
    #[error("it cannot be parsed: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// A caller would not accept the certificate.
    #[error("clients would reject it: {0}")]
    Refused(#[from] rustls::Error),
    /// The authority cannot be used.
    #[error("its CA is unusable: {0}")]
    Authority(#[from] rustls::client::VerifierBuilderError),
    /// The name cannot be part of a certificate.
    #[error("{0:?} is neither a host name nor an IP address")]
    Host(String),
}

impl Generation {
    /// Creates a generation for these names and addresses.
    pub fn make(hosts: &[String], now: Timestamp, validity: Duration) -> Result<Self, CertificateError> {
        // Certificates have a resolution of one second.
        let since = Timestamp::from_second(now.as_second()).map_err(|_| CertificateError::Time)?;
        let until = since.checked_add(validity).map_err(|_| CertificateError::Time)?;
        let from = since.checked_sub(BACKDATED).map_err(|_| CertificateError::Time)?;
        let second = |at: Timestamp| u64::try_from(at.as_second()).map_err(|_| CertificateError::Time);
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let not_before = epoch + Duration::from_secs(second(from)?);
        let not_after = epoch + Duration::from_secs(second(until)?);

        let mut params = CertificateParams::default();
        let name = format!("hookgate-admission CA, {since}");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        (params.not_before, params.not_after) = (not_before, not_after);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let mut params = CertificateParams::new(hosts.to_vec())?;
        params
            .distinguished_name
            .push(DnType::CommonName, "hookgate-admission");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.insert_extended_key_usage(ExtendedKeyUsagePurpose::ServerAuth);
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (not_before, not_after);
        let key = KeyPair::generate()?;
        Ok(Self {
            authority: authority.pem(),
            certificate: params.signed_by(&key, &authority)?.pem(),
            key: key.serialize_pem(),
            since,
            until,
        })
    }

    /// Returns the key pair for handshakes, if callers accept the certificate for each of these names from
    /// now until its expiry. The Secret may have been changed by others, so nothing in it is trusted unchecked.
    pub fn check(&self, hosts: &[String], now: Timestamp) -> Result<Arc<CertifiedKey>, CertificateError> {
        let provider = CryptoProvider::get_default()
            .cloned()
            .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
        let authority = CertificateDer::from_pem_slice(self.authority.as_bytes())?;
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        let mut roots = RootCertStore::empty();
        roots.add(authority)?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
        let last = self
            .until
            .checked_sub(Duration::from_secs(1))
            .unwrap_or(self.until);
        for host in hosts {
            let name =
                ServerName::try_from(host.as_str()).map_err(|_| CertificateError::Host(host.clone()))?;
            for at in [now, last] {
                let since_1970 =
                    Duration::try_from(at.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default();
                let at = UnixTime::since_unix_epoch(since_1970);
                verifier.verify_server_cert(&certificate, &[], &name, &[], at)?;
            }
        }
        Ok(Arc::new(CertifiedKey::from_der(
            vec![certificate],
            key,
            &provider,
        )?))
    }
}
