//! Each form an answer can take, and what it means for the call.

use super::*;

fn done(result: Value) -> Value {
    match of_result(result, false) {
        CallOutcome::Done { result, cost_micros: 0 } => (*result).clone(),
        other => panic!("expected done, got {other:?}"),
    }
}

#[test]
fn structured_content_is_the_result() {
    let content = json!([{"type": "text", "text": "{\"a\": 2}"}]);
    assert_eq!(done(json!({"content": content, "structuredContent": {"a": 1}})), json!({"a": 1}));
    assert_eq!(done(json!({"content": [], "structuredContent": 7})), json!(7));
}

#[test]
fn a_text_is_found_under_text_whatever_it_says() {
    for text in ["sailed at dawn", "12", "{\"a\": 1}", "[1, 2]", ""] {
        let content = json!([{"type": "text", "text": text}]);
        let result = done(json!({"content": content}));
        assert_eq!((&result["text"], &result["content"]), (&json!(text), &content), "{text}");
    }
    let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    assert_eq!(done(json!({"content": parts})), json!({"text": "a\nb", "content": parts}));
}

#[test]
fn one_text_that_is_json_is_under_json_too_or_the_result_where_the_tool_declares_one() {
    let answer = json!({"content": [{"type": "text", "text": "{\"a\": 1}"}]});
    assert_eq!(done(answer.clone())["json"], json!({"a": 1}));
    let CallOutcome::Done { result, .. } = of_result(answer, true) else { panic!("expected done") };
    assert_eq!(*result, json!({"a": 1}));
    // A number or a bare word is a text that happens to look like JSON.
    assert_eq!(done(json!({"content": [{"type": "text", "text": "12"}]})).get("json"), None);
}

#[test]
fn the_schema_of_a_text_fits_every_text() {
    let schema = rutter_core::plan::schema::CompiledSchema::compile(&rutter_core::tool::undeclared_output()).unwrap();
    for text in ["plain", "{\"a\": 1}"] {
        let result = done(json!({"content": [{"type": "text", "text": text}]}));
        assert!(schema.validate(&result).is_empty(), "{result}");
    }
}

#[test]
fn anything_else_is_handed_on_as_content() {
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": "{}", "annotations": {"priority": 1}});
    assert_eq!(
        done(json!({"content": [text, image]})),
        json!({"text": "{}", "content": [{"type": "text", "text": "{}"}, image]})
    );
    assert_eq!(done(json!({"content": [], "isError": false})), json!({"text": "", "content": []}));
    assert_eq!(done(json!({"content": []})), json!({"text": "", "content": []}));
}

#[test]
fn an_error_of_the_tool_is_not_done_and_its_text_is_cut() {
    let text = "ä".repeat(5_000);
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    let CallOutcome::NotDone(failure) = of_result(result, false) else { panic!("expected not done") };
    assert_eq!(failure.category, FailureCategory::ToolError);
    assert!(failure.message.len() < 4_200 && failure.message.ends_with("ä…"));
}

#[test]
fn what_is_no_result_is_maybe() {
    for result in [json!({}), json!([]), json!("text"), json!({"tools": []})] {
        let outcome = of_result(result.clone(), false);
        let CallOutcome::Maybe(failure) = outcome else { panic!("{result}: {outcome:?}") };
        assert_eq!(failure.category, FailureCategory::Protocol);
    }
}

#[test]
fn only_errors_from_before_the_call_are_not_done() {
    let of_code = |code| of_error(&ErrorData::new(ErrorCode(code), "said", None));
    for (code, category) in [
        (-32601, FailureCategory::NotFound),
        (-32602, FailureCategory::InvalidInput),
        (-32020, FailureCategory::Protocol),
    ] {
        assert_eq!(of_code(code), CallOutcome::NotDone(ToolFailure::new(category, "said")));
    }
    for code in [-32600, -32603, -32700, -32000, 0, 1, 500] {
        assert!(matches!(of_code(code), CallOutcome::Maybe(_)), "{code}");
    }
}

#[test]
fn a_long_text_is_kept_once() {
    let text = "\u{e4}".repeat(TWICE_BYTES_MAX);
    let result = done(json!({"content": [{"type": "text", "text": text}]}));
    assert_eq!(result["text"], json!(text));
    assert_eq!(result["content"], json!([{"type": "text", "text_bytes": text.len()}]));
}
