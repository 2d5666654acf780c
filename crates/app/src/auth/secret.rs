//! Secrets: random, stored as hashes, compared in constant time.

use rutter_core::encoding::hex;
use rutter_core::hash::Hash;

const PREFIX: &str = "rutter_";
/// 256 bits.
const BYTES: usize = 32;
const ID_BYTES: usize = 6;

/// A secret that cannot be guessed: 64 hex digits.
pub fn fresh() -> String {
    hex(&chance::<BYTES>())
}

/// An id to look something up by; it is not secret.
pub fn id() -> String {
    hex(&chance::<ID_BYTES>())
}

/// A secret with the name it is looked up by: `rutter_NAME_SECRET`.
pub fn named(name: &str, secret: &str) -> String {
    format!("{PREFIX}{name}_{secret}")
}

pub fn name_of(secret: &str) -> Option<&str> {
    let (name, chance) = secret.strip_prefix(PREFIX)?.rsplit_once('_')?;
    is_fresh(chance).then_some(name)
}

/// Whether it has as many random bits as the secrets generated here.
pub fn is_made_here(secret: &str) -> bool {
    name_of(secret).is_some()
}

pub fn is_fresh(text: &str) -> bool {
    text.len() == BYTES * 2 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Compares in constant time.
pub fn same(one: &Hash, other: &Hash) -> bool {
    let differing = one.0.iter().zip(other.0).fold(0, |differing, (one, other)| differing | (one ^ other));
    std::hint::black_box(differing) == 0
}

fn chance<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_random_secrets_count_as_made_here() {
        let secret = fresh();
        assert!(is_made_here(&named("agent", &secret)) && is_made_here(&named(&id(), &secret)));
        for other in [
            secret.clone(),
            format!("rutter_{secret}"),
            named("agent", &secret[1..]),
            named("agent", &format!("{secret}0")),
            named("agent", &secret.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A")),
        ] {
            assert!(!is_made_here(&other), "{other}");
        }
    }

    #[test]
    fn hashes_are_the_same_or_not() {
        let one = Hash::of(&[b"one"]);
        assert!(same(&one, &one));
        for at in 0..32 {
            let mut other = one;
            other.0[at] ^= 1;
            assert!(!same(&one, &other));
        }
    }
}
