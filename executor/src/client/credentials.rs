//! Whom a client trusts and what it shows of itself: the TLS files of a route.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use http::Uri;
use penstock_job::spec::Tls;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt;
use thiserror::Error;

/// TLS files that cannot be used.
#[derive(Debug, Error)]
pub enum ClientError {
    /// A file cannot be read.
    #[error("read the TLS file {path}: {source}; make it readable, or correct its path in `tls`")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file does not hold certificates, or a key, in PEM form.
    #[error("use the TLS file {path}: it holds no {wanted} in PEM form; name the right file in `tls`")]
    Content {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        wanted: &'static str,
    },
    /// One half of a client certificate is missing.
    #[error(
        "use a client certificate: `client_certificate_file` and `client_key_file` go together; name both or none"
    )]
    HalfACertificate,
    /// Nobody here can speak to the proxy.
    #[error(
        "use the proxy {0}: it is not spoken to in http or https; correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"
    )]
    Proxy(Uri),
    /// A text holds no certificates in PEM form.
    #[error(
        "use the certificate authorities in `{0}`: it holds no certificates in PEM form; correct the text"
    )]
    Text(&'static str),
    /// The settings as a whole are refused.
    #[error(
        "set up TLS: {0}; see that certificate and key belong together, and that the system has CA certificates"
    )]
    Build(String),
}

/// The contents of the TLS files. The default trusts whom the system trusts and shows nothing.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    authorities: Option<RootCertStore>,
    identity: Option<Identity>,
}

/// A client certificate with those above it, and its key.
#[derive(Debug)]
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Credentials {
    pub(crate) fn read(tls: &Tls) -> Result<Self, ClientError> {
        let authorities = tls.ca_file.as_deref().map(authorities).transpose()?;
        let identity = match (&tls.client_certificate_file, &tls.client_key_file) {
            (Some(certificate), Some(key)) => Some(identity(certificate, key)?),
            (None, None) => None,
            _ => return Err(ClientError::HalfACertificate),
        };
        Ok(Self { authorities, identity })
    }

    /// Trusts the certificate authorities in a PEM text, and shows nothing.
    pub(crate) fn trusting(authorities: &str) -> Result<Self, ClientError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authorities.as_bytes()).collect();
        let roots = found.ok().and_then(roots).ok_or(ClientError::Text("report.ca"))?;
        Ok(Self { authorities: Some(roots), identity: None })
    }

    /// The settings for connections over which one of `protocols` is spoken, the first one rather.
    pub(crate) fn config(self, protocols: &[&[u8]]) -> Result<ClientConfig, ClientError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(&error))?;
        let builder = match self.authorities {
            Some(roots) => builder.with_root_certificates(roots),
            None => builder.with_platform_verifier().map_err(|error| refused(&error))?,
        };
        let mut config = match self.identity {
            Some(Identity { chain, key }) => {
                builder.with_client_auth_cert(chain, key).map_err(|error| refused(&error))?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(config)
    }
}

/// Settings for a connector that makes no TLS connection: they trust nobody, and read no file.
pub(crate) fn plain() -> Result<ClientConfig, ClientError> {
    Credentials { authorities: Some(RootCertStore::empty()), identity: None }.config(&[])
}

fn refused(error: &rustls::Error) -> ClientError {
    ClientError::Build(error.to_string())
}

fn authorities(path: &Path) -> Result<RootCertStore, ClientError> {
    roots(certificates(path)?).ok_or_else(|| without(path, "certificates"))
}

/// Those of the certificates that can be trusted, if there is one.
fn roots(certificates: Vec<CertificateDer<'static>>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    (added > 0).then_some(roots)
}

fn identity(certificate: &Path, key: &Path) -> Result<Identity, ClientError> {
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&content(key)?).map_err(|_| without(key, "private key"))?;
    Ok(Identity { chain, key })
}

/// The certificates in a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let content = content(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| without(path, "certificates"))
}

fn without(path: &Path, wanted: &'static str) -> ClientError {
    ClientError::Content { path: path.to_owned(), wanted }
}

fn content(path: &Path) -> Result<Vec<u8>, ClientError> {
    fs::read(path).map_err(|source| ClientError::File { path: path.to_owned(), source })
}
