//! When within its turn a request leaves.
//!
//! Two jobs that pace themselves evenly on one key can lock to each other: the one takes what a bucket has just gained
//! each time a moment before the other asks for it, and the other starves for as long as both keep their pace. Routers
//! that drop what finds no room know it as the phase effect (Floyd and Jacobson, "On traffic phase effects in
//! packet-switched gateways", 1992), and the remedy is theirs: each sender adds a random part of the time that one
//! request takes.

/// The part of the time between two requests by which one is late at most.
const MOST: f64 = 0.5;
/// A bucket one second deep is the shallowest that is known. One of up to so many requests has no room to spare for
/// uneven ones, and every further request leaves room for this part of a turn.
const SHALLOW: f64 = 2.0;
const ROOM: f64 = 0.25;

/// Seconds by which the request after one that was sent at `sent_at` leaves later than its turn, in a lane of
/// `per_second` requests.
pub(super) fn offset(sent_at: f64, per_second: f64) -> f64 {
    (ROOM * (per_second - SHALLOW)).clamp(0.0, MOST) * drawn(sent_at) / per_second
}

/// A number from 0 to 1 that looks random: the finalizer of `SplitMix64` on the clock, which no two jobs read alike.
#[expect(clippy::cast_precision_loss, reason = "53 bits")]
pub(super) fn drawn(seconds: f64) -> f64 {
    let mut bits = seconds.to_bits().wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_leave_anywhere_in_half_of_their_turn() {
        let mut tenths = [0_u32; 10];
        for request in 0..10_000_u32 {
            let late = offset(f64::from(request) / 50.0, 50.0) * 50.0;
            assert!((0.0..0.5).contains(&late), "{late}");
            let tenth = tenths.iter_mut().zip(1_u32..).find(|(_, end)| late * 20.0 < f64::from(*end));
            *tenth.unwrap().0 += 1;
        }
        assert!(tenths.iter().all(|count| (850..1_150).contains(count)), "{tenths:?}");
    }

    #[test]
    fn a_shallow_bucket_gets_them_evenly() {
        assert!((0..100).all(|second| offset(f64::from(second), 2.0).abs() < f64::EPSILON));
        assert!(offset(1.0, 0.1).abs() < f64::EPSILON);
    }
}
