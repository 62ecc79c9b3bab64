//! Certificates and keys of a control plane that lives for one test run.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};

use super::Error;

/// Files for the components' command lines, in one directory.
#[derive(Debug)]
pub(super) struct Pki {
    directory: PathBuf,
    /// User entry of the administrator's kubeconfig.
    user: Value,
    authority: String,
}

impl Pki {
    /// Issues everything and writes it to a new directory.
    pub(super) fn issue(directory: &Path) -> Result<Self, Error> {
        fs::create_dir_all(directory)?;
        let pki = |name: &str, text: String| fs::write(directory.join(name), text);

        let authority = authority()?;
        pki("ca.crt", authority.pem())?;

        let server_names = [
            "127.0.0.1",
            "10.0.0.1",
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ];
        let server = CertificateParams::new(server_names.map(str::to_owned))?;
        let server = issue(
            &authority,
            server,
            ("kube-apiserver", None),
            ExtendedKeyUsagePurpose::ServerAuth,
        )?;
        pki("apiserver.crt", server.0)?;
        pki("apiserver.key", server.1)?;

        let admin = CertificateParams::default();
        let admin_name = ("admin", Some("system:masters"));
        let admin = issue(&authority, admin, admin_name, ExtendedKeyUsagePurpose::ClientAuth)?;
        let user = json!({
            "client-certificate-data": BASE64_STANDARD.encode(&admin.0),
            "client-key-data": BASE64_STANDARD.encode(&admin.1),
        });
        pki("admin.crt", admin.0)?;
        pki("admin.key", admin.1)?;

        let service_accounts = KeyPair::generate()?;
        pki("service-accounts.key", service_accounts.serialize_pem())?;
        pki("service-accounts.pub", service_accounts.public_key_pem())?;
        Ok(Self {
            directory: directory.to_owned(),
            user,
            authority: authority.pem(),
        })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Builds an administrator's kubeconfig that refers to no other file. JSON is valid YAML.
    pub(super) fn kubeconfig(&self, url: &str) -> String {
        let cluster = json!({
            "server": url,
            "certificate-authority-data": BASE64_STANDARD.encode(&self.authority),
        });
        super::kubeconfig::text(&cluster, &self.user)
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, Error> {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// Issues a certificate and key for a user or server name and an optional group.
fn issue(
    authority: &CertifiedIssuer<'_, KeyPair>,
    mut params: CertificateParams,
    (name, group): (&str, Option<&str>),
    usage: ExtendedKeyUsagePurpose,
) -> Result<(String, String), Error> {
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.insert_extended_key_usage(usage);
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, authority)?.pem(), key.serialize_pem()))
}
