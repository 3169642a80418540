//! Draws that depend on nothing but their words.

/// A number in 0..1.
pub(crate) fn draw(words: &[&[u8]], times: u64) -> f64 {
    // FNV-1a over the words, then the finaliser of SplitMix64, which spreads what differs in few bits.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in words.iter().flat_map(|word| word.iter()).chain(&times.to_le_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
    let fraction = ((hash ^ (hash >> 31)) >> 11) as f64;
    fraction / 2_f64.powi(53)
}
