//! The certificates of a cluster: one authority, and by it a key and a certificate for every part.

use std::{net::IpAddr, path::PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::{
    files::{self, FileError},
    layout::{API_SERVICE, CONTROL_PLANE, DOMAIN, Layout, NODES},
};

/// A certificate that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The library says why.
    #[error("sign a certificate: {0}")]
    Sign(#[from] rcgen::Error),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The files of one certificate.
#[derive(Debug)]
pub struct Certificate {
    /// PEM.
    pub certificate: PathBuf,
    /// PEM, PKCS #8; for tokens the key that signs them.
    pub key: PathBuf,
}

/// The files of the certificate of this name.
pub fn certificate(layout: &Layout, name: &str) -> Certificate {
    let file = |ending| layout.state(format!("certificates/{name}.{ending}"));
    Certificate { certificate: file("pem"), key: file("key") }
}

/// The certificate of the authority.
pub fn authority(layout: &Layout) -> PathBuf {
    certificate(layout, AUTHORITY).certificate
}

/// The key of tokens: not a certificate, but its two halves lie where those of a certificate would.
pub const TOKENS: &str = "tokens";

const AUTHORITY: &str = "authority";

/// Makes them all, unless they are there.
pub fn make(layout: &Layout) -> Result<(), CertificateError> {
    if authority(layout).is_file() {
        return Ok(());
    }
    let key = KeyPair::generate()?;
    let mut params = named("penstock-cluster", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let own = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);

    let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let mut names: Vec<_> = names.map(str::to_owned).into();
    names.push(format!("kubernetes.default.svc.{DOMAIN}"));
    let mut server = CertificateParams::new(names)?;
    server
        .subject_alt_names
        .extend([API_SERVICE, CONTROL_PLANE].map(|address| SanType::IpAddress(IpAddr::V4(address))));
    issue(layout, &issuer, "kube-apiserver", for_servers(server))?;

    issue(layout, &issuer, "admin", for_clients(named("admin", Some("system:masters"))))?;
    issue(layout, &issuer, "kubelet-client", for_clients(named("kube-apiserver", Some("system:masters"))))?;
    for name in ["kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns"] {
        issue(layout, &issuer, name, for_clients(named(&format!("system:{name}"), None)))?;
    }
    for node in NODES {
        let mut params = named(&format!("system:node:{}", node.name), Some("system:nodes"));
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(node.address()))];
        issue(layout, &issuer, node.name, for_clients(for_servers(params)))?;
    }

    let tokens = KeyPair::generate()?;
    write(layout, TOKENS, &tokens.public_key_pem(), &tokens)?;
    // The last one says that all are there.
    Ok(files::write(&authority(layout), own)?)
}

/// For the holder of this name, which Kubernetes takes for the user, and the organization for its group.
fn named(name: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params
}

fn for_servers(mut params: CertificateParams) -> CertificateParams {
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    params
}

fn for_clients(mut params: CertificateParams) -> CertificateParams {
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    params
}

fn issue(
    layout: &Layout,
    issuer: &Issuer<'_, KeyPair>,
    name: &str,
    mut params: CertificateParams,
) -> Result<(), CertificateError> {
    let key = KeyPair::generate()?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let signed = params.signed_by(&key, issuer)?;
    write(layout, name, &signed.pem(), &key)
}

fn write(
    layout: &Layout,
    name: &str,
    certificate_or_public_key: &str,
    key: &KeyPair,
) -> Result<(), CertificateError> {
    let files = certificate(layout, name);
    files::write(&files.certificate, certificate_or_public_key)?;
    Ok(files::write(&files.key, key.serialize_pem())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_certificate_and_they_are_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::at(folder.path());
        make(&layout).unwrap();
        for name in ["kube-apiserver", "admin", "node-a", "node-b", TOKENS] {
            let files = certificate(&layout, name);
            assert!(files.certificate.is_file() && files.key.is_file(), "{name}");
        }
        let first = files::read(&authority(&layout)).unwrap();
        make(&layout).unwrap();
        assert_eq!(files::read(&authority(&layout)).unwrap(), first);
    }
}
