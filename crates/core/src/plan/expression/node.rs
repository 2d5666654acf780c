//! The syntax tree of an expression.

use super::filter::FilterDefinition;
use super::test::TestDefinition;
use crate::plan::schema::JsonTypeSet;
use serde_json::Value;
use std::ops::Range;

/// A node and its source range.
#[derive(Debug)]
pub(super) struct ExpressionNode {
    pub(super) kind: ExpressionKind,
    pub(super) at: Range<usize>,
}

#[derive(Debug)]
pub(super) enum ExpressionKind {
    Literal(Value),
    List(Vec<ExpressionNode>),
    Map(Vec<(ExpressionNode, ExpressionNode)>),
    Path(ReferencePath),
    /// Access to a member of a value: `[…][0].name`, `inputs.list[inputs.n]`.
    Member(Box<ExpressionNode>, Vec<MemberAccess>),
    /// `… | upper | trim is string`
    Piped(Box<ExpressionNode>, Vec<PipeStage>),
    Negative(Box<ExpressionNode>),
    Not(Box<ExpressionNode>),
    All(Vec<ExpressionNode>),
    Any(Vec<ExpressionNode>),
    /// Left to right, all of one precedence.
    Chain(Box<ExpressionNode>, Vec<(BinaryOperator, ExpressionNode)>),
    /// Every neighbouring pair must hold: `1 < x < 9`.
    Compare(Box<ExpressionNode>, Vec<(Comparison, ExpressionNode)>),
    Choose(Box<ConditionalNode>),
}

impl ExpressionNode {
    /// The types its value can have, if they are clear from the source.
    pub(super) fn types(&self) -> Option<JsonTypeSet> {
        match &self.kind {
            ExpressionKind::Literal(value) => Some(JsonTypeSet::of(value)),
            ExpressionKind::List(_) => Some(JsonTypeSet::ARRAY),
            ExpressionKind::Map(_) => Some(JsonTypeSet::OBJECT),
            ExpressionKind::Not(_) | ExpressionKind::Compare(..) => Some(JsonTypeSet::BOOLEAN),
            ExpressionKind::Negative(_) => Some(JsonTypeSet::NUMBER),
            ExpressionKind::Chain(_, rest) => match rest.last()?.0 {
                BinaryOperator::Concatenate => Some(JsonTypeSet::STRING),
                BinaryOperator::Add => None,
                _ => Some(JsonTypeSet::NUMBER),
            },
            ExpressionKind::Piped(_, stages) => match stages.last()? {
                PipeStage::Test { .. } => Some(JsonTypeSet::BOOLEAN),
                PipeStage::Filter { filter, .. } => filter.gives,
            },
            ExpressionKind::Choose(choice) => Some(choice.yes.types()?.or(choice.no.types()?)),
            ExpressionKind::Path(_) | ExpressionKind::Member(..) | ExpressionKind::All(_) | ExpressionKind::Any(_) => {
                None
            }
        }
    }
}

/// A path from a root that is known before evaluation.
#[derive(Debug)]
pub(super) struct ReferencePath {
    pub(super) root: PathRoot,
    pub(super) keys: Vec<PathSegment>,
}

impl ReferencePath {
    /// The source form of the path with its first `keys` keys.
    pub(super) fn text(&self, keys: usize) -> String {
        let mut text = match &self.root {
            PathRoot::Inputs => "inputs".to_owned(),
            PathRoot::StepResult(step) => format!("steps.{step}.result"),
            PathRoot::StepStatus(step) => format!("steps.{step}.status"),
            PathRoot::Key => "key".to_owned(),
            PathRoot::Result => "result".to_owned(),
            PathRoot::Parameters => "parameters".to_owned(),
            PathRoot::Item => "item".to_owned(),
            PathRoot::Index => "index".to_owned(),
        };
        for key in self.keys.iter().take(keys) {
            text.push('.');
            text.push_str(&key.to_string());
        }
        text
    }
}

#[derive(Debug)]
pub(super) enum PathRoot {
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
pub(super) enum PathSegment {
    Name(String),
    Position(u64),
}

#[derive(Debug)]
pub(super) enum MemberAccess {
    Key(PathSegment),
    Index(ExpressionNode),
    Slice(Option<ExpressionNode>, Option<ExpressionNode>),
}

#[derive(Debug)]
pub(super) enum PipeStage {
    /// One argument for each of the filter's parameters.
    Filter {
        filter: &'static FilterDefinition,
        arguments: Vec<Option<ExpressionNode>>,
        at: Range<usize>,
    },
    Test {
        test: &'static TestDefinition,
        argument: Option<ExpressionNode>,
        negated: bool,
        at: Range<usize>,
    },
}

#[derive(Debug)]
pub(super) struct ConditionalNode {
    pub(super) condition: ExpressionNode,
    pub(super) yes: ExpressionNode,
    pub(super) no: ExpressionNode,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BinaryOperator {
    Add,
    Subtract,
    Concatenate,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

impl BinaryOperator {
    pub(super) const STRENGTH_MAX: u8 = 3;

    /// Its precedence.
    pub(super) fn strength(self) -> u8 {
        match self {
            BinaryOperator::Add | BinaryOperator::Subtract => 0,
            BinaryOperator::Concatenate => 1,
            BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::FloorDivide
            | BinaryOperator::Remainder => 2,
            BinaryOperator::Power => 3,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            BinaryOperator::Add => "`+`",
            BinaryOperator::Subtract => "`-`",
            BinaryOperator::Concatenate => "`~`",
            BinaryOperator::Multiply => "`*`",
            BinaryOperator::Divide => "`/`",
            BinaryOperator::FloorDivide => "`//`",
            BinaryOperator::Remainder => "`%`",
            BinaryOperator::Power => "`**`",
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

impl std::fmt::Display for PathSegment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PathSegment::Name(name) => f.write_str(name),
            PathSegment::Position(position) => write!(f, "{position}"),
        }
    }
}
