//! The parser. Chains are lists and only brackets nest, so that the depth of the tree is bounded.

mod path;
mod stage;

use super::ExpressionError;
use super::node::{BinaryOperator, Comparison, ConditionalNode, ExpressionKind, ExpressionNode};
use super::token::{ExpressionToken, TokenKind, tokenize, wrong};
use crate::limits;
use crate::wording::guess;
use serde_json::Value;
use std::ops::Range;

/// Parses the source, and returns the paths that it reads too.
pub(super) fn parse(source: &str) -> Result<(ExpressionNode, Vec<Vec<String>>), ExpressionError> {
    let mut parser = ExpressionParser { source, tokens: tokenize(source)?, next: 0, depth: 0, reads: Vec::new() };
    let node = parser.expression()?;
    match parser.peek() {
        TokenKind::End => Ok((node, parser.reads)),
        TokenKind::Symbol("=") => Err(parser.unexpected("an operator").hint("compare with `==`")),
        _ => Err(parser.unexpected("the end of the expression")),
    }
}

const OPERATORS: [(&str, BinaryOperator); 8] = [
    ("+", BinaryOperator::Add),
    ("-", BinaryOperator::Subtract),
    ("~", BinaryOperator::Concatenate),
    ("*", BinaryOperator::Multiply),
    ("/", BinaryOperator::Divide),
    ("//", BinaryOperator::FloorDivide),
    ("%", BinaryOperator::Remainder),
    ("**", BinaryOperator::Power),
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

struct ExpressionParser<'s> {
    source: &'s str,
    tokens: Vec<ExpressionToken>,
    next: usize,
    depth: usize,
    reads: Vec<Vec<String>>,
}

type ParseResult<T> = Result<T, ExpressionError>;

impl ExpressionParser<'_> {
    /// `a if condition else b`, or anything of higher precedence.
    fn expression(&mut self) -> ParseResult<ExpressionNode> {
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
            node =
                ExpressionNode { kind: ExpressionKind::Choose(Box::new(ConditionalNode { condition, yes, no })), at };
        }
        self.depth -= 1;
        Ok(node)
    }

    fn either(&mut self) -> ParseResult<ExpressionNode> {
        let first = self.both()?;
        let mut rest = Vec::new();
        while self.take_name("or") {
            rest.push(self.both()?);
        }
        Ok(joined(first, rest, ExpressionKind::Any))
    }

    fn both(&mut self) -> ParseResult<ExpressionNode> {
        let first = self.negation()?;
        let mut rest = Vec::new();
        while self.take_name("and") {
            rest.push(self.negation()?);
        }
        Ok(joined(first, rest, ExpressionKind::All))
    }

    fn negation(&mut self) -> ParseResult<ExpressionNode> {
        let start = self.at().start;
        if !self.take_name("not") {
            return self.comparison();
        }
        self.enter()?;
        let node = self.negation()?;
        self.depth -= 1;
        let at = start..node.at.end;
        Ok(ExpressionNode { kind: ExpressionKind::Not(Box::new(node)), at })
    }

    fn comparison(&mut self) -> ParseResult<ExpressionNode> {
        let first = self.chain()?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.take_comparison()? {
            rest.push((comparison, self.chain()?));
        }
        let Some((_, last)) = rest.last() else { return Ok(first) };
        let at = first.at.start..last.at.end;
        Ok(ExpressionNode { kind: ExpressionKind::Compare(Box::new(first), rest), at })
    }

    fn take_comparison(&mut self) -> ParseResult<Option<Comparison>> {
        if let TokenKind::Symbol(symbol) = self.peek() {
            let found = COMPARISONS.iter().find(|(text, _)| text == symbol).map(|(_, comparison)| *comparison);
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

    /// Operands and the operators between them. Parsed flat and grouped afterwards, to save stack.
    fn chain(&mut self) -> ParseResult<ExpressionNode> {
        let first = self.piped()?;
        let mut rest = Vec::new();
        while let TokenKind::Symbol(symbol) = self.peek() {
            let Some((_, operator)) = OPERATORS.iter().find(|(text, _)| text == symbol) else { break };
            self.next += 1;
            rest.push((*operator, self.piped()?));
        }
        Ok(grouped(first, rest))
    }

    /// A value with its member accesses, filters and tests.
    fn piped(&mut self) -> ParseResult<ExpressionNode> {
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
        Ok(ExpressionNode { kind: ExpressionKind::Piped(Box::new(node), stages), at })
    }

    fn signed(&mut self) -> ParseResult<ExpressionNode> {
        let start = self.at().start;
        if !self.take("-") {
            return self.member();
        }
        self.enter()?;
        let node = self.signed()?;
        self.depth -= 1;
        let at = start..node.at.end;
        Ok(ExpressionNode { kind: ExpressionKind::Negative(Box::new(node)), at })
    }

    fn primary(&mut self) -> ParseResult<ExpressionNode> {
        let token = self.advance();
        let kind = match token.word {
            TokenKind::Text(text) => ExpressionKind::Literal(Value::String(text)),
            TokenKind::Number(number) => ExpressionKind::Literal(Value::Number(number)),
            TokenKind::Name(name) if constant(&name).is_some() => {
                ExpressionKind::Literal(constant(&name).unwrap_or_default())
            }
            TokenKind::Symbol("[") => ExpressionKind::List(self.items("]", ExpressionParser::expression)?),
            TokenKind::Symbol("{") => ExpressionKind::Map(self.items("}", ExpressionParser::pair)?),
            TokenKind::Symbol("(") => {
                let node = self.expression()?;
                if *self.peek() == TokenKind::Symbol(",") {
                    return Err(self.unexpected("`)`").hint("a list is written in brackets: `[1, 2]`"));
                }
                self.expect(")")?;
                // Includes the brackets, so that an error underlines them too.
                return Ok(ExpressionNode { kind: node.kind, at: token.at.start..self.last_end() });
            }
            _ => {
                self.next -= 1;
                return Err(self.unexpected("a value"));
            }
        };
        Ok(ExpressionNode { kind, at: token.at.start..self.last_end() })
    }

    fn pair(&mut self) -> ParseResult<(ExpressionNode, ExpressionNode)> {
        let key = self.expression()?;
        self.expect(":")?;
        Ok((key, self.expression()?))
    }

    /// Items up to the closing bracket; a comma after the last is fine.
    fn items<T>(&mut self, close: &'static str, item: fn(&mut Self) -> ParseResult<T>) -> ParseResult<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(item(self)?);
            if !self.take(",") && *self.peek() != TokenKind::Symbol(close) {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
        Ok(items)
    }

    fn enter(&mut self) -> ParseResult<()> {
        self.depth += 1;
        match self.depth > limits::EXPRESSION_DEPTH_MAX {
            true => Err(wrong(format!("more than {} levels of nesting", limits::EXPRESSION_DEPTH_MAX), self.at())),
            false => Ok(()),
        }
    }

    fn peek(&self) -> &TokenKind {
        self.tokens.get(self.next).map_or(&TokenKind::End, |token| &token.word)
    }

    fn at(&self) -> Range<usize> {
        self.tokens.get(self.next).map_or(self.source.len()..self.source.len(), |token| token.at.clone())
    }

    fn last_end(&self) -> usize {
        self.next.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |token| token.at.end)
    }

    fn advance(&mut self) -> ExpressionToken {
        let token = ExpressionToken { word: self.peek().clone(), at: self.at() };
        self.next += 1;
        token
    }

    fn take(&mut self, symbol: &'static str) -> bool {
        let found = *self.peek() == TokenKind::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    fn take_name(&mut self, expected: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Name(name) if name == expected);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &'static str) -> ParseResult<()> {
        match self.take(symbol) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{symbol}`"))),
        }
    }

    fn name(&mut self, what: &str) -> ParseResult<(String, Range<usize>)> {
        match self.peek() {
            TokenKind::Name(name) if !KEYWORDS.contains(&name.as_str()) => Ok((name.clone(), self.advance().at)),
            _ => Err(self.unexpected(what)),
        }
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        let found = match self.peek() {
            TokenKind::End => "the end".to_owned(),
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

/// Groups the operators of the highest precedence first, down to the lowest.
fn grouped(mut first: ExpressionNode, mut rest: Vec<(BinaryOperator, ExpressionNode)>) -> ExpressionNode {
    for strength in (0..=BinaryOperator::STRENGTH_MAX).rev() {
        let mut weaker: Vec<(BinaryOperator, ExpressionNode)> = Vec::new();
        let mut run: Vec<(BinaryOperator, ExpressionNode)> = Vec::new();
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

/// Makes a chain of the node and the run after it.
fn close(node: &mut ExpressionNode, run: &mut Vec<(BinaryOperator, ExpressionNode)>) {
    let Some((_, last)) = run.last() else { return };
    let at = node.at.start..last.at.end;
    let first = std::mem::replace(node, ExpressionNode { kind: ExpressionKind::Literal(Value::Null), at: at.clone() });
    node.kind = ExpressionKind::Chain(Box::new(first), std::mem::take(run));
}

/// Returns a single node unchanged, and joins several.
fn joined(
    first: ExpressionNode,
    mut rest: Vec<ExpressionNode>,
    many: fn(Vec<ExpressionNode>) -> ExpressionKind,
) -> ExpressionNode {
    let Some(last) = rest.last() else { return first };
    let at = first.at.start..last.at.end;
    rest.insert(0, first);
    ExpressionNode { kind: many(rest), at }
}

fn unknown(what: &str, name: &str, at: Range<usize>, known: impl IntoIterator<Item = &'static str>) -> ExpressionError {
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
