//! From words to a tree. Chains are lists and only brackets nest, so that the depth of the tree is bounded.

use super::filter::{self, Filter};
use super::test::{self, Test};
use super::token::{Token, Word, tokenize, wrong};
use super::{ExpressionError, ROOTS, nearest};
use crate::limits;
use crate::plan::schema::Types;
use serde_json::Value;
use std::ops::Range;

/// A node and the bytes of the source it stands for.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Literal(Value),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Path(Path),
    /// What is inside a value: `[…][0].name`, `inputs.list[inputs.n]`.
    Member(Box<Node>, Vec<Access>),
    /// `… | upper | trim is string`
    Piped(Box<Node>, Vec<Stage>),
    Negative(Box<Node>),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    /// Left to right, all of one binding strength.
    Chain(Box<Node>, Vec<(Operator, Node)>),
    /// Every neighbouring pair must hold: `1 < x < 9`.
    Compare(Box<Node>, Vec<(Comparison, Node)>),
    Choose(Box<Choice>),
}

impl Node {
    /// The types its value can have, where that is plain from how it is written.
    pub(super) fn types(&self) -> Option<Types> {
        match &self.kind {
            Kind::Literal(value) => Some(Types::of(value)),
            Kind::List(_) => Some(Types::ARRAY),
            Kind::Map(_) => Some(Types::OBJECT),
            Kind::Not(_) | Kind::Compare(..) => Some(Types::BOOLEAN),
            Kind::Negative(_) => Some(Types::NUMBER),
            Kind::Chain(_, rest) => match rest.last()?.0 {
                Operator::Concatenate => Some(Types::STRING),
                Operator::Add => None,
                _ => Some(Types::NUMBER),
            },
            Kind::Piped(_, stages) => match stages.last()? {
                Stage::Test { .. } => Some(Types::BOOLEAN),
                Stage::Filter { filter, .. } => filter.gives,
            },
            Kind::Choose(choice) => Some(choice.yes.types()?.or(choice.no.types()?)),
            Kind::Path(_) | Kind::Member(..) | Kind::All(_) | Kind::Any(_) => None,
        }
    }
}

/// A path that begins with a root and is known before anything is evaluated.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) keys: Vec<Key>,
}

#[derive(Debug)]
pub(super) enum Root {
    Inputs,
    StepResult(String),
    StepStatus(String),
    Key,
    Result,
    Parameters,
    Item,
    Index,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    Name(String),
    Position(u64),
}

#[derive(Debug)]
pub(super) enum Access {
    Key(Key),
    Index(Node),
    Slice(Option<Node>, Option<Node>),
}

#[derive(Debug)]
pub(super) enum Stage {
    /// One argument for each of the filter's parameters.
    Filter {
        filter: &'static Filter,
        arguments: Vec<Option<Node>>,
        at: Range<usize>,
    },
    Test {
        test: &'static Test,
        argument: Option<Node>,
        negated: bool,
        at: Range<usize>,
    },
}

#[derive(Debug)]
pub(super) struct Choice {
    pub(super) condition: Node,
    pub(super) yes: Node,
    pub(super) no: Node,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Concatenate,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

/// Reads the source and lists the paths that it reads.
pub(super) fn parse(source: &str) -> Result<(Node, Vec<Vec<String>>), ExpressionError> {
    let mut parser = Parser { source, tokens: tokenize(source)?, next: 0, depth: 0, reads: Vec::new() };
    let node = parser.expression()?;
    match parser.peek() {
        Word::End => Ok((node, parser.reads)),
        Word::Symbol("=") => Err(parser.unexpected("an operator").hint("compare with `==`")),
        _ => Err(parser.unexpected("the end of the expression")),
    }
}

/// Operators by binding strength, the weakest first.
const LEVELS: [&[(&str, Operator)]; 4] = [
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("~", Operator::Concatenate)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("//", Operator::FloorDivide),
        ("%", Operator::Remainder),
    ],
    &[("**", Operator::Power)],
];

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
];

const KEYWORDS: [&str; 7] = ["and", "or", "not", "in", "is", "if", "else"];

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    reads: Vec<Vec<String>>,
}

type Parsed<T> = Result<T, ExpressionError>;

impl Parser<'_> {
    /// `a if condition else b`, or anything that binds stronger.
    fn expression(&mut self) -> Parsed<Node> {
        self.enter()?;
        let mut node = self.either()?;
        if self.take_name("if") {
            let condition = self.either()?;
            if !self.take_name("else") {
                return Err(self.unexpected("`else`").hint("without `else` there may be no value at all"));
            }
            let yes = node;
            let no = self.expression()?;
            let at = yes.at.start..no.at.end;
            node = Node { kind: Kind::Choose(Box::new(Choice { condition, yes, no })), at };
        }
        self.depth -= 1;
        Ok(node)
    }

    fn either(&mut self) -> Parsed<Node> {
        let first = self.both()?;
        let mut rest = Vec::new();
        while self.take_name("or") {
            rest.push(self.both()?);
        }
        Ok(joined(first, rest, Kind::Any))
    }

    fn both(&mut self) -> Parsed<Node> {
        let first = self.negation()?;
        let mut rest = Vec::new();
        while self.take_name("and") {
            rest.push(self.negation()?);
        }
        Ok(joined(first, rest, Kind::All))
    }

    fn negation(&mut self) -> Parsed<Node> {
        let start = self.at().start;
        if !self.take_name("not") {
            return self.comparison();
        }
        self.enter()?;
        let node = self.negation()?;
        self.depth -= 1;
        let at = start..node.at.end;
        Ok(Node { kind: Kind::Not(Box::new(node)), at })
    }

    fn comparison(&mut self) -> Parsed<Node> {
        let first = self.chain(0)?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.take_comparison()? {
            rest.push((comparison, self.chain(0)?));
        }
        let Some((_, last)) = rest.last() else { return Ok(first) };
        let at = first.at.start..last.at.end;
        Ok(Node { kind: Kind::Compare(Box::new(first), rest), at })
    }

    fn take_comparison(&mut self) -> Parsed<Option<Comparison>> {
        if let Word::Symbol(symbol) = self.peek() {
            let found =
                COMPARISONS.iter().find(|(text, _)| text == symbol).map(|(_, comparison)| *comparison);
            self.next += usize::from(found.is_some());
            return Ok(found);
        }
        if self.take_name("in") {
            return Ok(Some(Comparison::In));
        }
        if !self.take_name("not") {
            return Ok(None);
        }
        match self.take_name("in") {
            true => Ok(Some(Comparison::NotIn)),
            false => Err(self.unexpected("`in`")),
        }
    }

    fn chain(&mut self, level: usize) -> Parsed<Node> {
        let Some(operators) = LEVELS.get(level) else { return self.piped() };
        let first = self.chain(level + 1)?;
        let mut rest = Vec::new();
        while let Word::Symbol(symbol) = self.peek() {
            let Some((_, operator)) = operators.iter().find(|(text, _)| text == symbol) else { break };
            self.next += 1;
            rest.push((*operator, self.chain(level + 1)?));
        }
        let Some((_, last)) = rest.last() else { return Ok(first) };
        let at = first.at.start..last.at.end;
        Ok(Node { kind: Kind::Chain(Box::new(first), rest), at })
    }

    /// A value, what is inside it, and the filters and tests behind it.
    fn piped(&mut self) -> Parsed<Node> {
        let node = self.signed()?;
        let mut stages = Vec::new();
        loop {
            if self.take("|") {
                stages.push(self.filter()?);
            } else if self.take_name("is") {
                stages.push(self.test()?);
            } else {
                break;
            }
        }
        if stages.is_empty() {
            return Ok(node);
        }
        let at = node.at.start..self.last_end();
        Ok(Node { kind: Kind::Piped(Box::new(node), stages), at })
    }

    fn signed(&mut self) -> Parsed<Node> {
        let start = self.at().start;
        if !self.take("-") {
            return self.member();
        }
        self.enter()?;
        let node = self.signed()?;
        self.depth -= 1;
        let at = start..node.at.end;
        Ok(Node { kind: Kind::Negative(Box::new(node)), at })
    }

    fn filter(&mut self) -> Parsed<Stage> {
        let (name, mut at) = self.name("a filter")?;
        let Some(filter) = filter::find(&name) else {
            return Err(unknown("filter", &name, at, filter::names()));
        };
        let mut arguments: Vec<Option<Node>> = filter.parameters.iter().map(|_| None).collect();
        if self.take("(") {
            self.arguments(filter, &mut arguments)?;
        }
        at.end = self.last_end();
        if let Some(missing) = (0..filter.required).find(|&position| arguments[position].is_none()) {
            let message = format!("filter \"{name}\" needs its argument \"{}\"", filter.parameters[missing]);
            return Err(wrong(message, at));
        }
        if let Some(Some(node)) = filter.test_at.map(|position| &arguments[position]) {
            check_test_name(node)?;
        }
        Ok(Stage::Filter { filter, arguments, at })
    }

    /// What stands between the parentheses of a filter, by position or by name.
    fn arguments(&mut self, filter: &Filter, arguments: &mut [Option<Node>]) -> Parsed<()> {
        let mut position = 0;
        while !self.take(")") {
            let at = self.at();
            let named = matches!(self.tokens.get(self.next + 1), Some(Token { word: Word::Symbol("="), .. }));
            let slot = if named {
                let (name, at) = self.name("a name")?;
                self.next += 1;
                let found = filter.parameters.iter().position(|parameter| *parameter == name);
                found.ok_or_else(|| unknown("argument", &name, at, filter.parameters.iter().copied()))?
            } else {
                position += 1;
                position - 1
            };
            let node = self.expression()?;
            match arguments.get_mut(slot) {
                Some(free @ None) => *free = Some(node),
                Some(_) => return Err(wrong(format!("\"{}\" is given twice", filter.parameters[slot]), at)),
                None => {
                    let message =
                        format!("filter \"{}\" takes {} arguments at the most", filter.name, arguments.len());
                    return Err(wrong(message, at));
                }
            }
            if !self.take(",") && *self.peek() != Word::Symbol(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        Ok(())
    }

    fn test(&mut self) -> Parsed<Stage> {
        let negated = self.take_name("not");
        let (name, mut at) = match self.peek() {
            // The one test that is spelt like a keyword.
            Word::Name(name) if name == "in" => (name.clone(), self.advance().at),
            _ => self.name("a test")?,
        };
        let Some(test) = test::find(&name) else {
            return Err(unknown("test", &name, at, test::names()));
        };
        let argument = if !test.takes_argument {
            None
        } else if self.take("(") {
            let node = self.expression()?;
            self.expect(")")?;
            Some(node)
        } else {
            Some(self.signed()?)
        };
        at.end = self.last_end();
        Ok(Stage::Test { test, argument, negated, at })
    }

    fn member(&mut self) -> Parsed<Node> {
        let at = self.at();
        if let Word::Name(name) = self.peek()
            && !KEYWORDS.contains(&name.as_str())
            && constant(name).is_none()
        {
            let name = name.clone();
            self.next += 1;
            let accesses = self.accesses()?;
            return self.path(&name, at, accesses);
        }
        let node = self.primary()?;
        let accesses = self.accesses()?;
        if accesses.is_empty() {
            return Ok(node);
        }
        let at = node.at.start..self.last_end();
        Ok(Node { kind: Kind::Member(Box::new(node), accesses), at })
    }

    fn accesses(&mut self) -> Parsed<Vec<Access>> {
        let mut accesses = Vec::new();
        loop {
            if self.take(".") {
                accesses.push(Access::Key(self.dotted()?));
            } else if self.take("[") {
                accesses.push(self.bracketed()?);
            } else if *self.peek() == Word::Symbol("(") {
                return Err(wrong("there are no functions".to_owned(), self.at())
                    .hint("use a filter, as in `inputs.list | length`"));
            } else {
                return Ok(accesses);
            }
        }
    }

    fn dotted(&mut self) -> Parsed<Key> {
        let key = match self.peek() {
            Word::Name(name) => Key::Name(name.clone()),
            Word::Number(number) => Key::Position(number.as_u64().unwrap_or(u64::MAX)),
            _ => return Err(self.unexpected("a name or a position after the dot")),
        };
        self.next += 1;
        Ok(key)
    }

    fn bracketed(&mut self) -> Parsed<Access> {
        let start = match self.peek() {
            Word::Symbol(":") => None,
            _ => Some(self.expression()?),
        };
        if !self.take(":") {
            self.expect("]")?;
            return match start {
                Some(Node { kind: Kind::Literal(Value::String(name)), .. }) => {
                    Ok(Access::Key(Key::Name(name)))
                }
                Some(Node { kind: Kind::Literal(Value::Number(number)), .. }) if number.is_u64() => {
                    Ok(Access::Key(Key::Position(number.as_u64().unwrap_or(u64::MAX))))
                }
                Some(node) => Ok(Access::Index(node)),
                None => Err(self.unexpected("an index")),
            };
        }
        let stop = match self.peek() {
            Word::Symbol("]") => None,
            Word::Symbol(":") => return Err(wrong("a slice has no step here".to_owned(), self.at())),
            _ => Some(self.expression()?),
        };
        if *self.peek() == Word::Symbol(":") {
            return Err(wrong("a slice has no step here".to_owned(), self.at()));
        }
        self.expect("]")?;
        Ok(Access::Slice(start, stop))
    }

    /// Turns a root and what follows it into a path, as far as the path is known now.
    fn path(&mut self, name: &str, root_at: Range<usize>, mut accesses: Vec<Access>) -> Parsed<Node> {
        let at = root_at.start..self.last_end();
        let known = accesses.iter().take_while(|access| matches!(access, Access::Key(_))).count();
        let rest = accesses.split_off(known);
        let mut keys: Vec<Key> = accesses
            .into_iter()
            .filter_map(|access| match access {
                Access::Key(key) => Some(key),
                Access::Index(_) | Access::Slice(..) => None,
            })
            .collect();
        let read = std::iter::once(name.to_owned()).chain(keys.iter().map(Key::to_string)).collect();
        let root = match name {
            "inputs" => Root::Inputs,
            "key" => Root::Key,
            "result" => Root::Result,
            "parameters" => Root::Parameters,
            "item" => Root::Item,
            "index" => Root::Index,
            "steps" => {
                let root = self.step_root(&keys, rest.is_empty(), at.clone())?;
                keys.drain(..2);
                root
            }
            _ => return Err(unknown("name", name, root_at, ROOTS)),
        };
        if !self.reads.contains(&read) {
            self.reads.push(read);
        }
        let node = Node { kind: Kind::Path(Path { root, keys }), at: at.clone() };
        Ok(match rest.is_empty() {
            true => node,
            false => Node { kind: Kind::Member(Box::new(node), rest), at },
        })
    }

    /// `steps.<id>.result` and `steps.<id>.status` are all there is below `steps`.
    fn step_root(&self, keys: &[Key], is_whole: bool, at: Range<usize>) -> Parsed<Root> {
        let step = match keys.first() {
            Some(Key::Name(step)) => step,
            Some(Key::Position(_)) => {
                return Err(wrong("steps are found by id, not by position".to_owned(), at)
                    .hint("write `steps.<id>.result`"));
            }
            None if is_whole => {
                return Err(
                    wrong("`steps` alone has no value".to_owned(), at).hint("write `steps.<id>.result`")
                );
            }
            None => {
                return Err(wrong(
                    "the step must be named in the expression itself, so that its dependencies are known"
                        .to_owned(),
                    at,
                )
                .hint("write `steps.<id>.result` or `steps[\"<id>\"].result`"));
            }
        };
        match keys.get(1) {
            Some(Key::Name(part)) if part == "result" => Ok(Root::StepResult(step.clone())),
            Some(Key::Name(part)) if part == "status" => match keys.len() == 2 && is_whole {
                true => Ok(Root::StepStatus(step.clone())),
                false => Err(wrong("a status is plain text: nothing is inside it".to_owned(), at)),
            },
            Some(other) => {
                let message = format!("a step has `result` and `status`, not `{other}`");
                Err(wrong(message, at).hint(format!("write `steps.{step}.result.{other}`")))
            }
            None => {
                let hint = match self.dashed_id(at.end) {
                    Some(rest) => {
                        format!("an id with dashes goes in brackets: `steps[\"{step}{rest}\"].result`")
                    }
                    None => format!("write `steps.{step}.result` or `steps.{step}.status`"),
                };
                Err(wrong(format!("`steps.{step}` lacks `result` or `status`"), at).hint(hint))
            }
        }
    }

    /// What looks like the rest of an id directly behind `end`: `-id` in `steps.my-id.result`.
    fn dashed_id(&self, end: usize) -> Option<&str> {
        let rest = self.source.get(end..)?;
        let length = rest.find(|c: char| c != '-' && c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
        (length > 1 && rest.starts_with('-')).then(|| &rest[..length])
    }

    fn primary(&mut self) -> Parsed<Node> {
        let token = self.advance();
        let kind = match token.word {
            Word::Text(text) => Kind::Literal(Value::String(text)),
            Word::Number(number) => Kind::Literal(Value::Number(number)),
            Word::Name(name) if constant(&name).is_some() => {
                Kind::Literal(constant(&name).unwrap_or_default())
            }
            Word::Symbol("[") => Kind::List(self.items("]", Parser::expression)?),
            Word::Symbol("{") => Kind::Map(self.items("}", Parser::pair)?),
            Word::Symbol("(") => {
                let node = self.expression()?;
                if *self.peek() == Word::Symbol(",") {
                    return Err(self.unexpected("`)`").hint("a list is written in brackets: `[1, 2]`"));
                }
                self.expect(")")?;
                // The brackets belong to it, so that an error underlines them too.
                return Ok(Node { kind: node.kind, at: token.at.start..self.last_end() });
            }
            _ => {
                self.next -= 1;
                return Err(self.unexpected("a value"));
            }
        };
        Ok(Node { kind, at: token.at.start..self.last_end() })
    }

    fn pair(&mut self) -> Parsed<(Node, Node)> {
        let key = self.expression()?;
        self.expect(":")?;
        Ok((key, self.expression()?))
    }

    /// Items up to the closing bracket; a comma after the last is fine.
    fn items<T>(&mut self, close: &'static str, item: fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(item(self)?);
            if !self.take(",") && *self.peek() != Word::Symbol(close) {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
        Ok(items)
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        match self.depth > limits::EXPRESSION_DEPTH_MAX {
            true => {
                Err(wrong(format!("more than {} levels of nesting", limits::EXPRESSION_DEPTH_MAX), self.at()))
            }
            false => Ok(()),
        }
    }

    fn peek(&self) -> &Word {
        self.tokens.get(self.next).map_or(&Word::End, |token| &token.word)
    }

    fn at(&self) -> Range<usize> {
        self.tokens.get(self.next).map_or(self.source.len()..self.source.len(), |token| token.at.clone())
    }

    fn last_end(&self) -> usize {
        self.next.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |token| token.at.end)
    }

    fn advance(&mut self) -> Token {
        let token = Token { word: self.peek().clone(), at: self.at() };
        self.next += 1;
        token
    }

    fn take(&mut self, symbol: &'static str) -> bool {
        let found = *self.peek() == Word::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    fn take_name(&mut self, expected: &str) -> bool {
        let found = matches!(self.peek(), Word::Name(name) if name == expected);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &'static str) -> Parsed<()> {
        match self.take(symbol) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{symbol}`"))),
        }
    }

    fn name(&mut self, what: &str) -> Parsed<(String, Range<usize>)> {
        match self.peek() {
            Word::Name(name) if !KEYWORDS.contains(&name.as_str()) => Ok((name.clone(), self.advance().at)),
            _ => Err(self.unexpected(what)),
        }
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        let found = match self.peek() {
            Word::End => "the end".to_owned(),
            _ => format!("`{}`", self.source.get(self.at()).unwrap_or_default()),
        };
        wrong(format!("expected {expected}, found {found}"), self.at())
    }
}

fn constant(name: &str) -> Option<Value> {
    match name {
        "true" | "True" => Some(Value::Bool(true)),
        "false" | "False" => Some(Value::Bool(false)),
        "none" | "None" | "null" => Some(Value::Null),
        _ => None,
    }
}

/// One node stands for itself, several are joined.
fn joined(first: Node, mut rest: Vec<Node>, many: fn(Vec<Node>) -> Kind) -> Node {
    let Some(last) = rest.last() else { return first };
    let at = first.at.start..last.at.end;
    rest.insert(0, first);
    Node { kind: many(rest), at }
}

fn check_test_name(node: &Node) -> Parsed<()> {
    match &node.kind {
        Kind::Literal(Value::String(name)) if test::find(name).is_some() => Ok(()),
        Kind::Literal(Value::String(name)) => Err(unknown("test", name, node.at.clone(), test::names())),
        _ => Err(wrong("expected the name of a test in quotes".to_owned(), node.at.clone())),
    }
}

fn unknown(
    what: &str,
    name: &str,
    at: Range<usize>,
    known: impl IntoIterator<Item = &'static str>,
) -> ExpressionError {
    let known: Vec<&str> = known.into_iter().collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("there are: {}", known.join(", ")),
    };
    let message = match what {
        "name" => format!("unknown name \"{name}\", expected one of {}", known.join(", ")),
        _ => format!("unknown {what} \"{name}\""),
    };
    wrong(message, at).hint(hint)
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Name(name) => f.write_str(name),
            Key::Position(position) => write!(f, "{position}"),
        }
    }
}
