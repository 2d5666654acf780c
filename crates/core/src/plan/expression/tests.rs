//! Values, errors and limits of expressions.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// A scope of plain values.
struct PlainScope {
    inputs: Value,
    result: Value,
    item: Value,
}

impl ExpressionScope for PlainScope {
    fn inputs(&self) -> Option<&Value> {
        Some(&self.inputs)
    }
    fn step_result(&self, step: &str) -> Option<&Value> {
        (step == "a" || step == "my-id").then_some(&self.result)
    }
    fn step_status(&self, step: &str) -> Option<&'static str> {
        (step == "a").then_some("completed")
    }
    fn key(&self) -> Option<&str> {
        Some("k1")
    }
    fn result(&self) -> Option<&Value> {
        Some(&self.result)
    }
    fn parameters(&self) -> Option<&Value> {
        None
    }
    fn item(&self) -> Option<(&Value, u32)> {
        Some((&self.item, 7))
    }
}

fn here() -> PlainScope {
    PlainScope {
        inputs: json!({
            "n": 3, "price": 2.5, "big": u64::MAX, "name": "Ada", "empty": "", "nil": null, "yes": true, "no": false,
            "list": [3, 1, 2], "words": ["b", "a", "b"], "k": "name", "z": {"b": 1, "a": {"c": [10, 20]}},
            "people": [
                {"id": 1, "name": "x", "age": 30, "ok": true},
                {"id": 2, "name": "y", "age": 20, "ok": false},
                {"id": 3, "name": "z", "age": 20},
            ],
            "unicode": "Grüße 🌍", "1st": "odd key",
        }),
        result: json!({"id": "r1", "status": "paid", "items": [{"sku": "s"}]}),
        item: json!({"sku": "s7"}),
    }
}

fn value(source: &str) -> Value {
    let expression = Expression::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    expression.evaluate(&here()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn refusal(source: &str) -> ExpressionError {
    Expression::compile(source).err().unwrap_or_else(|| panic!("{source}: compiled"))
}

fn failure(source: &str) -> EvaluationError {
    let expression = Expression::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    expression.evaluate(&here()).err().unwrap_or_else(|| panic!("{source}: gave a value"))
}

#[test]
fn expressions_have_the_expected_values() {
    let cases = [
        // Paths.
        ("inputs.n", json!(3)),
        ("inputs['name']", json!("Ada")),
        ("inputs[\"1st\"]", json!("odd key")),
        ("inputs[inputs.k]", json!("Ada")),
        ("inputs.z.a.c[1]", json!(20)),
        ("inputs.z.a.c.0", json!(10)),
        ("inputs.z.a.c[-1]", json!(20)),
        ("inputs.z", json!({"b": 1, "a": {"c": [10, 20]}})),
        ("inputs.big", json!(u64::MAX)),
        ("steps.a.result.items[0].sku", json!("s")),
        ("steps[\"my-id\"].result.id", json!("r1")),
        ("steps.a.status", json!("completed")),
        ("key", json!("k1")),
        ("result.id", json!("r1")),
        ("item.sku ~ index", json!("s77")),
        // Numbers.
        ("inputs.n / 2", json!(1.5)),
        ("inputs.price * 2", json!(5.0)),
        ("7 // 2 + 7 % 4 - -1", json!(7)),
        ("2 ** 3 ** 2", json!(64)),
        ("-2 ** 2", json!(4)),
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("1e3", json!(1000.0)),
        ("9223372036854775807 + 1", json!(9_223_372_036_854_775_808_u64)),
        // Text.
        ("'a' + 'b' ~ 1 ~ 2.0 ~ true", json!("ab12.0true")),
        ("1 ~ 2 + 'x'", json!("12x")),
        ("inputs.list ~ ''", json!("[3,1,2]")),
        ("'it\\'s' ~ \"\\u00e9\\ud83c\\udf0d\\n\"", json!("it'sé🌍\n")),
        ("inputs.unicode[:5]", json!("Grüße")),
        ("inputs.name[1:]", json!("da")),
        ("inputs.name[-2:-1]", json!("d")),
        ("inputs.name[9:2]", json!("")),
        ("inputs.list[1:]", json!([1, 2])),
        ("[1, 2] + inputs.list", json!([1, 2, 3, 1, 2])),
        // Truth.
        ("inputs.n > 2 and inputs.name == 'Ada'", json!(true)),
        ("inputs.empty or 'x'", json!("x")),
        ("inputs.n and inputs.empty", json!("")),
        ("not inputs.nil", json!(true)),
        ("not not 1", json!(true)),
        ("1 < 2 < 3", json!(true)),
        ("1 < 3 < 2", json!(false)),
        ("1 == 1.0", json!(true)),
        ("1 == true", json!(false)),
        ("[1, {'a': 2}] == [1.0, {'a': 2}]", json!(true)),
        ("'da' in inputs.name and 'n' in inputs and 2 in inputs.list", json!(true)),
        ("4 not in inputs.list", json!(true)),
        ("'big' if inputs.n > 2 else 'small'", json!("big")),
        ("1 if false else 2 if false else 3", json!(3)),
        ("steps.gone.result.x if steps.gone.status is defined else 'none'", json!("none")),
        // Literals.
        ("{'b': 1, 'a': [true, None, null]}", json!({"b": 1, "a": [true, null, null]})),
        ("{'b': 1, 'a': 2}['a']", json!(2)),
        ("[[1, 2], 3,][0][1]", json!(2)),
        // Filters.
        ("inputs.gone | default('x')", json!("x")),
        ("inputs.gone.further | default(inputs.n)", json!(3)),
        ("inputs.name | default(inputs.gone)", json!("Ada")),
        ("inputs.gone | default(inputs.gone) | default(2)", json!(2)),
        ("inputs.nil | default('x')", json!(null)),
        ("inputs.nil | default('x', true)", json!("x")),
        ("inputs.nil | d('x', boolean=true)", json!("x")),
        ("inputs.unicode | length", json!(7)),
        ("inputs.list | count", json!(3)),
        ("inputs.z | length", json!(2)),
        ("' 42 ' | int", json!(42)),
        ("'4.9' | int + 1", json!(5)),
        ("-4.9 | int", json!(-4)),
        ("true | int", json!(1)),
        ("'2.5' | float", json!(2.5)),
        ("-3 | abs", json!(3)),
        ("2.567 | round(1)", json!(2.6)),
        ("3 | round", json!(3)),
        ("inputs.list | bool", json!(true)),
        ("inputs.list | string", json!("[3,1,2]")),
        ("inputs.nil | tojson", json!("null")),
        ("'a\"b' | tojson", json!("\"a\\\"b\"")),
        ("inputs.name | upper | lower", json!("ada")),
        ("'  x ' | trim", json!("x")),
        ("'--x-' | trim('-')", json!("x")),
        ("'a,b,,c' | split(',')", json!(["a", "b", "", "c"])),
        ("' a  b ' | split", json!(["a", "b"])),
        ("'a-b-c' | replace('-', '+')", json!("a+b+c")),
        ("inputs.words | join(', ')", json!("b, a, b")),
        ("inputs.people | join('/', attribute='name')", json!("x/y/z")),
        ("inputs.list | first + inputs.list | last", json!(5)),
        ("[] | first | default(0)", json!(0)),
        ("inputs.list | min ~ inputs.list | max", json!("13")),
        ("(inputs.people | max(attribute='age')).id", json!(1)),
        ("inputs.list | sum", json!(6)),
        ("inputs.people | sum(attribute='age')", json!(70)),
        ("[1, 2.5] | sum", json!(3.5)),
        ("inputs.list | sort", json!([1, 2, 3])),
        ("inputs.list | sort(reverse=true)", json!([3, 2, 1])),
        ("inputs.people | sort(attribute='age') | map(attribute='id')", json!([2, 3, 1])),
        ("inputs.words | unique", json!(["b", "a"])),
        ("[1, 1.0, 2] | unique", json!([1, 2])),
        ("inputs.list | reverse", json!([2, 1, 3])),
        ("inputs.name | reverse", json!("adA")),
        ("inputs.people | map(attribute='ok', default=null)", json!([true, false, null])),
        ("inputs.people | selectattr('ok') | map(attribute='id')", json!([1])),
        ("inputs.people | rejectattr('ok') | map(attribute='id')", json!([2, 3])),
        ("inputs.people | selectattr('ok', 'defined') | map(attribute='id')", json!([1, 2])),
        ("inputs.people | selectattr('age', 'gt', 20) | length", json!(1)),
        ("inputs.list | select('odd')", json!([3, 1])),
        ("inputs.list | reject('in', [1, 2])", json!([3])),
        ("inputs.z | items", json!([["b", 1], ["a", {"c": [10, 20]}]])),
        ("inputs.z | keys", json!(["b", "a"])),
        ("inputs.z.a | values | first", json!([10, 20])),
        // Tests.
        ("inputs.gone is undefined and inputs.n is defined", json!(true)),
        ("inputs.gone.x is not defined", json!(true)),
        ("inputs.nil is none and inputs.nil is null", json!(true)),
        ("inputs.name is string and inputs.n is number and inputs.n is integer", json!(true)),
        ("inputs.price is float and inputs.yes is boolean and inputs.yes is true", json!(true)),
        ("inputs.list is sequence and inputs.z is mapping and inputs.no is false", json!(true)),
        ("inputs.n is odd and inputs.n is not even", json!(true)),
        ("inputs.n is eq 3 and inputs.n is ne(4) and inputs.n is lt 4 and inputs.n is ge 3", json!(true)),
        ("inputs.n is equalto 3 and inputs.n is le 3 and inputs.n is gt 2", json!(true)),
        ("inputs.n is lessthan 4 and inputs.n is greaterthan -1 and inputs.n is in [3]", json!(true)),
        ("inputs.name is startingwith 'A' and inputs.name is endingwith('a')", json!(true)),
        ("inputs.empty is empty", json!(true)),
    ];
    for (source, expected) in cases {
        assert_eq!(value(source), expected, "{source}");
    }
}

#[test]
fn keys_keep_their_order() {
    assert_eq!(value("inputs.z").to_string(), r#"{"b":1,"a":{"c":[10,20]}}"#);
    assert_eq!(value("{'z': 1, 'y': inputs.z, 'a': 2}").to_string(), r#"{"z":1,"y":{"b":1,"a":{"c":[10,20]}},"a":2}"#);
}

#[test]
fn a_missing_value_is_an_error_and_never_null() {
    for (source, path) in [
        ("inputs.gone", "inputs.gone"),
        ("inputs.gone.deeper", "inputs.gone"),
        ("inputs.name.first", "inputs.name.first"),
        ("inputs.nil.x", "inputs.nil.x"),
        ("inputs.list[3]", "inputs.list.3"),
        ("inputs.list[-4]", "inputs.list[-4]"),
        ("inputs[inputs.name]", "inputs[inputs.name]"),
        ("steps.gone.result.id", "steps.gone.result"),
        ("parameters.x", "parameters"),
        ("1 + inputs.gone", "inputs.gone"),
        ("(inputs.gone + 1) | default(2)", "inputs.gone"),
        ("inputs.words | join(inputs.gone) | default('x')", "inputs.gone"),
        ("inputs.people | map(attribute='ok')", "\"ok\" of an item"),
        ("[] | first", "first"),
        ("item.gone", "item.gone"),
        ("key.gone", "key.gone"),
        ("index.gone", "index.gone"),
    ] {
        match failure(source) {
            EvaluationError::Missing { path: found, range, .. } => {
                assert_eq!(found, path, "{source}");
                assert!(source.get(range).is_some(), "{source}");
            }
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn a_missing_key_is_reported_with_the_keys_there_are() {
    let text = |source| failure(source).to_string();
    assert_eq!(text("item.gone"), "item.gone is missing; there are: sku");
    assert_eq!(text("key.gone"), "key.gone is missing");
    assert_eq!(text("steps.gone.result"), "steps.gone.result is missing");
}

#[test]
fn a_misfit_is_reported_by_type_and_not_by_content() {
    for (source, message) in [
        ("inputs.name * 3", "`*` does not work on text and a number"),
        ("3 * [1]", "`*` does not work on a number and a list"),
        ("inputs.name + 1", "`+` does not work on text and a number"),
        ("true + 1", "`+` does not work on a boolean and a number"),
        ("1 < 'a'", "a number and text have no order"),
        ("inputs.nil ~ 'x'", "null cannot become text; give a replacement with `| default(…, true)`"),
        ("1 // 0", "division by zero"),
        ("18446744073709551615 + 1", "the result does not fit into 64 bits"),
        ("1e308 * 10", "the result is not a finite number"),
        ("'abc' | int", "the text is not a number"),
        ("'nan' | float", "the result is not a finite number"),
        ("'1e999' | int", "the text is not a number"),
        ("1e300 | int", "the result does not fit into 64 bits"),
        ("inputs.n | length", "expected text, a list or an object, found a number"),
        ("[1, 'a'] | sort", "text and a number have no order"),
        ("'a' | split('')", "the separator is empty"),
        ("{inputs.n: 1}", "a key must be text"),
        ("inputs.list[true]", "expected a name or a position, found a boolean"),
        ("inputs.z[:1]", "expected text or a list to slice, found an object"),
        ("-inputs.name", "expected a number after `-`, found text"),
        ("inputs.price is odd", "expected an integer, found a number"),
        ("1 in 2", "a number cannot be in a number"),
        ("[1] ** 2", "`**` does not work on a list and a number"),
        ("1 is startingwith('a')", "expected text, found a number"),
        ("'a' is endingwith(1)", "expected text, found a number"),
        ("'a' | split(1)", "expected text as its argument, found a number"),
    ] {
        match failure(source) {
            EvaluationError::Unfit { message: found, range } => {
                assert_eq!(found, message, "{source}");
                assert!(source.get(range).is_some(), "{source}");
            }
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn only_true_and_false_answer_a_condition() {
    let answer = |source: &str| Expression::compile(source).unwrap().evaluate_bool(&here());
    assert_eq!(answer("inputs.n == 3"), Ok(true));
    assert_eq!(answer("inputs.no"), Ok(false));
    for source in ["inputs.n", "inputs.nil", "inputs.name", "inputs.gone", "1", "'true'", "[]", "inputs.n and 1"] {
        assert!(answer(source).is_err(), "{source}");
    }
}

#[test]
fn reads_are_known_before_evaluation() {
    for (source, reads) in [
        ("inputs.sku", vec!["inputs.sku"]),
        ("steps['my-id'].result.x + steps.a.result.x", vec!["steps.my-id.result.x", "steps.a.result.x"]),
        ("inputs.list[1:2]", vec!["inputs.list"]),
        ("inputs.list[inputs.n].name", vec!["inputs.n", "inputs.list"]),
        ("inputs.list[0].name", vec!["inputs.list.0.name"]),
        ("inputs.a | default(steps.b.result)", vec!["inputs.a", "steps.b.result"]),
        ("inputs.a if steps.c.status == 'x' else inputs.a", vec!["inputs.a", "steps.c.status"]),
        ("[key, {'inputs.no': item}, index]", vec!["key", "item", "index"]),
        ("inputs.x is in steps.d.result", vec!["inputs.x", "steps.d.result"]),
        ("inputs.x | join(separator=result.s) is eq(parameters.p)", vec!["inputs.x", "result.s", "parameters.p"]),
        ("'steps.e.result {{ inputs.x }}'", vec![]),
        ("inputs", vec!["inputs"]),
    ] {
        let expression = Expression::compile(source).unwrap();
        let found: Vec<String> = expression.reads.iter().map(|path| path.join(".")).collect();
        assert_eq!(found, reads, "{source}");
    }
}

#[test]
fn a_plain_path_is_recognised() {
    for (source, path) in [
        ("inputs.a.b", Some(vec!["inputs", "a", "b"])),
        ("(steps['x-y'].result)", Some(vec!["steps", "x-y", "result"])),
        ("inputs.a | upper", None),
        ("inputs.a[inputs.b]", None),
        ("-inputs.a", None),
    ] {
        let expression = Expression::compile(source).unwrap();
        let found = expression.path().map(|path| path.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found, path, "{source}");
    }
}

#[test]
fn types_are_known_where_they_are_plain_from_the_writing() {
    for (source, types) in [
        ("[inputs.a]", Some(JsonTypeSet::ARRAY)),
        ("{'a': inputs.a}", Some(JsonTypeSet::OBJECT)),
        ("-inputs.a", Some(JsonTypeSet::NUMBER)),
        ("inputs.a * 2", Some(JsonTypeSet::NUMBER)),
        ("inputs.a ~ 2", Some(JsonTypeSet::STRING)),
        ("inputs.a + 2", Some(JsonTypeSet::NUMBER.or(JsonTypeSet::STRING).or(JsonTypeSet::ARRAY))),
        ("inputs.a > 1 and inputs.b is defined", Some(JsonTypeSet::BOOLEAN)),
        ("1 or 'a'", Some(JsonTypeSet::INTEGER.or(JsonTypeSet::STRING))),
        ("inputs.a and 1", None),
        ("inputs.a | length | default('x')", Some(JsonTypeSet::INTEGER.or(JsonTypeSet::STRING))),
        ("inputs.a | default('x')", None),
        ("inputs.a | first", None),
        ("not inputs.a", Some(JsonTypeSet::BOOLEAN)),
        ("inputs.a is defined", Some(JsonTypeSet::BOOLEAN)),
        ("inputs.a | upper", Some(JsonTypeSet::STRING)),
        ("'a' if inputs.a else [1]", Some(JsonTypeSet::STRING.or(JsonTypeSet::ARRAY))),
        ("'a' if inputs.a else inputs.b", None),
        ("inputs.a", None),
    ] {
        assert_eq!(Expression::compile(source).unwrap().types(), types, "{source}");
    }
    let known = |path: &[String]| (path == ["inputs", "a"]).then(|| json!({"type": "boolean"}));
    for (source, types) in [
        ("inputs.a", Some(JsonTypeSet::BOOLEAN)),
        ("inputs.a | default(0)", Some(JsonTypeSet::BOOLEAN.or(JsonTypeSet::INTEGER))),
        ("inputs.a or inputs.a", Some(JsonTypeSet::BOOLEAN)),
        ("inputs.a or inputs.b", None),
    ] {
        assert_eq!(Expression::compile(source).unwrap().types_within(&known), types, "{source}");
    }
}

#[test]
fn expressions_are_compared_and_printed_by_their_source() {
    let expression = |source: &str| Expression::compile(source).unwrap();
    assert_eq!(expression("inputs.a"), expression("inputs.a"));
    assert_ne!(expression("inputs.a"), expression("inputs.b"));
    assert_eq!(format!("{:?}", expression("inputs.a")), "Expression(\"inputs.a\")");
}

#[test]
fn mistakes_are_underlined_and_say_what_to_write() {
    for (source, underlined, message, hint) in [
        ("", "", "expected a value, found the end", ""),
        (
            "input.x",
            "input",
            "unknown name \"input\", expected one of inputs, steps, key, result, parameters, item, index",
            "did you mean `inputs`?",
        ),
        ("inputs.x | uper", "uper", "unknown filter \"uper\"", "did you mean `upper`?"),
        ("inputs.x is strin", "strin", "unknown test \"strin\"", "did you mean `string`?"),
        ("steps", "steps", "`steps` alone has no value", "write `steps.<id>.result`"),
        (
            "steps[inputs.x].result",
            "steps[inputs.x].result",
            "the step must be named in the expression itself, so that its dependencies are known",
            "write `steps.<id>.result` or `steps[\"<id>\"].result`",
        ),
        ("steps.a", "steps.a", "`steps.a` lacks `result` or `status`", "write `steps.a.result` or `steps.a.status`"),
        (
            "steps.my-id.result",
            "steps.my",
            "`steps.my` lacks `result` or `status`",
            "an id with dashes goes in brackets: `steps[\"my-id\"].result`",
        ),
        (
            "steps.a.output.x",
            "steps.a.output.x",
            "a step has `result`, `items` and `status`, not `output`",
            "write `steps.a.result.output`",
        ),
        ("steps.a.status.x", "steps.a.status.x", "a status is plain text: nothing is inside it", ""),
        ("steps[0].result", "steps[0].result", "steps are found by id, not by position", "write `steps.<id>.result`"),
        ("inputs.x = 1", "=", "expected an operator, found `=`", "compare with `==`"),
        ("inputs.x && 1", "&&", "\"&&\" is not an operator", "write `and`"),
        ("!inputs.x", "!", "\"!\" is not an operator", "write `not`"),
        ("1 if 2", "", "expected `else`, found the end", "without `else` there may be no value at all"),
        ("inputs.items()", "(", "there are no functions", "use a filter, as in `inputs.list | length`"),
        ("range(9)", "(", "there are no functions", "use a filter, as in `inputs.list | length`"),
        ("(1, 2)", ",", "expected `)`, found `,`", "a list is written in brackets: `[1, 2]`"),
        ("'abc", "'abc", "the text has no closing quote", ""),
        ("'\\q'", "\\q", "unknown escape \"\\q\"", "write `\\\\` for a backslash"),
        ("'\\ud800'", "\\u", "expected four hex digits of a character after \\u", ""),
        ("99999999999999999999", "99999999999999999999", "the number does not fit into 64 bits", ""),
        ("inputs.1st", "1", "a name cannot begin with a digit", "put it in brackets: `[\"1st\"]`"),
        ("'a'[::2]", ":", "a slice has no step here", ""),
        ("'a'[1:2:3]", ":", "a slice has no step here", ""),
        ("[1 2]", "2", "expected `,` or `]`, found `2`", ""),
        ("1 +", "", "expected a value, found the end", ""),
        ("1 2", "2", "expected the end of the expression, found `2`", ""),
        ("inputs.x | replace('a')", "replace('a')", "filter \"replace\" needs its argument \"new\"", ""),
        ("inputs.x | trim('a', 'b')", "'b'", "filter \"trim\" takes 1 arguments at the most", ""),
        ("inputs.x | default(1, value=2)", "value", "\"value\" is given twice", ""),
        ("inputs.x | sort(revers=true)", "revers", "unknown argument \"revers\"", "did you mean `reverse`?"),
        ("inputs.x | select(inputs.y)", "inputs.y", "expected the name of a test in quotes", ""),
        ("inputs.x | select('evn')", "'evn'", "unknown test \"evn\"", "did you mean `even`?"),
        ("inputs.x is and", "and", "expected a test, found `and`", ""),
        ("inputs.", "", "expected a name or a position after the dot, found the end", ""),
        ("1 § 2", "§", "unexpected character \"§\"", ""),
        (
            "a not b",
            "a",
            "unknown name \"a\", expected one of inputs, steps, key, result, parameters, item, index",
            "there are: inputs, steps, key, result, parameters, item, index",
        ),
        ("1 not 2", "2", "expected `in`, found `2`", ""),
    ] {
        let error = refusal(source);
        assert_eq!(error.message, message, "{source}");
        assert_eq!(error.hint.as_deref().unwrap_or_default(), hint, "{source}");
        assert_eq!(error.range.and_then(|range| source.get(range)), Some(underlined), "{source}");
    }
    assert!(refusal(&"1".repeat(limits::EXPRESSION_BYTES_MAX + 1)).message.contains("more than 4096"));
}

/// The longest text made of the parts that is still an expression by length.
fn filled(start: &str, part: &str, end: &str) -> String {
    let room = limits::EXPRESSION_BYTES_MAX - start.len() - end.len();
    format!("{start}{}{end}", part.repeat(room / part.len()))
}

/// `open` and `close` around `core`, as often as the limits allow, or once more than they do.
fn nested(open: &str, core: &str, close: &str, levels: usize) -> String {
    format!("{}{core}{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn the_worst_expressions_fit_a_small_stack() {
    // Half the stack that threads have by default, in debug builds too.
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let checked = small.spawn(|| {
        let mut values = 0;
        for source in [
            filled("1", "+1", ""),
            filled("1", "*1", ""),
            filled("1", "**1", ""),
            filled("'a'", "~1", ""),
            filled("1", "<1", ""),
            filled("true", " and true", ""),
            filled("true", " or true", ""),
            filled("'a'", "|trim", ""),
            filled("'a'", " is string", ""),
            filled("inputs", ".a", ""),
            filled("inputs", "[0]", ""),
            filled("[", "1,", "]"),
            filled("{", "'a':1,", "}"),
        ] {
            let expression = Expression::compile(&source).unwrap_or_else(|error| panic!("{error}: {source}"));
            values += usize::from(expression.evaluate(&here()).is_ok());
        }
        let shapes = [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{'a':", "1", "}"),
            ("not ", "1", ""),
            ("-", "1", ""),
            ("1 if 1 else ", "1", ""),
            ("'a'|default(", "1", ")"),
            ("inputs.gone|default(", "1", ")"),
            ("1 is eq(", "1", ")"),
            ("'abc'[", "0", ":]"),
            ("inputs[", "'n'", "]"),
            ("[1]+[-", "(1)", "]"),
            ("(1<-(not [", "1", "]==[]))"),
            ("(1+1*1**[{'a':'a'|default('b'|default(", "1", "))}]|length)"),
        ];
        for (open, core, close) in shapes {
            for levels in [1, 8, 12, 15, 20, 30, 31, 32, 61, 62, 63, 64, 65, 1000] {
                let source = nested(open, core, close, levels);
                if source.len() > limits::EXPRESSION_BYTES_MAX {
                    continue;
                }
                match Expression::compile(&source) {
                    Ok(expression) => values += usize::from(expression.evaluate(&here()).is_ok()),
                    Err(error) => assert_eq!(error.message, "more than 32 levels of nesting", "{source}"),
                }
            }
        }
        values
    });
    let values = checked.unwrap().join().expect("no overflow and no panic");
    assert!(values > 70, "{values}");
}

#[test]
fn nothing_grows_beyond_the_limit() {
    let quarter = "x".repeat(limits::COMPUTED_BYTES_MAX / 4);
    let scope = PlainScope {
        inputs: json!({"s": quarter, "list": vec![json!("y"); 20_000], "words": "a ".repeat(40_000)}),
        result: Value::Null,
        item: Value::Null,
    };
    for source in [
        filled("inputs.s", "~inputs.s", ""),
        filled("inputs.s", "+inputs.s", ""),
        filled("[", "inputs.s,", "]"),
        filled("inputs.list", "+inputs.list", ""),
        filled("[", "inputs.list,", "]"),
        filled("{'a':1", ",'b'~inputs.s:inputs.s", "}"),
        "inputs.list | join(inputs.s)".to_owned(),
        "inputs.s | replace('x', inputs.s)".to_owned(),
        "inputs.words | split(' ') | join(inputs.s)".to_owned(),
        format!("inputs.s{}", "|tojson".repeat(500)),
        format!("inputs.s{}", "|replace('x','xx')".repeat(200)),
        format!("inputs.list{}", "|sort|reverse".repeat(200)),
        "inputs.s ~ inputs.s ~ inputs.s ~ inputs.s ~ inputs.s".to_owned(),
        "[inputs.list, inputs.list, inputs.list, inputs.list, inputs.list]".to_owned(),
    ] {
        let expression = Expression::compile(&source).unwrap();
        let result = expression.evaluate(&scope);
        assert!(matches!(result, Err(EvaluationError::Limit { .. })), "{source}: {result:?}");
    }
    for source in ["'a' * 100000000", "[0] * 100000000", "100000000 * 'a'"] {
        assert!(matches!(failure(source), EvaluationError::Unfit { .. }), "{source}");
    }
    // A value that is only read is not copied and does not count.
    let large = PlainScope { inputs: json!({"s": "x".repeat(16 << 20)}), result: Value::Null, item: Value::Null };
    assert_eq!(Expression::compile("inputs.s | length").unwrap().evaluate(&large), Ok(json!(16 << 20)));
    let limit = Err(EvaluationError::Limit { limit: "PARAMETERS_BYTES_MAX", max: 16 << 20 });
    assert_eq!(Expression::compile("inputs.s").unwrap().evaluate(&large), limit);
}

#[test]
fn data_is_never_evaluated() {
    let openings = ["{{", "{%", "{#", "${", "#{", "<%=", "[[", "{{=", "@(", "{{-", "*{", "~[", "%{", "{{{", "$("];
    let bodies = [
        "7*7",
        "inputs.secret",
        "config.items()",
        "self.__init__.__globals__",
        "''.__class__.__mro__[1].__subclasses__()",
        "steps.a.result",
        "range(1000000000)",
        "'a'*100000000",
        "require('child_process').execSync('id')",
        "T(java.lang.Runtime).getRuntime().exec('id')",
        "constructor.constructor('return process')()",
        "cycler.__init__.__globals__.os.popen('id').read()",
        "set x = 1",
        "import 'os' as os",
    ];
    let closings = ["}}", "%}", "#}", "}", ")", "]]"];
    let mut count = 0;
    for opening in openings {
        for body in bodies {
            let text = format!("{opening} {body} {}", closings[count % closings.len()]);
            let scope = PlainScope { inputs: json!({"x": text}), result: json!({ "x": text }), item: json!(text) };
            for source in
                ["inputs.x", "inputs.x ~ ''", "result.x | string", "item", "[inputs.x] | join", "inputs.x + ''"]
            {
                let value = Expression::compile(source).unwrap().evaluate(&scope).unwrap();
                assert_eq!(value, json!(text), "{source}");
            }
            count += 1;
        }
    }
    assert!(count >= 200, "{count}");
}

#[test]
fn every_filter_and_test_is_documented() {
    let document = include_str!("../../../../../docs/expressions.md");
    for name in filter::names().chain(test::names()) {
        assert!(document.contains(&format!("`{name}")), "docs/expressions.md does not mention `{name}`");
    }
    for (name, about) in filter::abouts() {
        assert!(document.contains(about), "docs/expressions.md does not say of `{name}`: {about}");
    }
}

#[test]
fn the_examples_of_the_documentation_are_true() {
    let document = include_str!("../../../../../docs/expressions.md");
    let scope: Value = block(document, "```json\n");
    let scope = PlainScope { inputs: scope["inputs"].clone(), result: scope["result"].clone(), item: Value::Null };
    let mut count = 0;
    for line in document.lines() {
        let Some((source, expected)) = line.split_once("  →  ") else { continue };
        let expected: Value = serde_json::from_str(expected).unwrap_or_else(|error| panic!("{line}: {error}"));
        let expression = Expression::compile(source.trim()).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(expression.evaluate(&scope), Ok(expected), "{line}");
        count += 1;
    }
    assert!(count >= 20, "{count}");
}

fn block(document: &str, fence: &str) -> Value {
    let start = document.find(fence).expect("a block") + fence.len();
    let end = start + document[start..].find("```").expect("its end");
    serde_json::from_str(&document[start..end]).expect("JSON")
}

/// Words that make up expressions, many of them wrong together.
const VOCABULARY: [&str; 54] = [
    "inputs",
    ".n",
    ".list",
    ".name",
    ".z",
    "[0]",
    "[1:]",
    "[:-1]",
    "['k']",
    "1",
    "2",
    "2.5",
    "'a'",
    "'b'",
    "[1,2]",
    "{'a':1}",
    "true",
    "none",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "~",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "|",
    "length",
    "upper",
    "sort",
    "first",
    "default(1)",
    "defined",
    "odd",
    "🌍",
];

/// Expressions that mean the same in Jinja, except that we refuse to mix types.
fn jinja() -> impl Strategy<Value = String> {
    let scalar =
        prop::sample::select(&["0", "1", "7", "2.5", "-3", "'a'", "'Ada'", "'12'", "inputs.n", "inputs.name"][..]);
    let operators = ["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "and", "or"];
    let equalities = ["==", "!=", "in", "not in"];
    let filters = [
        "length",
        "upper",
        "lower",
        "trim",
        "int",
        "float",
        "abs",
        "round",
        "round(1)",
        "first",
        "last",
        "min",
        "max",
        "sum",
        "sort",
        "sort(reverse=true)",
        "unique",
        "reverse",
        "default(1)",
        "select('odd')",
        "reject('odd')",
        "selectattr('ok')",
        "map(attribute='id')",
        "replace('a', 'bb')",
        "split(',')",
    ];
    let tests = ["odd", "even", "defined", "undefined", "none", "string", "mapping"];
    let leaf = prop_oneof![
        scalar.clone().prop_map(str::to_owned),
        prop::sample::select(
            &["inputs.list", "inputs.words", "inputs.price", "inputs.z.b", "[1, 2]", "inputs.people"][..]
        )
        .prop_map(str::to_owned),
        (scalar.clone(), scalar).prop_map(|(a, b)| format!("({a} ~ {b})")),
    ];
    // Here true is not 1, so only values that are not booleans are compared.
    let leaf = prop_oneof![
        leaf.clone(),
        (leaf.clone(), prop::sample::select(equalities.to_vec()), leaf)
            .prop_map(|(a, equality, b)| format!("{a} {equality} {b}")),
    ];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(operators.to_vec()), inner.clone())
                .prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
            (inner.clone(), prop::sample::select(filters.to_vec())).prop_map(|(a, filter)| format!("({a}) | {filter}")),
            (inner.clone(), prop::sample::select(filters.to_vec())).prop_map(|(a, filter)| format!("{a} | {filter}")),
            (inner.clone(), prop::sample::select(tests.to_vec())).prop_map(|(a, test)| format!("({a}) is {test}")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("(not {a})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            (-3..3_i32).prop_map(|at| format!("inputs.list[{at}]")),
            (inner.clone(), -3..4_i32, -3..4_i32).prop_map(|(a, from, to)| format!("({a})[{from}:{to}]")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_compiled_or_refused(text in ".{0,60}") {
        if let Ok(expression) = Expression::compile(&text) {
            let _ = expression.evaluate(&here());
        }
    }

    #[test]
    fn any_words_are_compiled_or_refused(words in prop::collection::vec(prop::sample::select(&VOCABULARY[..]), 1..14)) {
        let text = words.join(" ");
        match Expression::compile(&text) {
            Ok(expression) => { let _ = expression.evaluate(&here()); }
            Err(error) => {
                let range = error.range.expect("only the length has no place");
                prop_assert!(text.get(range).is_some());
            }
        }
    }

    /// If both have a value, it is the same in Jinja.
    #[test]
    fn values_agree_with_jinja(source in jinja()) {
        let ours = Expression::compile(&source).map(|expression| expression.evaluate(&here()));
        let environment = minijinja::Environment::new();
        let theirs = environment.compile_expression(&source);
        prop_assert!(ours.is_ok() || theirs.is_err(), "{}", source);
        let context = minijinja::value::Value::from(minijinja::value::Serde(json!({ "inputs": here().inputs })));
        if let (Ok(Ok(ours)), Ok(theirs)) = (ours, theirs.and_then(|expression| expression.eval(context))) {
            prop_assert_eq!(ours, serde_json::to_value(theirs).unwrap(), "{}", source);
        }
    }
}
