//! The certificate authority of the progress call: made once, kept in a Secret, handed to every executor in its job
//! file. Its certificates do not expire; who deletes the Secret and restarts the operator has a new one, and executors
//! that run keep the old one until their pod is replaced.

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use thiserror::Error as ThisError;

use crate::call::{CallError, bounded};

const CERTIFICATE: &str = "ca.crt";
const KEY: &str = "ca.key";

/// Why there is no authority. Messages read after "failed to".
#[derive(Debug, ThisError)]
pub enum AuthorityError {
    /// The Secret cannot be read or made.
    #[error(
        "keep the certificate authority in the Secret {name}: {source}; let the operator get and create it"
    )]
    Secret {
        /// Its name.
        name: String,
        /// What the API server says.
        source: CallError,
    },
    /// The Secret holds something else.
    #[error(
        "read the certificate authority in the Secret {0}: it has no `ca.crt` and `ca.key` in PEM form; delete the Secret and restart the operator"
    )]
    Content(String),
    /// Keys or certificates cannot be made.
    #[error("make certificates: {0}; report this")]
    Make(String),
}

/// The authority: its certificate, and what signs with it.
#[expect(missing_debug_implementations, reason = "it holds a key")]
pub struct Authority {
    /// Its certificate in PEM form, which executors trust.
    pub certificate: String,
    key: String,
}

impl Authority {
    /// The one in the Secret `name`, which is made if it is not there. Two replicas that make it at once agree on the
    /// one that was first.
    pub async fn keep(client: &Client, namespace: &str, name: &str) -> Result<Self, AuthorityError> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let wrap = |source| AuthorityError::Secret { name: name.to_owned(), source };
        if let Some(secret) = bounded(secrets.get_opt(name)).await.map_err(wrap)? {
            return Self::read(&secret, name);
        }
        let made = Self::make()?;
        let data = [(CERTIFICATE, &made.certificate), (KEY, &made.key)];
        let secret = Secret {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            data: Some(data.map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec()))).into()),
            ..Secret::default()
        };
        match bounded(secrets.create(&PostParams::default(), &secret)).await {
            Ok(_) => Ok(made),
            Err(error) if error.is_conflict() => {
                Self::read(&bounded(secrets.get(name)).await.map_err(wrap)?, name)
            }
            Err(error) => Err(wrap(error)),
        }
    }

    fn make() -> Result<Self, AuthorityError> {
        let key = KeyPair::generate().map_err(|error| AuthorityError::Make(error.to_string()))?;
        let certificate =
            parameters().self_signed(&key).map_err(|error| AuthorityError::Make(error.to_string()))?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    fn read(secret: &Secret, name: &str) -> Result<Self, AuthorityError> {
        let text = |key: &str| {
            let bytes = secret.data.as_ref()?.get(key)?;
            String::from_utf8(bytes.0.clone()).ok()
        };
        let (Some(certificate), Some(key)) = (text(CERTIFICATE), text(KEY)) else {
            return Err(AuthorityError::Content(name.to_owned()));
        };
        KeyPair::from_pem(&key).map_err(|_| AuthorityError::Content(name.to_owned()))?;
        Ok(Self { certificate, key })
    }

    /// How a server at one of `names` speaks TLS.
    pub fn server(&self, names: &[String]) -> Result<ServerConfig, AuthorityError> {
        let make = |error: rcgen::Error| AuthorityError::Make(error.to_string());
        let authority = KeyPair::from_pem(&self.key).map_err(make)?;
        let issuer = Issuer::new(parameters(), authority);
        let key = KeyPair::generate().map_err(make)?;
        let certificate =
            CertificateParams::new(names).map_err(make)?.signed_by(&key, &issuer).map_err(make)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key)
            })
            .map_err(|error| AuthorityError::Make(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// What the authority's certificate says. Always the same, so that the key alone is enough to sign with it again.
fn parameters() -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, "penstock-operator");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    parameters
}
