//! The tree of an expression.

use super::filter::Filter;
use super::test::Test;
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

impl Path {
    /// The path up to and including `keys` of its keys, as it is written.
    pub(super) fn text(&self, keys: usize) -> String {
        let mut text = match &self.root {
            Root::Inputs => "inputs".to_owned(),
            Root::StepResult(step) => format!("steps.{step}.result"),
            Root::StepStatus(step) => format!("steps.{step}.status"),
            Root::Key => "key".to_owned(),
            Root::Result => "result".to_owned(),
            Root::Parameters => "parameters".to_owned(),
            Root::Item => "item".to_owned(),
            Root::Index => "index".to_owned(),
        };
        for key in self.keys.iter().take(keys) {
            text.push('.');
            text.push_str(&key.to_string());
        }
        text
    }
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

impl Operator {
    pub(super) const STRENGTH_MAX: u8 = 3;

    /// How tightly it binds.
    pub(super) fn strength(self) -> u8 {
        match self {
            Operator::Add | Operator::Subtract => 0,
            Operator::Concatenate => 1,
            Operator::Multiply | Operator::Divide | Operator::FloorDivide | Operator::Remainder => 2,
            Operator::Power => 3,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Operator::Add => "`+`",
            Operator::Subtract => "`-`",
            Operator::Concatenate => "`~`",
            Operator::Multiply => "`*`",
            Operator::Divide => "`/`",
            Operator::FloorDivide => "`//`",
            Operator::Remainder => "`%`",
            Operator::Power => "`**`",
        }
    }
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

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Name(name) => f.write_str(name),
            Key::Position(position) => write!(f, "{position}"),
        }
    }
}
