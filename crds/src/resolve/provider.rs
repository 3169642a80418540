//! Who answers: address, keys, certificates and routes of a `Provider`, as a job file says them.

use penstock_job::spec::{self, KeySource};

use super::mounted::{FileSource, Files, MountedFile};
use crate::provider::{ProviderSpec, SecretKey, Tls};

/// The section `provider` of the job file, and the files that it names.
pub(super) fn resolve(provider: &ProviderSpec) -> (spec::ProviderSpec, Vec<MountedFile>) {
    let mut files = Files::default();
    let resolved = spec::ProviderSpec {
        kind: provider.kind.into(),
        base_url: provider.base_url.clone(),
        api_version: provider.api_version.clone(),
        api_key: key(provider.api_key_secret_ref.as_ref(), &mut files),
        tls: tls(provider.tls.as_ref(), &mut files),
        routes: provider
            .routes
            .iter()
            .map(|route| {
                let resolved = spec::Route {
                    base_url: route.base_url.clone(),
                    api_key: key(route.api_key_secret_ref.as_ref(), &mut files),
                    tls: tls(route.tls.as_ref(), &mut files),
                };
                (route.model.clone(), resolved)
            })
            .collect(),
    };
    (resolved, files.all())
}

fn key(key: Option<&SecretKey>, files: &mut Files) -> Option<KeySource> {
    key.map(|key| KeySource::File(files.name(key.into())))
}

fn tls(tls: Option<&Tls>, files: &mut Files) -> spec::Tls {
    let authority = tls.and_then(|tls| tls.certificate_authority.as_ref()).and_then(|authority| {
        let config_map = authority.config_map_key_ref.as_ref().map(MountedFile::from);
        config_map.or_else(|| authority.secret_key_ref.as_ref().map(MountedFile::from))
    });
    let client = tls.and_then(|tls| tls.client_certificate_secret_ref.as_ref());
    let of_client = |key: &str, files: &mut Files| {
        client.map(|secret| files.name(MountedFile::new(FileSource::Secret(secret.name.clone()), key)))
    };
    spec::Tls {
        ca_file: authority.map(|file| files.name(file)),
        client_certificate_file: of_client("tls.crt", files),
        client_key_file: of_client("tls.key", files),
    }
}
