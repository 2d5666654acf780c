//! Warns of parameters that look like secrets. The message never repeats the value.

use super::super::call_site::sites;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::Step;
use crate::plan::draft::StepDraft;
use crate::wording::{quoted, spelled_plainly};
use serde_json::{Value, json};

pub(super) fn check(draft: &StepDraft, step: &Step, found: &mut Vec<Diagnostic>) {
    let reason = |name: &str, value: &Value| value.as_str().and_then(|text| reason(name, text));
    for site in sites(draft, step) {
        site.for_each_parameter(&|name, value| reason(name, value).is_some(), &mut |at, name, value| {
            found.extend(reason(name, value).map(|reason| looks_secret(at, name, reason)));
        });
    }
}

fn looks_secret(at: &str, name: &str, reason: &str) -> Diagnostic {
    let reference = json!({"secret": slug(name)});
    Diagnostic::warning("lint.looks_like_secret", at, format!("{} {reason}", quoted(name)))
        .hint(format!("refer to a secret by name: {reference}"))
        .fix(vec![PatchOperation::Replace { path: at.to_owned(), value: reference }])
}

fn reason(name: &str, text: &str) -> Option<&'static str> {
    if text.is_empty() || text.contains("{{") {
        return None;
    }
    if let Some(reason) = shape(text) {
        return Some(reason);
    }
    is_secret_name(name).then_some("is named like a secret and holds plain text")
}

fn is_secret_name(name: &str) -> bool {
    const HARMLESS: [&str; 6] =
        ["pagetoken", "nexttoken", "nextpagetoken", "continuationtoken", "synctoken", "idempotencytoken"];
    const ENDINGS: [&str; 10] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "apikey",
        "accesskey",
        "privatekey",
        "authorization",
        "credentials",
    ];
    let name = spelled_plainly(name);
    ENDINGS.iter().any(|ending| name.ends_with(ending)) && !HARMLESS.contains(&name.as_str())
}

/// Recognises secrets by their format.
fn shape(text: &str) -> Option<&'static str> {
    const PREFIXES: [(&str, usize); 12] = [
        ("sk-", 20),
        ("sk_live_", 20),
        ("rk_live_", 20),
        ("ghp_", 20),
        ("gho_", 20),
        ("ghs_", 20),
        ("github_pat_", 30),
        ("glpat-", 20),
        ("xoxb-", 20),
        ("xoxp-", 20),
        ("AIza", 35),
        ("AKIA", 20),
    ];
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        return Some("holds a private key");
    }
    let word = text.strip_prefix("Bearer ").or_else(|| text.strip_prefix("Basic ")).unwrap_or(text);
    if word.contains(char::is_whitespace) {
        return None;
    }
    if PREFIXES.iter().any(|(prefix, least)| word.starts_with(prefix) && word.len() >= *least) {
        return Some("begins like an access key");
    }
    if word.starts_with("eyJ") && word.split('.').count() == 3 && word.len() > 40 {
        return Some("is written like a signed token");
    }
    is_random(word).then_some("looks random enough to be a key")
}

/// Whether a word is as long as a key and mixes letters and digits randomly.
fn is_random(word: &str) -> bool {
    const BITS_MIN: f64 = 4.3;
    let bytes = word.as_bytes();
    let key_like = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte);
    if !(32..=128).contains(&bytes.len()) || !bytes.iter().all(key_like) {
        return false;
    }
    let classes: [fn(&u8) -> bool; 3] = [u8::is_ascii_uppercase, u8::is_ascii_lowercase, u8::is_ascii_digit];
    if !classes.iter().all(|class| bytes.iter().filter(|byte| class(byte)).count() >= 4) {
        return false;
    }
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let share = |count: &u32| f64::from(*count) / bytes.len() as f64;
    let bits: f64 = counts.iter().filter(|count| **count > 0).map(|count| -share(count) * share(count).log2()).sum();
    bits >= BITS_MIN
}

/// A valid name for a secret.
fn slug(name: &str) -> String {
    let slug: String =
        name.chars().take(128).map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' }).collect();
    if slug.is_empty() { "secret".to_owned() } else { slug.to_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognised_by_name_or_by_shape() {
        for (name, text, expected) in [
            ("password", "hunter2", true),
            ("db_password", "hunter2", true),
            ("apiKey", "abc", true),
            ("Authorization", "Bearer abc", true),
            ("note", "sk-abcdefghijklmnopqrstuvwx", true),
            ("note", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", true),
            ("note", "AKIAIOSFODNN7EXAMPLE", true),
            ("note", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN", true),
            ("note", "-----BEGIN RSA PRIVATE KEY-----\nMIIE", true),
            ("note", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY2024", true),
            ("password", "{{ inputs.password }}", false),
            ("password", "", false),
            ("page_token", "abc", false),
            ("token_count", "three", false),
            ("note", "a plain sentence about sk-nothing", false),
            ("hash", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", false),
            ("id", "123e4567-e89b-12d3-a456-426614174000", false),
            ("url", "https://example.com/Some/Long/Path/With/1234/Segments", false),
        ] {
            assert_eq!(reason(name, text).is_some(), expected, "{name}: {text}");
        }
    }
}
