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
    /// Whether it picks a value from the scope, also where the value is built: the list of the items of a fan-out is.
    pub(super) fn only_picks(&self) -> bool {
        match &self.kind {
            ExpressionKind::Path(_) | ExpressionKind::Literal(_) => true,
            ExpressionKind::Member(base, accesses) => {
                base.only_picks() && !accesses.iter().any(|access| matches!(access, MemberAccess::Slice(..)))
            }
            ExpressionKind::Piped(base, stages) => base.only_picks() && stages.iter().all(PipeStage::accepts_missing),
            ExpressionKind::All(nodes) | ExpressionKind::Any(nodes) => nodes.iter().all(ExpressionNode::only_picks),
            ExpressionKind::Choose(choice) => choice.yes.only_picks() && choice.no.only_picks(),
            _ => false,
        }
    }

    /// The types its value can have, if they are clear from the source and from the types of the paths it reads.
    pub(super) fn types(&self, known: &dyn Fn(&[String]) -> Option<JsonTypeSet>) -> Option<JsonTypeSet> {
        let either = |nodes: &[ExpressionNode]| {
            nodes.iter().try_fold(JsonTypeSet::NONE, |types, node| Some(types.or(node.types(known)?)))
        };
        match &self.kind {
            ExpressionKind::Literal(value) => Some(JsonTypeSet::of(value)),
            ExpressionKind::List(_) => Some(JsonTypeSet::ARRAY),
            ExpressionKind::Map(_) => Some(JsonTypeSet::OBJECT),
            ExpressionKind::Not(_) | ExpressionKind::Compare(..) => Some(JsonTypeSet::BOOLEAN),
            ExpressionKind::Negative(_) => Some(JsonTypeSet::NUMBER),
            ExpressionKind::Chain(_, rest) => match rest.last()?.0 {
                BinaryOperator::Concatenate => Some(JsonTypeSet::STRING),
                BinaryOperator::Add => Some(JsonTypeSet::NUMBER.or(JsonTypeSet::STRING).or(JsonTypeSet::ARRAY)),
                _ => Some(JsonTypeSet::NUMBER),
            },
            ExpressionKind::Piped(base, stages) => {
                stages.iter().fold(base.types(known), |types, stage| stage.types(types, known))
            }
            ExpressionKind::Choose(choice) => Some(choice.yes.types(known)?.or(choice.no.types(known)?)),
            // They give the operand that decides, not true or false.
            ExpressionKind::All(nodes) | ExpressionKind::Any(nodes) => either(nodes),
            ExpressionKind::Path(path) => known(&path.read()),
            ExpressionKind::Member(..) => None,
        }
    }
}

impl ExpressionNode {
    /// The paths without whose value this node has none.
    pub(super) fn needed(&self) -> Vec<&ReferencePath> {
        fn all<'n>(nodes: &mut dyn Iterator<Item = &'n ExpressionNode>) -> Vec<&'n ReferencePath> {
            nodes.flat_map(ExpressionNode::needed).collect()
        }
        match &self.kind {
            ExpressionKind::Literal(_) => Vec::new(),
            ExpressionKind::Path(path) => vec![path],
            ExpressionKind::List(items) => all(&mut items.iter()),
            ExpressionKind::Map(pairs) => all(&mut pairs.iter().flat_map(|(key, value)| [key, value])),
            ExpressionKind::Member(base, accesses) => {
                let indexes = accesses.iter().flat_map(|access| match access {
                    MemberAccess::Key(_) => [None, None],
                    MemberAccess::Index(node) => [Some(node), None],
                    MemberAccess::Slice(start, stop) => [start.as_ref(), stop.as_ref()],
                });
                all(&mut std::iter::once(&**base).chain(indexes.flatten()))
            }
            ExpressionKind::Piped(base, stages) => {
                let replaced = matches!(base.kind, ExpressionKind::Path(_) | ExpressionKind::Member(..))
                    && stages.first().is_some_and(PipeStage::accepts_missing);
                if replaced { Vec::new() } else { base.needed() }
            }
            ExpressionKind::Negative(operand) | ExpressionKind::Not(operand) => operand.needed(),
            ExpressionKind::All(nodes) | ExpressionKind::Any(nodes) => all(&mut nodes.iter().take(1)),
            ExpressionKind::Chain(first, rest) => {
                all(&mut std::iter::once(&**first).chain(rest.iter().map(|(_, node)| node)))
            }
            // A comparison that does not hold ends a chain of them.
            ExpressionKind::Compare(first, rest) => {
                all(&mut std::iter::once(&**first).chain(rest.iter().take(1).map(|(_, node)| node)))
            }
            ExpressionKind::Choose(choice) => choice.condition.needed(),
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
    /// The names of the path, as [`super::Expression::reads`] has them.
    pub(super) fn read(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut names = match &self.root {
            PathRoot::Inputs => words(&["inputs"]),
            PathRoot::StepResult(step) => words(&["steps", step, "result"]),
            PathRoot::StepStatus(step) => words(&["steps", step, "status"]),
            PathRoot::StepItems(step) => words(&["steps", step, "items"]),
            PathRoot::Key => words(&["key"]),
            PathRoot::Result => words(&["result"]),
            PathRoot::Parameters => words(&["parameters"]),
            PathRoot::Item => words(&["item"]),
            PathRoot::Index => words(&["index"]),
        };
        names.extend(self.keys.iter().map(PathSegment::to_string));
        names
    }

    /// The source form of the path with its first `keys` keys.
    pub(super) fn text(&self, keys: usize) -> String {
        let mut text = match &self.root {
            PathRoot::Inputs => "inputs".to_owned(),
            PathRoot::StepResult(step) => format!("steps.{step}.result"),
            PathRoot::StepStatus(step) => format!("steps.{step}.status"),
            PathRoot::StepItems(step) => format!("steps.{step}.items"),
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
    /// Of a fan-out: status, result and failure of every item.
    StepItems(String),
    Key,
    Result,
    Parameters,
    Item,
    Index,
}

impl PathRoot {
    /// The step whose outcome it reads.
    pub(super) fn step(&self) -> Option<&str> {
        match self {
            PathRoot::StepResult(step) | PathRoot::StepItems(step) => Some(step),
            PathRoot::Inputs
            | PathRoot::StepStatus(_)
            | PathRoot::Key
            | PathRoot::Result
            | PathRoot::Parameters
            | PathRoot::Item
            | PathRoot::Index => None,
        }
    }
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

impl PipeStage {
    /// The types of its result, from those of its input.
    fn types(
        &self,
        input: Option<JsonTypeSet>,
        known: &dyn Fn(&[String]) -> Option<JsonTypeSet>,
    ) -> Option<JsonTypeSet> {
        match self {
            PipeStage::Test { .. } => Some(JsonTypeSet::BOOLEAN),
            PipeStage::Filter { filter, arguments, .. } if filter.accepts_missing => {
                Some(input?.or(arguments.first()?.as_ref()?.types(known)?))
            }
            PipeStage::Filter { filter, .. } => filter.gives,
        }
    }

    pub(super) fn accepts_missing(&self) -> bool {
        match self {
            PipeStage::Filter { filter, .. } => filter.accepts_missing,
            PipeStage::Test { test, .. } => test.accepts_missing,
        }
    }
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
