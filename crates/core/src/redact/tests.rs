//! Canaries in every encoding, keys at every position, ordinary text that must stay.

use super::*;
use crate::tool::FailureCategory;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

const CANARY: &str = "correct>horse?42";

fn canary_redactor() -> Redactor {
    redactor(&[("canary", CANARY)])
}

fn redactor(secrets: &[(&str, &str)]) -> Redactor {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Redactor::standard().with_secrets(secrets.iter().map(owned))
}

fn percent_all(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn percent_some(text: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    };
    text.bytes().map(escape).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// As in a JSON string, without its quotes.
fn json_escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("text is JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

fn json_escaped_to_ascii(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// Every encoding of a secret that must be recognised.
fn writings(secret: &str) -> Vec<String> {
    vec![
        secret.to_owned(),
        BASE64_STANDARD.encode(secret),
        BASE64_STANDARD_NO_PAD.encode(secret),
        BASE64_URL_SAFE.encode(secret),
        BASE64_URL_SAFE_NO_PAD.encode(secret),
        BASE64_STANDARD.encode(format!("a{secret}")),
        BASE64_STANDARD.encode(format!("ab{secret}c")),
        BASE64_URL_SAFE.encode(format!("abcd{secret}cd")),
        BASE64_URL_SAFE_NO_PAD.encode(format!("user:{secret}")),
        percent_some(&BASE64_STANDARD.encode(secret)),
        percent_all(secret),
        percent_some(secret),
        percent_some(&percent_some(secret)),
        percent_some(secret).replace("%20", "+"),
        json_escaped(secret),
        json_escaped(&json_escaped(secret)),
        json_escaped_to_ascii(secret),
        json_escaped(secret).replace('/', "\\/"),
        hex(secret),
        hex(secret).to_uppercase(),
    ]
}

#[test]
fn a_known_secret_is_found_in_every_encoding_and_position() {
    for secret in [CANARY, "pa\"ss\\wörd/1", "two words & more", "🔑🔑🔑🔑🔑🔑", "100%25 sure", "aaaaaa"] {
        let redactor = redactor(&[("canary", secret)]);
        for writing in writings(secret) {
            for (before, behind) in [("", ""), ("key: ", ""), ("", " is it"), ("(", ")"), ("a=", "&b=é")] {
                let redacted = redactor.text(&format!("{before}{writing}{behind}")).into_owned();
                assert!(redacted.contains("[redacted:canary]"), "{writing} became {redacted}");
                assert!(redacted.starts_with(before) && redacted.ends_with(behind), "{redacted}");
                assert!(!redacted.contains(secret), "{redacted}");
            }
        }
    }
}

#[test]
fn only_the_secret_is_cut_out() {
    let redactor = canary_redactor();
    let standard = |text: &str| BASE64_STANDARD.encode(text);
    for (text, expected) in [
        (CANARY.to_owned(), "[redacted:canary]"),
        (format!("a{CANARY}b"), "a[redacted:canary]b"),
        (format!("{CANARY}{CANARY}"), "[redacted:canary][redacted:canary]"),
        (format!("é{CANARY}é"), "é[redacted:canary]é"),
        (format!("x={}&y=1", percent_some(CANARY)), "x=[redacted:canary]&y=1"),
        (format!("%20{}%20", percent_all(CANARY)), "%20[redacted:canary]%20"),
        (format!("\\n{}\\n", json_escaped_to_ascii(CANARY)), "\\n[redacted:canary]\\n"),
        (format!("0x{}.", hex(CANARY)), "0x[redacted:canary]."),
        (standard(CANARY), "[redacted:canary]"),
        (standard(&format!("abc{CANARY}")), "YWJj[redacted:canary]"),
        // The base64 digits it shares with its neighbours are removed too.
        (standard(&format!("ab{CANARY}xyz")), "YW[redacted:canary]eHl6"),
    ] {
        assert_eq!(redactor.text(&text), expected, "{text}");
    }
}

#[test]
fn secrets_within_each_other_go_as_one() {
    let redactor = redactor(&[("short", "abcdef"), ("long", "abcdefgh"), ("next", "ghijkl")]);
    for (text, expected) in [
        ("abcdef.", "[redacted:short]."),
        ("abcdefgh.", "[redacted:long]."),
        ("abcdefghijkl.", "[redacted:long]."),
        ("abcdefghi.", "[redacted:long]i."),
        ("ghijklabcdef.", "[redacted:next][redacted:short]."),
    ] {
        assert_eq!(redactor.text(text), expected);
    }
}

#[test]
fn a_secret_that_appears_after_a_redaction_is_found_too() {
    let redactor = redactor(&[("one", "abcdef%2"), ("two", "5xyzé!")]);
    assert_eq!(redactor.text("abcdef%25xyz%C3%A9!"), "[redacted:one][redacted:two]");
}

#[test]
fn values_too_short_to_tell_from_text_are_not_searched() {
    let redactor = redactor(&[("empty", ""), ("blank", "          "), ("short", "abcde"), ("padded", " \tabcdf\n")]);
    assert_eq!(redactor.text("abcde, abcdf and           "), "abcde, abcdf and           ");
    let redactor = redactor.with_secrets([("umlauts".to_owned(), "äöüäöü".to_owned())]);
    assert_eq!(redactor.text("abcde äöüäöü"), "abcde [redacted:umlauts]");
}

#[test]
fn space_around_a_value_does_not_count() {
    assert_eq!(redactor(&[("file", " from-a-file\n")]).text("(from-a-file)"), "([redacted:file])");
}

#[test]
fn a_name_that_contains_the_value_is_not_used() {
    for (name, value) in [("hunter22", "hunter22"), ("my_hunter22", "hunter22"), ("a b", "hunter22"), ("", "hunter22")]
    {
        assert_eq!(redactor(&[(name, value)]).text("is hunter22"), "is [redacted:secret]", "{name}");
    }
}

#[test]
fn a_made_up_marker_hides_nothing() {
    let redactor = canary_redactor();
    let expected = "[redacted:[redacted:canary]]";
    assert_eq!(redactor.text(&format!("[redacted:{CANARY}]")), expected);
    assert_eq!(redactor.text(expected), expected);
}

#[test]
fn words_of_markers_can_be_secrets_too() {
    let redactor = redactor(&[("one", "redacted"), ("two", "secret"), ("three", "]and on")]);
    let once = redactor.text("a redacted secret]and on").into_owned();
    assert_eq!(once, "a [redacted:one] [redacted:two][redacted:three]");
    assert_eq!(redactor.text(&once), once);
}

/// Built at run time, so that no secret scanner takes them for real.
fn keys() -> Vec<(&'static str, String)> {
    let body = |length: usize| "a1B2c3D4e5".chars().cycle().take(length).collect::<String>();
    let prefixed = |prefix: &str, length: usize| format!("{prefix}{}", body(length));
    let pem = |title: &str| format!("-----BEGIN {title}-----\nMIIE{}\n-----END {title}-----", body(64));
    let jwt = format!("eyJ{}.eyJ{}.{}", body(17), body(30), body(43));
    let mut keys = vec![
        ("private key", pem("PRIVATE KEY")),
        ("private key", pem("RSA PRIVATE KEY")),
        ("private key", pem("OPENSSH PRIVATE KEY")),
        ("private key", pem("PGP PRIVATE KEY BLOCK")),
        ("private key", pem("EC PRIVATE KEY").replace('\n', "\\n")),
        ("jwt", jwt),
        ("jwt", format!("eyJ{}..{}.{}.{}", body(17), body(16), body(30), body(22))),
        ("aws key", format!("AKIA{}", "Q7".repeat(8))),
        ("aws key", format!("ASIA{}", "Q7".repeat(8))),
    ];
    for (label, prefix, length) in [
        ("github token", "ghp_", 36),
        ("github token", "gho_", 36),
        ("github token", "ghu_", 36),
        ("github token", "ghs_", 36),
        ("github token", "ghr_", 36),
        ("github token", "github_pat_", 82),
        ("gitlab token", "glpat-", 20),
        ("slack token", "xoxa-2-", 20),
        ("slack token", "xoxb-17653672481-", 24),
        ("slack token", "xoxp-1-", 20),
        ("slack token", "xoxr-1-", 20),
        ("slack token", "xoxs-1-", 20),
        ("stripe key", "sk_live_", 24),
        ("stripe key", "rk_live_", 24),
        ("stripe key", "sk_test_", 24),
        ("model key", "sk-", 48),
        ("model key", "sk-proj-", 60),
        ("model key", "sk-ant-api03-", 60),
        ("google key", "AIza", 35),
        ("npm token", "npm_", 36),
    ] {
        keys.push((label, prefixed(prefix, length)));
    }
    keys
}

#[test]
fn keys_are_recognised_by_format_at_every_position() {
    let redactor = Redactor::standard();
    for (label, key) in keys() {
        for (before, behind) in [
            ("", ""),
            ("key ", ""),
            ("", " is it"),
            ("it is ", ", and"),
            ("key=", "&x=1"),
            ("(", ")"),
            ("\"", "\""),
            ("line\\n", "\\nline"),
            ("q%3D", "%26"),
            ("é", "é"),
            ("ends with ", ". Next"),
            ("ends with ", "."),
        ] {
            let expected = format!("{before}[redacted:{label}]{behind}");
            assert_eq!(redactor.text(&format!("{before}{key}{behind}")), expected, "{key}");
        }
        let twice = format!("{key} {key}");
        assert_eq!(redactor.text(&twice), format!("[redacted:{label}] [redacted:{label}]"));
    }
}

#[test]
fn credentials_are_cut_out_of_their_context() {
    let basic = BASE64_STANDARD.encode("user:hunter2");
    for (text, expected) in [
        ("Bearer abc123def456", "Bearer [redacted:bearer token]"),
        ("sent bearer   abCdefgh, got 401", "sent bearer   [redacted:bearer token], got 401"),
        ("BEARER abcdefghijklmnopqrstuvwxyz", "BEARER [redacted:bearer token]"),
        ("Authorization: Bearer abc", "Authorization: Bearer [redacted:bearer token]"),
        ("{\"authorization\":\"Bearer abc\"}", "{\"authorization\":\"Bearer [redacted:bearer token]\"}"),
        ("-H 'authorization: basic x'", "-H 'authorization: basic [redacted:basic credentials]'"),
        (&format!("Basic {basic}"), "Basic [redacted:basic credentials]"),
        (&format!("basic {}.", basic.trim_end_matches('=')), "basic [redacted:basic credentials]."),
        ("Basic dTpw", "Basic [redacted:basic credentials]"),
        ("postgres://app:hunter2@db:5432/x", "postgres://app:[redacted:url password]@db:5432/x"),
        ("redis://:hunter2@cache", "redis://:[redacted:url password]@cache"),
        ("see https://a:p@ss:w@host/x?y and", "see https://a:[redacted:url password]@host/x?y and"),
        ("http://a:b@c http://d:e@f", "http://a:[redacted:url password]@c http://d:[redacted:url password]@f"),
        ("x -----BEGIN PRIVATE KEY-----\nMIIE cut of", "x [redacted:private key]"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIV", "[redacted:private key]"),
    ] {
        assert_eq!(Redactor::standard().text(text), expected, "{text}");
    }
}

#[test]
fn ordinary_text_stays() {
    let redactor = canary_redactor();
    let short = |prefix: &str| format!("{prefix}{}", "a1".repeat(4));
    let shorts = ["ghp_", "github_pat_", "glpat-", "xoxb-", "sk_live_", "sk-", "sk-ant-", "AIza", "npm_"].map(short);
    let within = keys().into_iter().filter(|(label, _)| *label != "private key").map(|(_, key)| format!("x{key}"));
    let texts = [
        "",
        "correct>horse?4",
        "correct horse 42",
        "the bearer of bad news",
        "Bearer token",
        "Bearer authentication is required",
        "WWW-Authenticate: Bearer realm=\"api\", error=\"invalid_token\"",
        "Basic understanding, basic authentication",
        "Basic dXNlcg==",
        "a risk-averse desk-sharing task-force-of-twenty-people",
        "sk-learn-for-the-impatient-and-the-curious",
        "npm_config_registry_and_other_settings_of_it",
        "AKIA is a prefix, ASIA a continent",
        "AKIAQ7Q7Q7Q7Q7Q7Q7Q7Q",
        "AKIAQ7Q7Q7Q7Q7Q7Q7Q7q",
        "AKIAQ7Q7Q7Q7Q7Q7Q",
        "eyJhbGciOiJIUzI1NiJ9",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0",
        "eyJ.a.b",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
        "https://example.com:8080/a@b",
        "https://user@example.com/",
        "https://user:@example.com/",
        "mail operator@example.com: hello",
        "://30:15@noon/",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "123e4567-e89b-12d3-a456-426614174000",
        "exec_01JC0000000000000000000000",
        "100% \\u12 \\ud800 \\ud800\\u0041 %zz %4",
        "[redacted:jwt] [redacted:canary] [redacted:key name]",
        "[redacted:",
    ];
    for text in texts.into_iter().map(str::to_owned).chain(shorts).chain(within) {
        assert!(matches!(redactor.text(&text), Cow::Borrowed(same) if same == text), "{text}");
    }
}

#[test]
fn values_under_telling_keys_go() {
    let redactor = Redactor::standard();
    for key in [
        "password",
        "passwd",
        "secret",
        "client_secret",
        "token",
        "access_token",
        "refresh_token",
        "id_token",
        "api_key",
        "apikey",
        "authorization",
        "cookie",
        "set_cookie",
        "private_key",
        "session_key",
        "Password",
        "clientSecret",
        "ACCESS-TOKEN",
        "Set-Cookie",
        "X-Api-Key",
        "db_password",
    ] {
        for (value, expected) in [
            (json!("x"), json!("[redacted:key name]")),
            (json!(1234), json!("[redacted:key name]")),
            (json!(["x", 1, null]), json!(["[redacted:key name]", "[redacted:key name]", null])),
            (json!("[redacted:jwt]"), json!("[redacted:jwt]")),
            (json!("[redacted:other]"), json!("[redacted:key name]")),
            (json!({"type": "x", "password": "y"}), json!({"type": "x", "password": "[redacted:key name]"})),
            (json!({"secret": "payments_token"}), json!({"secret": "payments_token"})),
            (json!(true), json!(true)),
            (json!(null), json!(null)),
            (json!(""), json!("")),
        ] {
            let redacted = redactor.value(&Arc::new(json!({"a": 1, key: value})));
            assert_eq!(*redacted, json!({"a": 1, key: expected}), "{key}");
        }
    }
}

#[test]
fn values_under_ordinary_keys_stay() {
    for key in [
        "token_count",
        "tokens",
        "max_tokens",
        "next_page_token",
        "page_token",
        "nextToken",
        "continuation_token",
        "idempotency_key",
        "key",
        "primary_key",
        "payment_authorization",
        "password_hint",
        "secret_name",
        "secretary",
        "cookies_accepted",
    ] {
        let value = Arc::new(json!({key: "x", "deep": [{key: 1}]}));
        assert!(Arc::ptr_eq(&value, &Redactor::standard().value(&value)), "{key}");
    }
}

#[test]
fn only_a_reference_is_taken_for_one() {
    let redactor = canary_redactor();
    let hidden = json!("[redacted:key name]");
    for (value, expected) in [
        (json!({"secret": "payments_token"}), json!({"secret": "payments_token"})),
        (json!({"secret": "x", "more": 1}), json!({"secret": hidden, "more": 1})),
        (json!({"Secret": "payments_token"}), json!({"Secret": hidden})),
        (json!({"secret": "not a name"}), json!({"secret": hidden})),
        (json!({"secret": 5}), json!({"secret": hidden})),
        (json!({"secret": hex(CANARY)}), json!({"secret": "[redacted:canary]"})),
    ] {
        assert_eq!(*redactor.value(&Arc::new(value.clone())), expected, "{value}");
    }
}

#[test]
fn secrets_go_from_keys_and_from_any_depth_and_nothing_else_changes() {
    let mut value = json!({"b": [CANARY, 1.5, true, null], CANARY: 1, "a": {"x": "y"}});
    let mut expected = json!({"b": ["[redacted:canary]", 1.5, true, null], "[redacted:canary]": 1, "a": {"x": "y"}});
    for _ in 0..60 {
        value = json!([{"next": value}]);
        expected = json!([{"next": expected}]);
    }
    let redacted = canary_redactor().value(&Arc::new(value));
    assert_eq!(redacted.to_string(), expected.to_string());
}

#[test]
fn fields_whose_keys_become_the_same_all_remain() {
    let (lower, upper) = (hex(CANARY), hex(CANARY).to_uppercase());
    let value = json!({lower: 1, "[redacted:canary]": 2, upper: 3, "[redacted:canary] 2": 4});
    let redacted = canary_redactor().value(&Arc::new(value));
    let expected = json!({
        "[redacted:canary]": 1,
        "[redacted:canary] 2": 2,
        "[redacted:canary] 3": 3,
        "[redacted:canary] 2 4": 4,
    });
    assert_eq!(*redacted, expected);
    assert!(Arc::ptr_eq(&redacted, &canary_redactor().value(&redacted)));
}

#[test]
fn outcomes_and_failures_are_redacted_and_otherwise_the_same() {
    let redactor = canary_redactor();
    let failure = |message: &str| ToolFailure {
        retry_after: Some(crate::time::Millis::seconds(3)),
        ..ToolFailure::new(FailureCategory::Unauthorized, message)
    };
    let (before, after) = (failure(&format!("no {CANARY}")), failure("no [redacted:canary]"));
    assert_eq!(redactor.failure(before.clone()), after);
    assert_eq!(redactor.outcome(CallOutcome::NotDone(before.clone())), CallOutcome::NotDone(after.clone()));
    assert_eq!(redactor.outcome(CallOutcome::Maybe(before)), CallOutcome::Maybe(after));
    let done = |result: Value| CallOutcome::Done { result: Arc::new(result), cost_micros: 7 };
    assert_eq!(redactor.outcome(done(json!([CANARY]))), done(json!(["[redacted:canary]"])));
}

#[test]
fn a_question_of_a_tool_is_redacted_and_can_still_be_answered() {
    let redactor = canary_redactor();
    let schema = json!({
        "type": "object",
        "properties": {
            "password": { "type": "string", "minLength": 8 },
            "account": { "type": "string", "description": format!("as in {CANARY}") },
        },
        "required": ["password"],
    });
    let continuation = |text: &str| Some(Arc::new(json!({ "state": text })));
    let asked = |text: &str| Elicitation {
        message: format!("is it {CANARY}?"),
        schema: Arc::new(schema.clone()),
        continuation: continuation(text),
    };
    assert_eq!(redactor.elicitation(asked(&format!("of {CANARY}"))).continuation, None);
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    assert_eq!(redactor.elicitation(asked(token)).continuation, continuation(token), "a server signs its own state");
    let asked = asked("s1");
    let elicitation = redactor.elicitation(asked);
    assert_eq!(elicitation.message, "is it [redacted:canary]?");
    let mut expected = schema;
    expected["properties"]["account"]["description"] = json!("as in [redacted:canary]");
    assert_eq!(*elicitation.schema, expected, "a property named password is requested, not revealed");
    assert_eq!(redactor.elicitation(elicitation.clone()), elicitation);
}

#[test]
fn a_redactor_does_not_print_what_it_looks_for() {
    assert_eq!(format!("{:?}", canary_redactor()), "Redactor { secrets: 1 }");
}

#[test]
fn redactors_can_be_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>(_: T) {}
    shared(canary_redactor());
}

/// Texts that make a naive scanner restart at every byte. Quadratic time would take minutes here.
#[test]
fn hostile_text_takes_time_in_proportion() {
    let redactor = redactor(&[("repeats", &"ab".repeat(500)), ("escapes", "a\\\\\\\\%%%%")]);
    for unit in [
        "eyJ-",
        "eyJ.",
        "eyJaaaaaaaaaa.",
        "A-",
        "A_",
        "://",
        "a://b:",
        "bearer ",
        "basic a",
        "sk-",
        "sk-ant-",
        "glpat-.",
        "AKIA",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY",
        "[redacted:",
        "[redacted:jwt]",
        "\\",
        "\\u0061",
        "%25",
        "%",
        "ab",
        "a\\",
        "npm_",
        "AIza",
        "é",
    ] {
        let text = unit.repeat((1 << 18) / unit.len());
        let redacted = redactor.text(&text);
        assert!(redacted.len() <= 30 * text.len(), "{unit}");
    }
}

fn strategy_of_secrets() -> impl Strategy<Value = Vec<String>> {
    let any = "[ -~]{6,24}";
    let nasty = "[ab%\\\\u0-9/+\"é🔑]{6,12}";
    prop::collection::vec(prop_oneof![any, nasty], 1..4)
}

fn strategy_of_text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~é🔑\n]{0,24}", "[ab%\\\\u0-9/+\"é🔑=]{0,12}"]
}

fn without_markers(redactor: &Redactor, text: &str) -> Vec<String> {
    let pieces = redactor.known.labels().between_markers(text);
    pieces.into_iter().map(|piece| text[piece].to_owned()).collect()
}

/// Decodes every run of base64 digits from each of its first four positions.
fn is_in_base64(text: &str, secret: &str) -> bool {
    let text = text.replace('-', "+").replace('_', "/");
    let is_digit = |c: char| c.is_ascii_alphanumeric() || "+/".contains(c);
    text.split(|c| !is_digit(c)).any(|digits| {
        (0..digits.len().min(4)).any(|skipped| {
            let whole = &digits.as_bytes()[skipped..];
            let padded: Vec<u8> = whole.iter().copied().chain(*b"AAA").collect();
            let decoded = BASE64_STANDARD.decode(&padded[..padded.len() / 4 * 4]).expect("these are digits");
            let certain = &decoded[..(whole.len() * 6 / 8).min(decoded.len())];
            certain.windows(secret.len()).any(|window| window == secret.as_bytes())
        })
    })
}

proptest! {
    #[test]
    fn no_known_secret_survives_in_any_writing(
        secrets in strategy_of_secrets(),
        texts in prop::collection::vec((strategy_of_text(), any::<Index>(), any::<Index>()), 1..5),
    ) {
        let named = secrets.iter().enumerate().map(|(number, value)| (format!("s{number}"), value.clone()));
        let redactor = Redactor::standard().with_secrets(named);
        let secrets: Vec<&str> =
            secrets.iter().map(|secret| secret.trim()).filter(|secret| secret.chars().count() >= 6).collect();
        prop_assume!(!secrets.is_empty());
        let mut text = String::new();
        for (before, secret, writing) in &texts {
            text.push_str(before);
            if text.chars().rev().take(24).any(|c| "%\\".contains(c)) {
                // After half an escape, even a complete one is decoded differently.
                text.push(' ');
            }
            text += writing.get::<String>(&writings(secret.get::<&str>(&secrets)));
        }
        let redacted = redactor.text(&text).into_owned();
        for piece in without_markers(&redactor, &redacted) {
            for secret in &secrets {
                prop_assert!(!is_in_base64(&piece, secret), "{secret:?} in {redacted:?} from {text:?}");
                for writing in writings(secret) {
                    prop_assert!(!piece.contains(&writing), "{writing:?} in {redacted:?} from {text:?}");
                }
            }
        }
        prop_assert_eq!(redactor.text(&redacted), redacted.as_str());
    }

    #[test]
    fn redacting_values_twice_is_redacting_once(
        parts in prop::collection::vec((strategy_of_text(), any::<Index>()), 1..6),
    ) {
        let mut pieces: Vec<String> = keys().into_iter().map(|(_, key)| key).chain(writings(CANARY)).collect();
        pieces.extend(["Bearer ", "Basic ", "://a:", "@", ".", "[redacted:", "]"].map(str::to_owned));
        let part = |(before, piece): &(String, Index)| format!("{before}{}", piece.get(&pieces));
        let text: String = parts.iter().map(part).collect();
        let redactor = canary_redactor();
        let value = Arc::new(json!({"password": text, text.clone(): [text], "n": 1}));
        let once = redactor.value(&value);
        prop_assert!(Arc::ptr_eq(&once, &redactor.value(&once)), "{once}");
    }

    #[test]
    fn text_without_secrets_comes_back_as_it_was(
        words in prop::collection::vec("[a-z]{1,5}|[0-9]{1,9}|[-.,:;()é\n]", 0..40),
    ) {
        let text = words.join(" ");
        prop_assert!(matches!(canary_redactor().text(&text), Cow::Borrowed(same) if same == text));
    }
}
