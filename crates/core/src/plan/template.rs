//! Templates: JSON with expressions in its strings.

use super::expression::{
    EvaluationError, Expression, ExpressionError, ExpressionScope, find_close, json_bytes, write_text,
};
use crate::limits;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Parameters in which strings may hold `{{ expression }}`. Keys are never evaluated. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct ParameterTemplate {
    /// The source value.
    value: Arc<Value>,
    holes: Arc<[(String, TemplateHole)]>,
    secrets: Arc<[(String, String)]>,
    /// The bytes of the value as JSON without those of its holes.
    fixed_bytes: usize,
}

/// A string with one or more expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateHole {
    /// Exactly one expression; its value keeps its JSON type.
    Whole(Expression),
    /// Expressions within text; the result is text.
    Text(Vec<TemplatePiece>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum TemplatePiece {
    Text(String),
    Expression(Expression),
}

/// A mistake in a template, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct TemplateError {
    /// JSON Pointer within the value.
    pub pointer: String,
    pub error: ExpressionError,
    /// The bytes of the string to underline.
    pub range: Option<Range<usize>>,
}

/// Why a template cannot be rendered, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct RenderError {
    /// JSON Pointer within the value.
    pub pointer: String,
    pub error: EvaluationError,
}

impl ParameterTemplate {
    /// Compiles every expression in it, or returns all mistakes.
    pub fn compile(value: Arc<Value>) -> Result<ParameterTemplate, Vec<TemplateError>> {
        let mut compiler = TemplateCompiler::default();
        compiler.value(&value, &mut String::new(), 0);
        let bytes = json_bytes(&value, limits::TEMPLATE_BYTES_MAX);
        if bytes.is_none() {
            let message = format!("the value has more than {} bytes", limits::TEMPLATE_BYTES_MAX);
            compiler.errors.push(TemplateError::new("", message, None));
        }
        if !compiler.errors.is_empty() {
            return Err(compiler.errors);
        }
        let written = compiler.holes.iter().filter_map(|(pointer, _)| value.pointer(pointer));
        let of_holes: usize = written.filter_map(|hole| json_bytes(hole, limits::TEMPLATE_BYTES_MAX)).sum();
        let fixed_bytes = bytes.unwrap_or_default().saturating_sub(of_holes);
        Ok(ParameterTemplate { value, holes: compiler.holes.into(), secrets: compiler.secrets.into(), fixed_bytes })
    }

    /// The value with every hole filled. Without holes nothing is copied.
    pub fn render(&self, scope: &dyn ExpressionScope) -> Result<Arc<Value>, RenderError> {
        if self.holes.is_empty() {
            return Ok(Arc::clone(&self.value));
        }
        let mut rendered = Value::clone(&self.value);
        self.fill(scope, |pointer, value| {
            if let Some(slot) = rendered.pointer_mut(pointer) {
                *slot = value.into_owned();
            }
        })?;
        Ok(Arc::new(rendered))
    }

    /// Whether it can be rendered. Copies none of the values it would pass on.
    pub fn can_render(&self, scope: &dyn ExpressionScope) -> Result<(), RenderError> {
        self.fill(scope, |_, _| ())
    }

    /// Evaluates every hole. The sizes are counted before anything is copied.
    fn fill(&self, scope: &dyn ExpressionScope, mut take: impl FnMut(&str, Cow<'_, Value>)) -> Result<(), RenderError> {
        let mut room = limits::PARAMETERS_BYTES_MAX.saturating_sub(self.fixed_bytes);
        for (pointer, hole) in self.holes.iter() {
            let wrong = |error| RenderError { pointer: pointer.clone(), error };
            let (value, bytes) = hole.value(scope).map_err(wrong)?;
            room = room.checked_sub(bytes).ok_or_else(|| wrong(EvaluationError::parameters_too_large()))?;
            take(pointer, value);
        }
        Ok(())
    }

    /// The source value, with its expressions.
    pub fn source(&self) -> &Value {
        &self.value
    }

    /// The holes with their pointers, in document order.
    pub fn holes(&self) -> &[(String, TemplateHole)] {
        &self.holes
    }

    /// Pointer and name of every secret. Only these are resolved, not data that looks like a reference.
    pub fn secrets(&self) -> &[(String, String)] {
        &self.secrets
    }

    /// Pointer and path of every read.
    pub fn reads(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.holes.iter().flat_map(|(pointer, hole)| {
            hole.expressions()
                .flat_map(|expression| expression.reads.iter())
                .map(move |path| (pointer.as_str(), path.as_slice()))
        })
    }

    pub fn uses_key(&self) -> bool {
        self.key_places().next().is_some()
    }

    /// The pointers of the strings that read the idempotency key.
    pub fn key_places(&self) -> impl Iterator<Item = &str> {
        let reads_key =
            |(pointer, path): (_, &[String])| path.first().is_some_and(|root| root == "key").then_some(pointer);
        self.reads().filter_map(reads_key)
    }

    /// The value, if it has no holes.
    pub fn constant(&self) -> Option<&Value> {
        self.holes.is_empty().then_some(&*self.value)
    }

    /// The expression at the pointer, if the string there is only an expression.
    pub fn whole(&self, pointer: &str) -> Option<&Expression> {
        self.holes.iter().find_map(|(at, hole)| match hole {
            TemplateHole::Whole(expression) if at == pointer => Some(expression),
            _ => None,
        })
    }
}

impl TemplateHole {
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let (whole, pieces) = match self {
            TemplateHole::Whole(expression) => (Some(expression), [].as_slice()),
            TemplateHole::Text(pieces) => (None, pieces.as_slice()),
        };
        whole.into_iter().chain(pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Expression(expression) => Some(expression),
            TemplatePiece::Text(_) => None,
        }))
    }

    /// Its value, and the bytes of that as JSON. A whole value that is only picked is passed on as it is; a text is
    /// computed.
    fn value<'a>(&'a self, scope: &'a dyn ExpressionScope) -> Result<(Cow<'a, Value>, usize), EvaluationError> {
        let pieces = match self {
            TemplateHole::Whole(expression) => return expression.look_up(scope),
            TemplateHole::Text(pieces) => pieces,
        };
        let mut text = String::new();
        for piece in pieces {
            match piece {
                TemplatePiece::Text(literal) => text.push_str(literal),
                TemplatePiece::Expression(expression) => {
                    let (value, bytes) = expression.look_up(scope)?;
                    let more = value.as_str().map_or(bytes, str::len);
                    if text.len() + more > limits::COMPUTED_BYTES_MAX {
                        return Err(EvaluationError::too_large());
                    }
                    write_text(&value, &mut text).map_err(|message| EvaluationError::Unfit {
                        message: message.to_owned(),
                        range: 0..expression.source.len(),
                    })?;
                }
            }
        }
        let text = Value::String(text);
        let bytes = json_bytes(&text, limits::COMPUTED_BYTES_MAX).ok_or_else(EvaluationError::too_large)?;
        Ok((Cow::Owned(text), bytes))
    }
}

#[derive(Default)]
struct TemplateCompiler {
    holes: Vec<(String, TemplateHole)>,
    secrets: Vec<(String, String)>,
    errors: Vec<TemplateError>,
}

impl TemplateCompiler {
    fn value(&mut self, value: &Value, pointer: &mut String, depth: usize) {
        if depth > limits::DEPTH_MAX {
            let message = format!("more than {} levels of nesting", limits::DEPTH_MAX);
            self.errors.push(TemplateError::new(pointer, message, None));
            return;
        }
        let length = pointer.len();
        match value {
            Value::String(text) => self.string(text, pointer),
            Value::Array(items) => {
                for (position, item) in items.iter().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&position.to_string());
                    self.value(item, pointer, depth + 1);
                    pointer.truncate(length);
                }
            }
            Value::Object(map) => {
                if map.len() == 1
                    && let Some(Value::String(name)) = map.get("secret")
                {
                    return self.secret(name, pointer);
                }
                for (key, item) in map {
                    pointer.push('/');
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    self.value(item, pointer, depth + 1);
                    pointer.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn secret(&mut self, name: &str, pointer: &str) {
        let is_name = (1..=limits::NAME_CHARS_MAX).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        match is_name {
            true => self.secrets.push((pointer.to_owned(), name.to_owned())),
            false => {
                let message = "a secret is named by 1 to 128 letters, digits, `_`, `.` or `-`".to_owned();
                self.errors.push(TemplateError::new(&format!("{pointer}/secret"), message, None));
            }
        }
    }

    fn string(&mut self, text: &str, pointer: &str) {
        let mut pieces = Vec::new();
        let mut rest = 0;
        let errors = self.errors.len();
        while let Some(open) = text[rest..].find("{{").map(|at| rest + at) {
            self.literal(text, rest..open, pointer, &mut pieces);
            let start = open + 2;
            let Some(close) = find_close(text, start) else {
                self.wrong(pointer, "`{{` has no closing `}}`", open..text.len(), "{{ '{{' }}");
                return;
            };
            if text[start..].starts_with(['-', '+']) {
                let message = "whitespace control is not available";
                self.wrong(pointer, message, open..start + 1, "{{ -1 }}");
            } else {
                self.expression(&text[start..close], start, pointer, &mut pieces);
            }
            rest = close + 2;
        }
        self.literal(text, rest..text.len(), pointer, &mut pieces);
        if self.errors.len() > errors {
            return;
        }
        match pieces.as_mut_slice() {
            [TemplatePiece::Expression(expression)] => {
                self.holes.push((pointer.to_owned(), TemplateHole::Whole(expression.clone())));
            }
            pieces if pieces.iter().any(|piece| matches!(piece, TemplatePiece::Expression(_))) => {
                self.holes.push((pointer.to_owned(), TemplateHole::Text(pieces.to_vec())));
            }
            _ => {}
        }
    }

    fn literal(&mut self, text: &str, range: Range<usize>, pointer: &str, pieces: &mut Vec<TemplatePiece>) {
        let literal = &text[range.clone()];
        for (mark, instead) in [("{%", "{{ '{%' }}"), ("{#", "{{ '{#' }}")] {
            if let Some(at) = literal.find(mark) {
                let at = range.start + at;
                self.wrong(pointer, &format!("`{mark}` is not available, only `{{{{ … }}}}` is"), at..at + 2, instead);
            }
        }
        if !literal.is_empty() {
            pieces.push(TemplatePiece::Text(literal.to_owned()));
        }
    }

    fn expression(&mut self, padded: &str, start: usize, pointer: &str, pieces: &mut Vec<TemplatePiece>) {
        let source = padded.trim();
        let start = start + (padded.len() - padded.trim_start().len());
        match Expression::compile(source) {
            Ok(expression) => pieces.push(TemplatePiece::Expression(expression)),
            Err(error) => {
                let range = error.range.clone().unwrap_or(0..source.len());
                let range = Some(start + range.start..start + range.end);
                self.errors.push(TemplateError { pointer: pointer.to_owned(), error, range });
            }
        }
    }

    fn wrong(&mut self, pointer: &str, message: &str, range: Range<usize>, instead: &str) {
        let mut error = TemplateError::new(pointer, message.to_owned(), Some(range));
        error.error.hint = Some(format!("write `{instead}`"));
        self.errors.push(error);
    }
}

impl TemplateError {
    fn new(pointer: &str, message: String, range: Option<Range<usize>>) -> TemplateError {
        let error = ExpressionError { message, range: range.clone(), hint: None };
        TemplateError { pointer: pointer.to_owned(), error, range }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    struct InputsScope(Value);

    impl ExpressionScope for InputsScope {
        fn inputs(&self) -> Option<&Value> {
            Some(&self.0)
        }
        fn step_result(&self, _: &str) -> Option<&Value> {
            None
        }
        fn step_status(&self, _: &str) -> Option<&'static str> {
            None
        }
        fn key(&self) -> Option<&str> {
            Some("k1")
        }
        fn result(&self) -> Option<&Value> {
            None
        }
        fn parameters(&self) -> Option<&Value> {
            None
        }
        fn item(&self) -> Option<(&Value, u32)> {
            None
        }
    }

    fn inputs() -> InputsScope {
        InputsScope(
            json!({"n": 3, "s": "a {{ inputs.n }} b", "list": [1, {"a": null}], "nil": null, "yes": true, "f": 1.0}),
        )
    }

    fn render(value: Value) -> Result<Value, RenderError> {
        let template =
            ParameterTemplate::compile(Arc::new(value.clone())).unwrap_or_else(|errors| panic!("{value}: {errors:?}"));
        template.render(&inputs()).map(|rendered| Value::clone(&rendered))
    }

    #[test]
    fn a_lone_expression_keeps_its_type_and_within_text_it_becomes_text() {
        for (template, expected) in [
            (json!("{{ inputs.n }}"), json!(3)),
            (json!("{{inputs.list}}"), json!([1, {"a": null}])),
            (json!("{{ inputs.nil }}"), json!(null)),
            (json!("{{ inputs.s }}"), json!("a {{ inputs.n }} b")),
            (json!(" {{ inputs.n }}"), json!(" 3")),
            (json!("{{ inputs.n }}{{ inputs.n }}"), json!("33")),
            (json!("{{ inputs.s }}!"), json!("a {{ inputs.n }} b!")),
            (json!("{{ inputs.yes }}, {{ inputs.f }}, {{ inputs.list }}"), json!("true, 1.0, [1,{\"a\":null}]")),
            (json!("{{ '{{' }} {{ '}}' }} }} }"), json!("{{ }} }} }")),
            (json!("{{ {'a': {'b': 1}} }}"), json!({"a": {"b": 1}})),
            (json!("{{ \"}}\" ~ '\\'}}' }}"), json!("}}'}}")),
            (json!({"{{ inputs.n }}": ["{{ inputs.n }}", 1]}), json!({"{{ inputs.n }}": [3, 1]})),
            (json!({"a/b~c": {"": "{{ inputs.n }}"}}), json!({"a/b~c": {"": 3}})),
            (json!("{ { } % # {"), json!("{ { } % # {")),
            (json!({"z": "{{ inputs.n }}", "a": 1}), json!({"z": 3, "a": 1})),
        ] {
            assert_eq!(render(template.clone()), Ok(expected), "{template}");
        }
    }

    #[test]
    fn every_mistake_is_found_at_once_and_underlined() {
        let value = json!({
            "a": "text {{ input.x }} and {{ 1 + }}",
            "b": ["{% if x %}", "{# note #}", "{{ inputs.x"],
            "c/d": "{{- inputs.x }}",
            "e": {"secret": "{{ inputs.x }}"},
            "f": "fine {{ inputs.x }}",
        });
        let errors = ParameterTemplate::compile(Arc::new(value.clone())).unwrap_err();
        let found: Vec<(&str, &str)> = errors
            .iter()
            .map(|error| {
                let text = value.pointer(&error.pointer).and_then(Value::as_str).unwrap();
                (error.pointer.as_str(), error.range.clone().map_or("", |range| &text[range]))
            })
            .collect();
        assert_eq!(
            found,
            [
                ("/a", "input"),
                ("/a", ""),
                ("/b/0", "{%"),
                ("/b/1", "{#"),
                ("/b/2", "{{ inputs.x"),
                ("/c~1d", "{{-"),
                ("/e/secret", ""),
            ]
        );
        assert_eq!(errors[2].error.hint.as_deref(), Some("write `{{ '{%' }}`"));
        assert_eq!(errors[4].error.message, "`{{` has no closing `}}`");
    }

    #[test]
    fn a_missing_value_is_reported_with_its_pointer() {
        for (template, pointer, message) in [
            (
                json!({"a": ["x", "{{ inputs.gone }}"]}),
                "/a/1",
                "inputs.gone is missing; there are: n, s, list, nil, yes, f",
            ),
            (
                json!({"a": "see {{ inputs.nil }}"}),
                "/a",
                "null cannot become text; give a replacement with `| default(…, true)`",
            ),
        ] {
            let error = render(template).unwrap_err();
            assert_eq!((error.pointer.as_str(), error.to_string().as_str()), (pointer, message));
        }
    }

    #[test]
    fn secrets_are_found_where_they_are_written_and_nowhere_else() {
        let value = json!({
            "token": {"secret": "payments_token"},
            "list": [{"secret": "a.b-c"}],
            "no": {"secret": "x", "other": 1},
            "flag": {"secret": true},
            "data": "{{ inputs.s }}",
        });
        let template = ParameterTemplate::compile(Arc::new(value.clone())).unwrap();
        let secrets = [("/token".to_owned(), "payments_token".to_owned()), ("/list/0".to_owned(), "a.b-c".to_owned())];
        assert_eq!(template.secrets(), secrets);
        let scope = InputsScope(json!({"s": {"secret": "root_password"}}));
        assert_eq!(template.render(&scope).unwrap()["token"], value["token"]);
        assert_eq!(template.secrets(), secrets);
    }

    #[test]
    fn a_template_knows_what_it_reads() {
        let value = json!({"a": "{{ inputs.x ~ key }}", "b": "{{ steps.s.result.y }} {{ inputs.x }}", "c": 1});
        let template = ParameterTemplate::compile(Arc::new(value.clone())).unwrap();
        let reads: Vec<(&str, String)> = template.reads().map(|(pointer, path)| (pointer, path.join("."))).collect();
        let expected = [("/a", "inputs.x"), ("/a", "key"), ("/b", "steps.s.result.y"), ("/b", "inputs.x")];
        assert_eq!(reads, expected.map(|(pointer, path)| (pointer, path.to_owned())));
        assert!(template.uses_key());
        assert!(template.whole("/a").is_some());
        assert!(template.whole("/b").is_none());
        assert!(template.whole("/c").is_none());
        assert_eq!(template.constant(), None);
    }

    #[test]
    fn without_holes_nothing_is_copied() {
        let template = ParameterTemplate::compile(Arc::new(json!({"a": [1, "x"]}))).unwrap();
        let first = template.render(&inputs()).unwrap();
        assert!(Arc::ptr_eq(&first, &template.render(&inputs()).unwrap()));
        assert_eq!(template.constant(), Some(&*first));
        assert!(!template.uses_key());
    }

    /// The limit that rendering the template exceeds, if any.
    fn exceeded(template: Value, scope: &InputsScope) -> Option<&'static str> {
        let template = ParameterTemplate::compile(Arc::new(template)).unwrap();
        assert_eq!(template.render(scope).err(), template.can_render(scope).err());
        match template.render(scope) {
            Err(RenderError { error: EvaluationError::Limit { limit, .. }, .. }) => Some(limit),
            Err(other) => panic!("{other}"),
            Ok(rendered) => {
                assert!(rendered.to_string().len() <= limits::PARAMETERS_BYTES_MAX);
                None
            }
        }
    }

    #[test]
    fn computed_values_do_not_grow_beyond_their_limit() {
        // With the quotes a text of this length has as many bytes as may be computed.
        let scope = InputsScope(json!({"half": "x".repeat(limits::COMPUTED_BYTES_MAX / 2 - 1)}));
        let computed = Some("COMPUTED_BYTES_MAX");
        assert_eq!(exceeded(json!("{{ inputs.half }}{{ inputs.half }}"), &scope), None);
        assert_eq!(exceeded(json!("{{ inputs.half }}x{{ inputs.half }}"), &scope), computed);
        assert_eq!(exceeded(json!("{{ inputs.half ~ inputs.half }}"), &scope), None);
        assert_eq!(exceeded(json!("{{ inputs.half ~ inputs.half ~ 'x' }}"), &scope), computed);
        assert_eq!(exceeded(json!("{{ inputs.half ~ 'x' }}{{ inputs.half ~ 'x' }}"), &scope), computed);
        assert_eq!(exceeded(json!("{{ [inputs.half, inputs.half] }}"), &scope), computed);
        assert!(ParameterTemplate::compile(Arc::new(json!("x".repeat(limits::TEMPLATE_BYTES_MAX - 2)))).is_ok());
        assert!(ParameterTemplate::compile(Arc::new(json!("x".repeat(limits::TEMPLATE_BYTES_MAX - 1)))).is_err());
        let deep = (0..limits::DEPTH_MAX + 2).fold(json!(1), |inner, _| json!([inner]));
        assert!(ParameterTemplate::compile(Arc::new(deep.clone())).is_err());
    }

    #[test]
    fn values_that_are_only_picked_may_be_as_large_as_all_parameters() {
        let scope = |less: usize| InputsScope(json!({"a": {"s": "x".repeat(limits::PARAMETERS_BYTES_MAX - less)}}));
        // `{"t":""}` has 8 bytes.
        let (at, above) = (scope(8), scope(7));
        for picked in [
            "{{ inputs.a.s }}",
            "{{ inputs.a['s'] }}",
            "{{ inputs.b | default(inputs.a.s) }}",
            "{{ inputs.a.s | default('') }}",
            "{{ inputs.a.s if inputs.a is defined else '' }}",
            "{{ inputs.b.s if inputs.b is defined else inputs.a.s }}",
            "{{ [inputs.a.s | length][0] and inputs.a.s }}",
        ] {
            assert_eq!(exceeded(json!({ "t": picked }), &at), None, "{picked}");
            assert_eq!(exceeded(json!({ "t": picked }), &above), Some("PARAMETERS_BYTES_MAX"), "{picked}");
        }
        assert_eq!(exceeded(json!({ "t": "a {{ inputs.a.s }}" }), &at), Some("COMPUTED_BYTES_MAX"));
        let all = Some("PARAMETERS_BYTES_MAX");
        assert_eq!(exceeded(json!(vec!["{{ inputs.a.s }}"; 10_000]), &scope(1 << 20)), all);
        let half = InputsScope(json!({"s": "x".repeat(limits::PARAMETERS_BYTES_MAX / 2)}));
        assert_eq!(exceeded(json!(["{{ inputs.s }}", "{{ inputs.s }}"]), &half), all);
    }

    proptest! {
        #[test]
        fn any_text_is_compiled_or_refused(text in "[{}%#' a-z0-9.|\"\\\\é-]{0,40}") {
            match ParameterTemplate::compile(Arc::new(json!({ "a": text }))) {
                Ok(template) => { let _ = template.render(&inputs()); }
                Err(errors) => for error in errors {
                    if let Some(range) = error.range {
                        prop_assert!(text.get(range).is_some());
                    }
                }
            }
        }

        #[test]
        fn text_without_marks_stays_as_it_is(text in "[^{]{0,40}") {
            prop_assert_eq!(render(json!([text])), Ok(json!([text])));
        }
    }
}
