//! Randomness that does not depend on the order of arrival.
//!
//! Owns the identity of a prompt and the random generator that belongs to one prompt, one sight of it and one
//! purpose. Nothing here keeps state, so two servers with one seed decide alike.

use std::fmt;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

/// The first eight bytes of the SHA-256 of a prompt, written as 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PromptHash(pub(crate) u64);

impl PromptHash {
    pub(crate) fn of(prompt: &str) -> Self {
        Self(first_eight_bytes(prompt.as_bytes()))
    }
}

impl fmt::Display for PromptHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// What a draw is for. Each purpose has its own stream, so that turning on a fault changes no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Whether this attempt meets a fault.
    AttemptFault = 1,
    /// Whether this prompt meets a fault, whenever it is asked.
    PromptFault,
    /// How long the answer takes.
    Latency,
    /// How long the answer is.
    Length,
    /// What the answer says.
    Content,
    /// Where in a fixed window the server starts.
    WindowPhase,
}

/// The generator for one sight of one prompt. A draw that must be the same at each sight passes `times_seen` 0.
pub(crate) fn draw(seed: u64, prompt: PromptHash, times_seen: u32, purpose: Purpose) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&prompt.0.to_le_bytes());
    key[16..20].copy_from_slice(&times_seen.to_le_bytes());
    key[20] = purpose as u8;
    ChaCha8Rng::from_seed(key)
}

/// A key that may be shown: the first eight hex digits of its SHA-256.
pub(crate) fn fingerprint(secret: &str) -> String {
    format!("{:08x}", first_eight_bytes(secret.as_bytes()) >> 32)
}

fn first_eight_bytes(bytes: &[u8]) -> u64 {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let (first, _) = digest.split_first_chunk::<8>().expect("invariant: a SHA-256 has 32 bytes");
    u64::from_be_bytes(*first)
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn a_prompt_hash_is_the_start_of_its_sha256() {
        // From the examples of FIPS 180-2: SHA-256("abc") = ba7816bf 8f01cfea ...
        assert_eq!(PromptHash::of("abc").to_string(), "ba7816bf8f01cfea");
        assert_eq!(fingerprint("abc"), "ba7816bf");
    }

    #[test]
    fn each_part_of_the_key_changes_the_draw() {
        let prompt = PromptHash::of("a");
        let first: u64 = draw(1, prompt, 0, Purpose::Latency).random();
        assert_eq!(first, draw(1, prompt, 0, Purpose::Latency).random::<u64>());
        for other in [
            draw(2, prompt, 0, Purpose::Latency),
            draw(1, PromptHash::of("b"), 0, Purpose::Latency),
            draw(1, prompt, 1, Purpose::Latency),
            draw(1, prompt, 0, Purpose::Length),
        ] {
            let mut other = other;
            assert_ne!(first, other.random::<u64>());
        }
    }
}
