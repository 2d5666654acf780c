//! Values and what is inside them; paths as far as they are known before anything is evaluated.

use super::{KEYWORDS, Parsed, Parser, constant, unknown};
use crate::plan::expression::ROOTS;
use crate::plan::expression::node::{Access, Key, Kind, Node, Path, Root};
use crate::plan::expression::token::{Word, wrong};
use serde_json::Value;
use std::ops::Range;

impl Parser<'_> {
    pub(super) fn member(&mut self) -> Parsed<Node> {
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
}
