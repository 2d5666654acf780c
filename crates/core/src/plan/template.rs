//! JSON with expressions in its strings.

use super::expression::Expression;

/// Parameters in which strings may hold `{{ expression }}`.
#[derive(Clone, Debug)]
pub struct Template {
    pub holes: Vec<(String, Expression)>,
}
