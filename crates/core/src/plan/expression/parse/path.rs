//! Values and their members; paths as far as they are known before evaluation.

use super::{ExpressionParser, KEYWORDS, ParseResult, constant, unknown};
use crate::plan::expression::ROOTS;
use crate::plan::expression::node::{
    ExpressionKind, ExpressionNode, MemberAccess, PathRoot, PathSegment, ReferencePath,
};
use crate::plan::expression::token::{TokenKind, wrong};
use serde_json::Value;
use std::ops::Range;

impl ExpressionParser<'_> {
    pub(super) fn member(&mut self) -> ParseResult<ExpressionNode> {
        let at = self.at();
        if let TokenKind::Name(name) = self.peek()
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
        Ok(ExpressionNode { kind: ExpressionKind::Member(Box::new(node), accesses), at })
    }

    fn accesses(&mut self) -> ParseResult<Vec<MemberAccess>> {
        let mut accesses = Vec::new();
        loop {
            if self.take(".") {
                accesses.push(MemberAccess::Key(self.dotted()?));
            } else if self.take("[") {
                accesses.push(self.bracketed()?);
            } else if *self.peek() == TokenKind::Symbol("(") {
                return Err(wrong("there are no functions".to_owned(), self.at())
                    .hint("use a filter, as in `inputs.list | length`"));
            } else {
                return Ok(accesses);
            }
        }
    }

    fn dotted(&mut self) -> ParseResult<PathSegment> {
        let key = match self.peek() {
            TokenKind::Name(name) => PathSegment::Name(name.clone()),
            TokenKind::Number(number) => PathSegment::Position(number.as_u64().unwrap_or(u64::MAX)),
            _ => return Err(self.unexpected("a name or a position after the dot")),
        };
        self.next += 1;
        Ok(key)
    }

    fn bracketed(&mut self) -> ParseResult<MemberAccess> {
        let start = match self.peek() {
            TokenKind::Symbol(":") => None,
            _ => Some(self.expression()?),
        };
        if !self.take(":") {
            self.expect("]")?;
            return match start {
                Some(ExpressionNode { kind: ExpressionKind::Literal(Value::String(name)), .. }) => {
                    Ok(MemberAccess::Key(PathSegment::Name(name)))
                }
                Some(ExpressionNode { kind: ExpressionKind::Literal(Value::Number(number)), .. })
                    if number.is_u64() =>
                {
                    Ok(MemberAccess::Key(PathSegment::Position(number.as_u64().unwrap_or(u64::MAX))))
                }
                Some(node) => Ok(MemberAccess::Index(node)),
                None => Err(self.unexpected("an index")),
            };
        }
        let stop = match self.peek() {
            TokenKind::Symbol("]") => None,
            TokenKind::Symbol(":") => return Err(wrong("a slice has no step here".to_owned(), self.at())),
            _ => Some(self.expression()?),
        };
        if *self.peek() == TokenKind::Symbol(":") {
            return Err(wrong("a slice has no step here".to_owned(), self.at()));
        }
        self.expect("]")?;
        Ok(MemberAccess::Slice(start, stop))
    }

    /// Turns a root and its accesses into a path, as far as the path is known before evaluation.
    fn path(
        &mut self,
        name: &str,
        root_at: Range<usize>,
        mut accesses: Vec<MemberAccess>,
    ) -> ParseResult<ExpressionNode> {
        let at = root_at.start..self.last_end();
        let known = accesses.iter().take_while(|access| matches!(access, MemberAccess::Key(_))).count();
        let rest = accesses.split_off(known);
        let mut keys: Vec<PathSegment> = accesses
            .into_iter()
            .filter_map(|access| match access {
                MemberAccess::Key(key) => Some(key),
                MemberAccess::Index(_) | MemberAccess::Slice(..) => None,
            })
            .collect();
        let read = std::iter::once(name.to_owned()).chain(keys.iter().map(PathSegment::to_string)).collect();
        let root = match name {
            "inputs" => PathRoot::Inputs,
            "key" => PathRoot::Key,
            "result" => PathRoot::Result,
            "parameters" => PathRoot::Parameters,
            "item" => PathRoot::Item,
            "index" => PathRoot::Index,
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
        let node = ExpressionNode { kind: ExpressionKind::Path(ReferencePath { root, keys }), at: at.clone() };
        Ok(match rest.is_empty() {
            true => node,
            false => ExpressionNode { kind: ExpressionKind::Member(Box::new(node), rest), at },
        })
    }

    /// Below `steps` there are only `steps.<id>.result`, `steps.<id>.items` and `steps.<id>.status`.
    fn step_root(&self, keys: &[PathSegment], is_whole: bool, at: Range<usize>) -> ParseResult<PathRoot> {
        let step = match keys.first() {
            Some(PathSegment::Name(step)) => step,
            Some(PathSegment::Position(_)) => {
                return Err(
                    wrong("steps are found by id, not by position".to_owned(), at).hint("write `steps.<id>.result`")
                );
            }
            None if is_whole => {
                return Err(wrong("`steps` alone has no value".to_owned(), at).hint("write `steps.<id>.result`"));
            }
            None => {
                return Err(wrong(
                    "the step must be named in the expression itself, so that its dependencies are known".to_owned(),
                    at,
                )
                .hint("write `steps.<id>.result` or `steps[\"<id>\"].result`"));
            }
        };
        match keys.get(1) {
            Some(PathSegment::Name(part)) if part == "result" => Ok(PathRoot::StepResult(step.clone())),
            Some(PathSegment::Name(part)) if part == "items" => Ok(PathRoot::StepItems(step.clone())),
            Some(PathSegment::Name(part)) if part == "status" => match keys.len() == 2 && is_whole {
                true => Ok(PathRoot::StepStatus(step.clone())),
                false => Err(wrong("a status is plain text: nothing is inside it".to_owned(), at)),
            },
            Some(other) => {
                let message = format!("a step has `result`, `items` and `status`, not `{other}`");
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

    /// Text after `end` that looks like the rest of an id: `-id` in `steps.my-id.result`.
    fn dashed_id(&self, end: usize) -> Option<&str> {
        let rest = self.source.get(end..)?;
        let length = rest.find(|c: char| c != '-' && c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
        (length > 1 && rest.starts_with('-')).then(|| &rest[..length])
    }
}
