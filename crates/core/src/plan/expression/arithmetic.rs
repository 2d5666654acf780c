//! Numbers: integers stay integers and exact, floats stay floats, nothing wraps around.

use super::node::BinaryOperator;
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// A JSON number, wide enough for intermediate results of 64-bit operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NumericValue {
    Integer(i128),
    Float(f64),
}

impl NumericValue {
    pub(super) fn of(number: &Number) -> NumericValue {
        if let Some(integer) = number.as_i64() {
            NumericValue::Integer(integer.into())
        } else if let Some(integer) = number.as_u64() {
            NumericValue::Integer(integer.into())
        } else {
            NumericValue::Float(number.as_f64().unwrap_or(f64::NAN))
        }
    }

    pub(super) fn as_float(self) -> f64 {
        match self {
            NumericValue::Integer(integer) => integer as f64,
            NumericValue::Float(float) => float,
        }
    }

    /// Back to JSON, which has 64-bit integers and finite floats.
    pub(super) fn to_number(self) -> Result<Number, &'static str> {
        match self {
            NumericValue::Integer(integer) => i64::try_from(integer)
                .map(Number::from)
                .or_else(|_| u64::try_from(integer).map(Number::from))
                .map_err(|_| "the result does not fit into 64 bits"),
            NumericValue::Float(float) => Number::from_f64(float).ok_or("the result is not a finite number"),
        }
    }
}

pub(super) fn calculate(operator: BinaryOperator, left: &Number, right: &Number) -> Result<Number, &'static str> {
    let (left, right) = (NumericValue::of(left), NumericValue::of(right));
    let result = match (left, right) {
        (NumericValue::Integer(a), NumericValue::Integer(b)) if operator != BinaryOperator::Divide => {
            integers(operator, a, b)?
        }
        _ => floats(operator, left.as_float(), right.as_float())?,
    };
    result.to_number()
}

/// Compares by value, exactly: 2⁶³ and the nearest float are distinguished.
pub(super) fn compare(left: &Number, right: &Number) -> Ordering {
    match (NumericValue::of(left), NumericValue::of(right)) {
        (NumericValue::Integer(a), NumericValue::Integer(b)) => a.cmp(&b),
        (NumericValue::Float(a), NumericValue::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (NumericValue::Integer(a), NumericValue::Float(b)) => compare_mixed(a, b),
        (NumericValue::Float(a), NumericValue::Integer(b)) => compare_mixed(b, a).reverse(),
    }
}

/// 0 for an even integer, 1 for an odd one.
pub(super) fn parity(value: &Value) -> Option<u64> {
    match NumericValue::of(value.as_number()?) {
        NumericValue::Integer(integer) => Some(u64::from(integer % 2 != 0)),
        NumericValue::Float(_) => None,
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // The cast saturates beyond the range of all integers here, which preserves the order.
    match integer.cmp(&(float.trunc() as i128)) {
        Ordering::Equal => 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal),
        unequal => unequal,
    }
}

const NO_ROOM: &str = "the result does not fit into 64 bits";
const BY_ZERO: &str = "division by zero";

fn integers(operator: BinaryOperator, a: i128, b: i128) -> Result<NumericValue, &'static str> {
    let result = match operator {
        BinaryOperator::Add => a.checked_add(b),
        BinaryOperator::Subtract => a.checked_sub(b),
        BinaryOperator::Multiply => a.checked_mul(b),
        BinaryOperator::FloorDivide | BinaryOperator::Remainder if b == 0 => return Err(BY_ZERO),
        BinaryOperator::FloorDivide => Some(a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)),
        BinaryOperator::Remainder => Some(((a % b) + b) % b),
        BinaryOperator::Power if b < 0 => return floats(operator, a as f64, b as f64),
        BinaryOperator::Power => u32::try_from(b).ok().and_then(|exponent| a.checked_pow(exponent)),
        BinaryOperator::Divide | BinaryOperator::Concatenate => None,
    };
    result.map(NumericValue::Integer).ok_or(NO_ROOM)
}

fn floats(operator: BinaryOperator, a: f64, b: f64) -> Result<NumericValue, &'static str> {
    let result = match operator {
        BinaryOperator::Add => a + b,
        BinaryOperator::Subtract => a - b,
        BinaryOperator::Multiply => a * b,
        BinaryOperator::Divide | BinaryOperator::FloorDivide | BinaryOperator::Remainder if b == 0.0 => {
            return Err(BY_ZERO);
        }
        BinaryOperator::Divide => a / b,
        BinaryOperator::FloorDivide => (a / b).floor(),
        BinaryOperator::Remainder => {
            let remainder = a % b;
            if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) { remainder + b } else { remainder }
        }
        BinaryOperator::Power => a.powf(b),
        BinaryOperator::Concatenate => f64::NAN,
    };
    Ok(NumericValue::Float(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_keep_their_kind_and_do_not_wrap() {
        use BinaryOperator::*;
        let cases = [
            (json!(7), FloorDivide, json!(2), Ok(json!(3))),
            (json!(-7), FloorDivide, json!(2), Ok(json!(-4))),
            (json!(7), FloorDivide, json!(-2), Ok(json!(-4))),
            (json!(-7), FloorDivide, json!(-2), Ok(json!(3))),
            (json!(6), FloorDivide, json!(-2), Ok(json!(-3))),
            (json!(-7), Remainder, json!(2), Ok(json!(1))),
            (json!(7), Remainder, json!(-2), Ok(json!(-1))),
            (json!(-7.5), Remainder, json!(2), Ok(json!(0.5))),
            (json!(4), Divide, json!(2), Ok(json!(2.0))),
            (json!(i64::MAX), Add, json!(1), Ok(json!(9_223_372_036_854_775_808_u64))),
            (json!(u64::MAX), Add, json!(1), Err(NO_ROOM)),
            (json!(i64::MIN), Subtract, json!(1), Err(NO_ROOM)),
            (json!(u64::MAX), Multiply, json!(u64::MAX), Err(NO_ROOM)),
            (json!(2), Power, json!(62), Ok(json!(1_i64 << 62))),
            (json!(2), Power, json!(-1), Ok(json!(0.5))),
            (json!(2), Power, json!(4_000_000_000_u64), Err(NO_ROOM)),
            (json!(1), Divide, json!(0), Err(BY_ZERO)),
            (json!(1), Remainder, json!(0), Err(BY_ZERO)),
            (json!(1e308), Multiply, json!(10), Err("the result is not a finite number")),
        ];
        for (left, operator, right, expected) in cases {
            let (Value::Number(a), Value::Number(b)) = (&left, &right) else { unreachable!() };
            assert_eq!(calculate(operator, a, b).map(Value::Number), expected, "{left} {operator:?} {right}");
        }
    }

    #[test]
    fn integers_and_floats_compare_exactly() {
        for (left, right, expected) in [
            (json!(1), json!(1.0), Ordering::Equal),
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0), Ordering::Greater),
            (json!(u64::MAX), json!(1e300), Ordering::Less),
            (json!(-1), json!(-1.5), Ordering::Greater),
            (json!(i64::MIN), json!(u64::MAX), Ordering::Less),
        ] {
            let (Value::Number(a), Value::Number(b)) = (&left, &right) else { unreachable!() };
            assert_eq!(compare(a, b), expected, "{left} {right}");
            assert_eq!(compare(b, a), expected.reverse(), "{right} {left}");
        }
    }
}
