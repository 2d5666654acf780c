//! Stored bytes that are refused. The golden files have those that are accepted.

use super::*;
use proptest::prelude::*;

const BYTES: &str = r#"{"v":1,"tenant":"acme","execution":"exec_1","seq":3,"at":1700000000000,"actor":{"party":"rutter","name":"rutter"},"event":{"paused":{"reason":"lunch"}}}"#;

#[test]
fn bytes_are_read_and_written_back() {
    let stored = decode(BYTES.as_bytes()).unwrap();
    assert_eq!((stored.seq, stored.tenant.as_str(), stored.execution.as_str()), (3, "acme", "exec_1"));
    assert_eq!(stored.encode(), BYTES.as_bytes());
}

#[test]
fn a_version_that_is_not_known_is_named() {
    for (version, error) in [
        ("2", Error::UnknownVersion(2)),
        ("4294967296", Error::UnknownVersion(4_294_967_296)),
        ("0", Error::NoVersion),
        ("01", Error::NoVersion),
        ("-1", Error::NoVersion),
        ("1.0", Error::NoVersion),
        (" 1", Error::NoVersion),
        ("\"1\"", Error::NoVersion),
        ("", Error::NoVersion),
        ("18446744073709551616", Error::NoVersion),
    ] {
        let bytes = BYTES.replacen("\"v\":1", &format!("\"v\":{version}"), 1);
        assert_eq!(decode(bytes.as_bytes()), Err(error), "{version}");
    }
    for bytes in ["", "{", "{}", "[]", r#"{"tenant":"acme","v":1}"#, " {\"v\":1,"] {
        assert_eq!(decode(bytes.as_bytes()), Err(Error::NoVersion), "{bytes}");
    }
}

#[test]
fn anything_unexpected_is_refused() {
    for (from, to) in [
        ("\"seq\":3", "\"seq\":3,\"extra\":1"),
        ("\"seq\":3", "\"seq\":3,\"seq\":3"),
        ("\"seq\":3", "\"seq\":-3"),
        ("\"seq\":3", "\"seq\":3.0"),
        ("\"seq\":3,", ""),
        ("\"name\":\"rutter\"", "\"name\":\"rutter\",\"mood\":\"good\""),
        ("\"party\":\"rutter\"", "\"party\":\"robot\""),
        ("\"reason\":\"lunch\"", "\"reason\":\"lunch\",\"until\":1"),
        ("\"reason\":\"lunch\"", ""),
        ("\"paused\"", "\"vanished\""),
        ("\"v\":1", "\"v\":1,\"v\":1"),
        ("}}}", "}}} {}"),
        ("}}}", "}}"),
    ] {
        let bytes = BYTES.replacen(from, to, 1);
        assert_ne!(bytes, BYTES);
        assert!(matches!(decode(bytes.as_bytes()), Err(Error::Malformed { version: 1, .. })), "{bytes}");
    }
}

#[test]
fn deep_nesting_is_refused_and_not_suffered() {
    let deep = BYTES.replacen("\"lunch\"", &"[".repeat(200_000), 1);
    assert!(matches!(decode(deep.as_bytes()), Err(Error::Malformed { .. })));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = decode(&bytes);
        let _ = decode(&[b"{\"v\":1,", bytes.as_slice()].concat());
    }

    #[test]
    fn altered_bytes_never_panic(at in 0..BYTES.len(), byte: u8, cut in 0..BYTES.len()) {
        let mut bytes = BYTES.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = decode(&bytes);
        let _ = decode(&bytes[..cut]);
    }
}
