//! Secrets: made of chance, kept as hashes, compared without telling how far they agree.

use rutter_core::hash::Hash;

const PREFIX: &str = "rutter_";
/// 256 bits.
const BYTES: usize = 32;
const ID_BYTES: usize = 6;

/// What nobody guesses: 64 hex digits.
pub fn fresh() -> String {
    hex(&chance::<BYTES>())
}

/// A name to look something up by; it is no secret.
pub fn id() -> String {
    hex(&chance::<ID_BYTES>())
}

/// The name a secret goes by, and what nobody guesses of it: `rutter_NAME_SECRET`.
pub fn named(name: &str, secret: &str) -> String {
    format!("{PREFIX}{name}_{secret}")
}

pub fn name_of(secret: &str) -> Option<&str> {
    let (name, chance) = secret.strip_prefix(PREFIX)?.rsplit_once('_')?;
    is_fresh(chance).then_some(name)
}

/// Has as much chance in it as those that are made here.
pub fn is_made_here(secret: &str) -> bool {
    name_of(secret).is_some()
}

pub fn is_fresh(text: &str) -> bool {
    text.len() == BYTES * 2 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// How long it takes says nothing about where they differ.
pub fn same(one: &Hash, other: &Hash) -> bool {
    let differing = one.0.iter().zip(other.0).fold(0, |differing, (one, other)| differing | (one ^ other));
    std::hint::black_box(differing) == 0
}

fn chance<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has chance to give");
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_long_and_made_of_chance_counts_as_made_here() {
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
