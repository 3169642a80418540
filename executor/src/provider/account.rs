//! Whose limits a request uses up. Pure.

use std::fmt;

use penstock_job::{
    identity::hex,
    spec::{BaseUrl, ProviderKind},
};
use sha2::{Digest, Sha256};

/// Bytes of the digest that name an account: no two of one user's collide.
const DIGEST_BYTES: usize = 16;

/// One key at one address of one kind of provider, by a name that does not tell the key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account(Box<str>);

impl Account {
    /// The account of a key; a server that asks for none has one account for everybody.
    pub(crate) fn new(kind: ProviderKind, base_url: &BaseUrl, key: Option<&[u8]>) -> Self {
        let mut digest = Sha256::new();
        // A URL holds no zero byte, so no two pairs give the same bytes.
        digest.update(base_url.as_str());
        digest.update([0]);
        digest.update(key.unwrap_or_default());
        Self(format!("{kind}-{}", hex(&digest.finalize()[..DIGEST_BYTES])).into())
    }

    /// The name: the kind of provider, and a part of a SHA-256 over address and key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_key_at_each_address_has_a_name_of_its_own_that_does_not_tell_the_key() {
        let [one, other] = ["http://one", "http://other"].map(|url| BaseUrl::parse(url).unwrap());
        let kind = ProviderKind::OpenAi;
        let accounts = [
            Account::new(kind, &one, Some(b"sk-secret")),
            Account::new(kind, &one, Some(b"sk-another")),
            Account::new(kind, &one, None),
            Account::new(kind, &other, Some(b"sk-secret")),
            Account::new(ProviderKind::OpenAiCompatible, &one, Some(b"sk-secret")),
        ];
        assert_eq!(accounts.iter().collect::<BTreeSet<_>>().len(), accounts.len());
        assert_eq!(accounts[0], Account::new(kind, &one, Some(b"sk-secret")));
        assert!(accounts[0].as_str().starts_with("openai-"), "{}", accounts[0]);
        assert!(!accounts[0].as_str().contains("secret"));
    }
}
