//! From words to a tree. Chains are lists and only brackets nest, so that the depth of the tree is bounded.

mod path;
mod stage;

use super::ExpressionError;
use super::node::{Choice, Comparison, Kind, Node, Operator};
use super::token::{Token, Word, tokenize, wrong};
use crate::limits;
use crate::plan::wording::guess;
use serde_json::Value;
use std::ops::Range;

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

const OPERATORS: [(&str, Operator); 8] = [
    ("+", Operator::Add),
    ("-", Operator::Subtract),
    ("~", Operator::Concatenate),
    ("*", Operator::Multiply),
    ("/", Operator::Divide),
    ("//", Operator::FloorDivide),
    ("%", Operator::Remainder),
    ("**", Operator::Power),
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
        let first = self.chain()?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.take_comparison()? {
            rest.push((comparison, self.chain()?));
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

    /// Operands and the operators between them. Read flat and grouped after, to spare the stack.
    fn chain(&mut self) -> Parsed<Node> {
        let first = self.piped()?;
        let mut rest = Vec::new();
        while let Word::Symbol(symbol) = self.peek() {
            let Some((_, operator)) = OPERATORS.iter().find(|(text, _)| text == symbol) else { break };
            self.next += 1;
            rest.push((*operator, self.piped()?));
        }
        Ok(grouped(first, rest))
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

/// Joins what the strongest operators hold together, then the next, down to the weakest.
fn grouped(mut first: Node, mut rest: Vec<(Operator, Node)>) -> Node {
    for strength in (0..=Operator::STRENGTH_MAX).rev() {
        let mut weaker: Vec<(Operator, Node)> = Vec::new();
        let mut run: Vec<(Operator, Node)> = Vec::new();
        for (operator, node) in rest {
            if operator.strength() == strength {
                run.push((operator, node));
                continue;
            }
            close(weaker.last_mut().map_or(&mut first, |(_, last)| last), &mut run);
            weaker.push((operator, node));
        }
        close(weaker.last_mut().map_or(&mut first, |(_, last)| last), &mut run);
        rest = weaker;
    }
    first
}

/// Makes a chain of the node and the run behind it.
fn close(node: &mut Node, run: &mut Vec<(Operator, Node)>) {
    let Some((_, last)) = run.last() else { return };
    let at = node.at.start..last.at.end;
    let first = std::mem::replace(node, Node { kind: Kind::Literal(Value::Null), at: at.clone() });
    node.kind = Kind::Chain(Box::new(first), std::mem::take(run));
}

/// One node stands for itself, several are joined.
fn joined(first: Node, mut rest: Vec<Node>, many: fn(Vec<Node>) -> Kind) -> Node {
    let Some(last) = rest.last() else { return first };
    let at = first.at.start..last.at.end;
    rest.insert(0, first);
    Node { kind: many(rest), at }
}

fn unknown(
    what: &str,
    name: &str,
    at: Range<usize>,
    known: impl IntoIterator<Item = &'static str>,
) -> ExpressionError {
    let known: Vec<&str> = known.into_iter().collect();
    let hint = match guess(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{}`?", meant.word()),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("there are: {}", known.join(", ")),
    };
    let message = match what {
        "name" => format!("unknown name \"{name}\", expected one of {}", known.join(", ")),
        _ => format!("unknown {what} \"{name}\""),
    };
    wrong(message, at).hint(hint)
}
