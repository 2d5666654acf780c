//! Filters and tests, resolved by name.

use super::{ExpressionParser, ParseResult, unknown};
use crate::plan::expression::filter::{self, FilterDefinition};
use crate::plan::expression::node::{ExpressionKind, ExpressionNode, PipeStage};
use crate::plan::expression::test;
use crate::plan::expression::token::{ExpressionToken, TokenKind, wrong};
use serde_json::Value;

impl ExpressionParser<'_> {
    pub(super) fn filter(&mut self) -> ParseResult<PipeStage> {
        let (name, mut at) = self.name("a filter")?;
        let Some(filter) = filter::find(&name) else {
            return Err(unknown("filter", &name, at, filter::names()));
        };
        let mut arguments: Vec<Option<ExpressionNode>> = filter.parameters.iter().map(|_| None).collect();
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
        Ok(PipeStage::Filter { filter, arguments, at })
    }

    /// The arguments between a filter's parentheses, by position or by name.
    fn arguments(&mut self, filter: &FilterDefinition, arguments: &mut [Option<ExpressionNode>]) -> ParseResult<()> {
        let mut position = 0;
        while !self.take(")") {
            let at = self.at();
            let named =
                matches!(self.tokens.get(self.next + 1), Some(ExpressionToken { word: TokenKind::Symbol("="), .. }));
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
                    let message = format!("filter \"{}\" takes {} arguments at the most", filter.name, arguments.len());
                    return Err(wrong(message, at));
                }
            }
            if !self.take(",") && *self.peek() != TokenKind::Symbol(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        Ok(())
    }

    pub(super) fn test(&mut self) -> ParseResult<PipeStage> {
        let negated = self.take_name("not");
        let (name, mut at) = match self.peek() {
            // The only test with the name of a keyword.
            TokenKind::Name(name) if name == "in" => (name.clone(), self.advance().at),
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
        Ok(PipeStage::Test { test, argument, negated, at })
    }
}

fn check_test_name(node: &ExpressionNode) -> ParseResult<()> {
    match &node.kind {
        ExpressionKind::Literal(Value::String(name)) if test::find(name).is_some() => Ok(()),
        ExpressionKind::Literal(Value::String(name)) => Err(unknown("test", name, node.at.clone(), test::names())),
        _ => Err(wrong("expected the name of a test in quotes".to_owned(), node.at.clone())),
    }
}
