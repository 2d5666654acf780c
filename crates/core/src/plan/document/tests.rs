//! Strict parsing, by tables.

use super::*;
use crate::limits::{DEPTH_MAX, ITEMS_MAX, KEYS_MAX, STRING_BYTES_MAX};
use serde_json::json;

fn value(text: &str, format: DocumentFormat) -> Value {
    match PlanDocument::read(text.as_bytes(), format) {
        Ok(document) => Value::clone(&document.value),
        Err(findings) => panic!("{text:?}: {findings:?}"),
    }
}

fn codes(text: &str, format: DocumentFormat) -> Vec<(&'static str, String, usize, usize)> {
    let findings = PlanDocument::read(text.as_bytes(), format).map(|document| document.value).expect_err(text);
    findings
        .into_iter()
        .map(|found| (found.code, found.pointer, found.place.map_or(0, |p| p.start), found.place.map_or(0, |p| p.end)))
        .collect()
}

#[test]
fn json_is_read_as_everyone_reads_it() {
    for text in [
        r#"{"a":[1,-2,0.5,1e3,-0,0,9007199254740991,-9007199254740991],"b":{"c":null,"d":true,"e":false}}"#,
        "  [ ]  ",
        "{ }",
        r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é""#,
        "[[],{},[{}]]",
        "1.7976931348623157e308",
        "{\"\":{\"~/\":1}}\r\n",
    ] {
        assert_eq!(value(text, DocumentFormat::Json), serde_json::from_str::<Value>(text).unwrap(), "{text}");
    }
}

#[test]
fn yaml_is_read_by_the_core_schema() {
    for (text, expected) in [
        ("on: yes\noff: no\ny: n", json!({"on": "yes", "off": "no", "y": "n"})),
        (
            "a: 2026-01-02\nb: 12:30:00\nc: 2026-01-02T03:04:05Z",
            json!({"a": "2026-01-02", "b": "12:30:00", "c": "2026-01-02T03:04:05Z"}),
        ),
        ("a: '1'\nb: \"true\"\nc: 'null'", json!({"a": "1", "b": "true", "c": "null"})),
        ("[1, +2, -3, 0x1F, 0o17, 1_000, 0b1]", json!([1, 2, -3, 31, 15, "1_000", "0b1"])),
        (
            "[1.5, .5, 1., 1e3, -1E-2, +.5, +, ., e3, 1e, 1.2.3]",
            json!([1.5, 0.5, 1.0, 1000.0, -0.01, 0.5, "+", ".", "e3", "1e", "1.2.3"]),
        ),
        ("[~, null, Null, NULL, true, True, FALSE, nUll]", json!([null, null, null, null, true, true, false, "nUll"])),
        ("a:\nb: ''", json!({"a": null, "b": ""})),
        ("a: |\n  x\n  y\nb: >\n  x\n  y\n", json!({"a": "x\ny\n", "b": "x y\n"})),
        ("- a: 1\n  b:\n  - 2\n- {c: [3]}", json!([{"a": 1, "b": [2]}, {"c": [3]}])),
        ("when: \"{{ inputs.x }}\"", json!({"when": "{{ inputs.x }}"})),
        ("%YAML 1.2\n---\na: 1\n...\n", json!({"a": 1})),
        ("# only a comment before\na: 1 # and after", json!({"a": 1})),
        ("'1': a\n\"<<\": b", json!({"1": "a", "<<": "b"})),
        ("\u{feff}a: 1", json!({"a": 1})),
    ] {
        assert_eq!(value(text, DocumentFormat::Yaml), expected, "{text}");
    }
}

#[test]
fn ambiguous_documents_are_refused_with_a_code() {
    use DocumentFormat::{Json, Yaml};
    for (format, text, code, pointer, place) in [
        (Json, "", "document.empty", "", 0..0),
        (Yaml, "", "document.empty", "", 0..0),
        (Yaml, "# nothing", "document.empty", "", 0..0),
        (Json, r#"{"a":1,"b":{"c":1,"c":2}}"#, "document.duplicate_key", "/b/c", 18..21),
        (Json, r#"{"a":1,"\u0061":2}"#, "document.duplicate_key", "/a", 7..15),
        (Yaml, "a: 1\nb: 2\na: 3", "document.duplicate_key", "/a", 10..11),
        (Yaml, "a: 1\n'a': 3", "document.duplicate_key", "/a", 5..8),
        (Json, r#"{"n":9007199254740992}"#, "document.integer_range", "/n", 5..21),
        (Json, "[1,-9007199254740992]", "document.integer_range", "/1", 3..20),
        (Json, "[123456789012345678901234567890]", "document.integer_range", "/0", 1..31),
        (Yaml, "n: 9007199254740992", "document.integer_range", "/n", 3..19),
        (Yaml, "n: 0xFFFFFFFFFFFFFFFFF", "document.integer_range", "/n", 3..22),
        (Json, "[NaN]", "document.not_finite", "/0", 1..4),
        (Json, "[-Infinity]", "document.not_finite", "/0", 1..10),
        (Json, "[1e999]", "document.not_finite", "/0", 1..6),
        (Yaml, "n: .nan", "document.not_finite", "/n", 3..7),
        (Yaml, "n: -.inf", "document.not_finite", "/n", 3..8),
        (Yaml, "n: 1e999", "document.not_finite", "/n", 3..8),
        (Json, r#"{"a":["\u0000"]}"#, "document.nul", "/a/0", 6..14),
        (Json, r#"{"\u0000":1}"#, "document.nul", "", 1..9),
        (Yaml, r#"a: "\0""#, "document.nul", "/a", 3..7),
        (Yaml, "a: 1\n---\nb: 2", "document.yaml_documents", "", 5..8),
        (Yaml, "a: &x 1\nb: 1", "document.yaml_alias", "/a", 6..7),
        (Yaml, "a: !!str 1", "document.yaml_tag", "/a", 9..10),
        (Yaml, "a: !mine {}", "document.yaml_tag", "/a", 9..10),
        (Yaml, "1: a", "document.yaml_key", "", 0..1),
        (Yaml, "true: a", "document.yaml_key", "", 0..4),
        (Yaml, "~: a", "document.yaml_key", "", 0..1),
        (Yaml, "? [a]\n: b", "document.yaml_key", "", 2..3),
        (Yaml, "? {a: 1}\n: b", "document.yaml_key", "", 2..3),
        (Yaml, "a:\n  <<: {b: 1}", "document.yaml_merge_key", "/a", 5..7),
        (Yaml, "zip: 01234", "document.yaml_number", "/zip", 5..10),
        (Yaml, "*x : 1", "document.yaml_alias", "", 0..0),
        (Yaml, "a: [1", "document.syntax", "/a/0", 3..3),
        (Yaml, "a: 1\n b: 2", "document.syntax", "", 7..7),
        (Yaml, "a: b: c", "document.syntax", "", 4..4),
        (Yaml, "a:\n\tb: 1", "document.syntax", "/a", 4..4),
    ] {
        let found = codes(text, format);
        assert_eq!(found, [(code, pointer.to_owned(), place.start, place.end)], "{text:?}");
    }
}

#[test]
fn json_that_is_none_is_refused_where_it_goes_wrong() {
    for (text, at, hint) in [
        ("{\"a\":1,}", 6, Some("remove the comma")),
        ("[1,]", 2, Some("remove the comma")),
        ("{'a':1}", 1, Some("strings must be in double quotes")),
        ("{a:1}", 1, None),
        ("{\"a\" 1}", 5, None),
        ("[1 2]", 3, None),
        ("[1}", 2, None),
        ("{\"a\":1", 6, None),
        ("[", 1, None),
        ("[] x", 3, None),
        ("[] // x", 3, Some("JSON has no comments; YAML has")),
        ("[True]", 1, Some("write true")),
        ("[None]", 1, Some("write null, or leave the field out")),
        ("[abc]", 1, Some("texts must be in double quotes")),
        ("[é]", 1, None),
        ("[01]", 1, Some("remove the leading zeros, or write it as text, in quotes")),
        ("[-]", 1, None),
        ("[1.]", 1, None),
        ("[1e]", 1, None),
        ("[.5]", 1, None),
        ("[+1]", 1, None),
        ("[\"a\nb\"]", 3, Some("write line breaks as \\n and tabs as \\t")),
        ("[\"a", 1, None),
        ("[\"\\", 2, None),
        ("[\"\\é\"]", 2, None),
        ("[\"\\x\"]", 2, None),
        ("[\"\\u12\"]", 2, None),
        ("[\"\\u12é\"]", 2, None),
        ("[\"\\ud800\"]", 2, None),
        ("[\"\\ud800\\u0041\"]", 2, None),
        ("[\"\\udc00\"]", 2, None),
    ] {
        let findings = PlanDocument::read(text.as_bytes(), DocumentFormat::Json).expect_err(text);
        assert_eq!(findings.len(), 1, "{text}");
        let found = &findings[0];
        assert_eq!(found.code, "document.syntax", "{text}");
        let place = found.place.unwrap();
        assert_eq!((place.start, found.hint.as_deref()), (at, hint), "{text}");
        assert!(text.get(place.start..place.end).is_some(), "{text}: {place:?}");
    }
}

#[test]
fn all_findings_of_one_document_are_reported() {
    let found = codes("{\"a\":NaN,\"a\":9007199254740993,\"b\":\"\\u0000\"}", DocumentFormat::Json);
    let codes: Vec<_> = found.iter().map(|found| found.0).collect();
    assert_eq!(codes, ["document.not_finite", "document.integer_range", "document.duplicate_key", "document.nul"]);
    let found = self::codes("a: &x 1\nb: *x\nc: !!int '3'\n4: 5\n", DocumentFormat::Yaml);
    let codes: Vec<_> = found.iter().map(|found| found.0).collect();
    assert_eq!(codes, ["document.yaml_alias", "document.yaml_alias", "document.yaml_tag", "document.yaml_key"]);
}

#[test]
fn bounds_hold_at_their_edge() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let blocks = |depth: usize| (0..depth).map(|at| format!("{}a:\n", " ".repeat(at))).collect::<String>();
    let list = |items: usize| format!("[{}]", vec!["1"; items].join(","));
    let object =
        |keys: usize| format!("{{{}}}", (0..keys).map(|at| format!("\"k{at}\": 1")).collect::<Vec<_>>().join(", "));
    // Each \L is two bytes of text and three of the string.
    let long = |extra: &str| format!("\"{}{extra}\"", "\\L".repeat(STRING_BYTES_MAX / 3));
    let padded = |bytes: usize| format!("[{}]", " ".repeat(bytes - 2));
    use DocumentFormat::{Json, Yaml};
    for (format, at, above, code) in [
        (Json, nested(DEPTH_MAX), nested(DEPTH_MAX + 1), "document.too_deep"),
        (Json, nested(DEPTH_MAX), "[".repeat(100_000), "document.too_deep"),
        (Yaml, nested(DEPTH_MAX), nested(DEPTH_MAX + 1), "document.too_deep"),
        (Yaml, nested(DEPTH_MAX), "[".repeat(100_000), "document.too_deep"),
        (Yaml, blocks(DEPTH_MAX), blocks(DEPTH_MAX + 1), "document.too_deep"),
        (Yaml, blocks(DEPTH_MAX), "- ".repeat(100_000), "document.too_deep"),
        (Json, list(ITEMS_MAX), list(ITEMS_MAX + 1), "document.too_many_items"),
        (Yaml, list(ITEMS_MAX), list(ITEMS_MAX + 1), "document.too_many_items"),
        (Json, object(KEYS_MAX), object(KEYS_MAX + 1), "document.too_many_keys"),
        (Yaml, object(KEYS_MAX), object(KEYS_MAX + 1), "document.too_many_keys"),
        (Yaml, long("x"), long("xx"), "document.string_too_long"),
        (Json, padded(PLAN_BYTES_MAX), padded(PLAN_BYTES_MAX + 1), "document.too_large"),
        (Yaml, padded(PLAN_BYTES_MAX), padded(PLAN_BYTES_MAX + 1), "document.too_large"),
    ] {
        assert!(PlanDocument::read(at.as_bytes(), format).is_ok(), "{code} {format:?}");
        let found = codes(&above, format);
        assert_eq!(found.iter().map(|found| found.0).collect::<Vec<_>>(), [code], "{format:?}");
    }
}

#[test]
fn invalid_utf8_is_refused_with_its_position() {
    let findings = PlanDocument::read(b"{\n\"a\": \xff}", DocumentFormat::Json).unwrap_err();
    assert_eq!(findings[0].code, "document.encoding");
    assert_eq!(findings[0].place, Some(SourceLocation { line: 2, column: 6, start: 7, end: 8 }));
}

#[test]
fn lines_and_columns_are_counted_for_people() {
    let findings = PlanDocument::read("{\"é\": 1,\n \"ü\": tru}".as_bytes(), DocumentFormat::Json).unwrap_err();
    assert_eq!(findings[0].place, Some(SourceLocation { line: 2, column: 7, start: 17, end: 20 }));
    assert_eq!(findings[0].pointer, "/ü");
}

#[test]
fn the_format_is_guessed_by_the_first_sign() {
    for (text, format) in [
        ("{}", DocumentFormat::Json),
        ("\n\t [", DocumentFormat::Json),
        ("\u{feff}{}", DocumentFormat::Json),
        ("name: x", DocumentFormat::Yaml),
        ("# {", DocumentFormat::Yaml),
        ("", DocumentFormat::Yaml),
    ] {
        assert_eq!(DocumentFormat::guess(text.as_bytes()), format, "{text:?}");
    }
}

#[test]
fn values_and_keys_are_found_in_the_text() {
    let json = r#"{"a": [1, {"b/c": "x"}], "d" : {} }"#;
    let flow = r#"{a: [1, {b/c: "x"}], d: {} }"#;
    let block = "# plan\na:\n  - 1\n  - b/c: \"x\"   # note\n\nd:\n  {}\n# end\n";
    for (format, text) in [(DocumentFormat::Json, json), (DocumentFormat::Yaml, flow), (DocumentFormat::Yaml, block)] {
        let document = PlanDocument::read(text.as_bytes(), format).unwrap();
        let spans = &document.spans;
        let cut = |range: Option<Range<usize>>| range.map(|range| text[range].trim_matches('"'));
        for (pointer, key, value) in [
            ("/a", Some("a"), None),
            ("/a/0", None, Some("1")),
            ("/a/1/b~1c", Some("b/c"), Some("x")),
            ("/d", Some("d"), Some("{}")),
            ("/e", None, Some("")),
            ("/a/2", None, Some("")),
            ("/a/0/x", None, Some("")),
            ("a", None, Some("")),
        ] {
            assert_eq!(cut(spans.key(pointer)), key, "{pointer} in {text}");
            let value = value.filter(|value| !value.is_empty());
            if pointer != "/a" {
                assert_eq!(cut(spans.value(pointer)), value, "{pointer} in {text}");
            }
        }
        assert_eq!(spans.nearest("/a/7/z"), spans.value("/a").unwrap());
        assert_eq!(spans.nearest("/nowhere"), spans.value("").unwrap());
        assert_eq!(spans.nearest("~"), spans.value("").unwrap());
    }
    let document = PlanDocument::read(block.as_bytes(), DocumentFormat::Yaml).unwrap();
    let cut = |pointer: &str| &block[document.spans.value(pointer).unwrap()];
    assert_eq!(cut("/a"), "- 1\n  - b/c: \"x\"");
    assert_eq!(cut("/a/1"), "b/c: \"x\"");
    assert_eq!(cut(""), block.trim_start_matches("# plan\n").trim_end_matches("\n# end\n"));
}
