//! What documents that several jobs read and write have in common: the mark of their format, and which of the rates and
//! names that others wrote are believed.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::event::Dimension;

/// No key sends more requests a minute than this: a job that believed it would storm the provider.
pub(crate) const HIGHEST_RPM: f64 = 1e7;

/// No key is allowed more tokens a minute.
const HIGHEST_TPM: f64 = 1e12;

/// The longest name of a model that is noted, in bytes. It comes from a line of the input, and may be anything.
const LONGEST_NAME: usize = 512;

/// Why a shared document cannot be read. What it held is lost, nothing else: it is begun anew.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Another version, or another program, has written it.
    #[error("read shared rates: their format is {found}, not `{expected}`, so they are begun anew")]
    UnknownFormat {
        /// What stands there.
        found: String,
        /// What this version reads.
        expected: &'static str,
    },
    /// It is no JSON, or does not follow its format.
    #[error("read shared rates: {0}, so they are begun anew")]
    Damaged(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct Tagged<'a, D> {
    format: &'static str,
    #[serde(flatten)]
    document: &'a D,
}

pub(crate) fn read<D: DeserializeOwned>(expected: &'static str, bytes: &[u8]) -> Result<D, DocumentError> {
    let value: Value = serde_json::from_slice(bytes)?;
    match value.get("format") {
        Some(found) if found == expected => Ok(D::deserialize(value)?),
        Some(found) => Err(DocumentError::UnknownFormat { found: found.to_string(), expected }),
        None => Err(DocumentError::UnknownFormat { found: "absent".to_owned(), expected }),
    }
}

pub(crate) fn write<D: Serialize>(format: &'static str, document: &D) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(&Tagged { format, document })
        .expect("invariant: a shared document has string keys only");
    bytes.push(b'\n');
    bytes
}

/// Whether this can be the rate of a job that sends, in requests a minute.
pub(crate) fn is_rate(rpm: f64) -> bool {
    rpm > 0.0 && rpm <= HIGHEST_RPM
}

/// Whether this can be what a key allows of a quantity in a minute.
pub(crate) fn is_limit(dimension: Dimension, per_minute: f64) -> bool {
    match dimension {
        Dimension::Requests => is_rate(per_minute),
        Dimension::Tokens | Dimension::InputTokens | Dimension::OutputTokens => {
            per_minute > 0.0 && per_minute <= HIGHEST_TPM
        }
    }
}

/// Whether a model of this name is noted.
pub(crate) fn is_noted(model: &str) -> bool {
    model.len() <= LONGEST_NAME
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn only_the_known_format_is_read() {
        type Plain = BTreeMap<String, Value>;
        let written = write("penstock.test/1", &Plain::from([("a".to_owned(), 1.into())]));
        assert_eq!(written, b"{\"format\":\"penstock.test/1\",\"a\":1}\n");
        assert!(read::<Plain>("penstock.test/1", &written).is_ok());
        for (bytes, says) in [
            (&b"{\"format\":\"penstock.test/2\"}"[..], "\"penstock.test/2\", not `penstock.test/1`"),
            (b"[1]", "absent"),
            (b"{", "EOF"),
        ] {
            let refused = read::<Plain>("penstock.test/1", bytes).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
    }
}
