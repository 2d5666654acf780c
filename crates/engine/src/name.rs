//! New ids: sortable by time, impossible to guess.

use rutter_core::time::Timestamp;

/// Crockford's base 32: no letter that looks like a digit.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// `prefix_` and 26 characters: 48 bits of time, 80 random bits.
pub fn fresh(prefix: &str, now: Timestamp) -> String {
    let mut chance = [0; 10];
    fill(&mut chance);
    let low = chance.iter().fold(0u128, |low, byte| (low << 8) | u128::from(*byte));
    let bits = (u128::from(now.0.unsigned_abs() & 0xffff_ffff_ffff) << 80) | low;
    let digits = (0..26).rev().map(|at| char::from(DIGITS[((bits >> (at * 5)) & 31) as usize]));
    format!("{prefix}_{}", digits.collect::<String>())
}

/// Fills with random bytes.
pub(crate) fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("every supported system has a source of random bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time_and_never_repeat() {
        let names: Vec<String> = (0..1_000).map(|at| fresh("exec", Timestamp(1_700_000_000_000 + at))).collect();
        assert!(names.is_sorted());
        assert!(names.iter().all(|name| name.len() == "exec_".len() + 26));
        assert_ne!(fresh("exec", Timestamp(7)), fresh("exec", Timestamp(7)));
    }
}
