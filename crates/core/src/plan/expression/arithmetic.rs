//! Numbers: integers stay integers and exact, floats stay floats, nothing wraps around.

use super::node::Operator;
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// A JSON number with room for what 64-bit operands can become on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numeric {
    Integer(i128),
    Float(f64),
}

impl Numeric {
    pub(super) fn of(number: &Number) -> Numeric {
        if let Some(integer) = number.as_i64() {
            Numeric::Integer(integer.into())
        } else if let Some(integer) = number.as_u64() {
            Numeric::Integer(integer.into())
        } else {
            Numeric::Float(number.as_f64().unwrap_or(f64::NAN))
        }
    }

    pub(super) fn as_float(self) -> f64 {
        match self {
            Numeric::Integer(integer) => integer as f64,
            Numeric::Float(float) => float,
        }
    }

    /// Back to JSON, which has 64-bit integers and finite floats.
    pub(super) fn to_number(self) -> Result<Number, &'static str> {
        match self {
            Numeric::Integer(integer) => i64::try_from(integer)
                .map(Number::from)
                .or_else(|_| u64::try_from(integer).map(Number::from))
                .map_err(|_| "the result does not fit into 64 bits"),
            Numeric::Float(float) => Number::from_f64(float).ok_or("the result is not a finite number"),
        }
    }
}

pub(super) fn calculate(operator: Operator, left: &Number, right: &Number) -> Result<Number, &'static str> {
    let (left, right) = (Numeric::of(left), Numeric::of(right));
    let result = match (left, right) {
        (Numeric::Integer(a), Numeric::Integer(b)) if operator != Operator::Divide => {
            integers(operator, a, b)?
        }
        _ => floats(operator, left.as_float(), right.as_float())?,
    };
    result.to_number()
}

/// Compares by value, exactly: 2⁶³ and the nearest float are told apart.
pub(super) fn compare(left: &Number, right: &Number) -> Ordering {
    match (Numeric::of(left), Numeric::of(right)) {
        (Numeric::Integer(a), Numeric::Integer(b)) => a.cmp(&b),
        (Numeric::Float(a), Numeric::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Numeric::Integer(a), Numeric::Float(b)) => compare_mixed(a, b),
        (Numeric::Float(a), Numeric::Integer(b)) => compare_mixed(b, a).reverse(),
    }
}

/// 0 for an even integer, 1 for an odd one.
pub(super) fn parity(value: &Value) -> Option<u64> {
    match Numeric::of(value.as_number()?) {
        Numeric::Integer(integer) => Some(u64::from(integer % 2 != 0)),
        Numeric::Float(_) => None,
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // The cast saturates beyond the range of all integers met here, which keeps the order right.
    match integer.cmp(&(float.trunc() as i128)) {
        Ordering::Equal => 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal),
        unequal => unequal,
    }
}

const NO_ROOM: &str = "the result does not fit into 64 bits";
const BY_ZERO: &str = "division by zero";

fn integers(operator: Operator, a: i128, b: i128) -> Result<Numeric, &'static str> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::FloorDivide | Operator::Remainder if b == 0 => return Err(BY_ZERO),
        Operator::FloorDivide => Some(a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)),
        Operator::Remainder => Some(((a % b) + b) % b),
        Operator::Power if b < 0 => return floats(operator, a as f64, b as f64),
        Operator::Power => u32::try_from(b).ok().and_then(|exponent| a.checked_pow(exponent)),
        Operator::Divide | Operator::Concatenate => None,
    };
    result.map(Numeric::Integer).ok_or(NO_ROOM)
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<Numeric, &'static str> {
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide | Operator::FloorDivide | Operator::Remainder if b == 0.0 => return Err(BY_ZERO),
        Operator::Divide => a / b,
        Operator::FloorDivide => (a / b).floor(),
        Operator::Remainder => {
            let remainder = a % b;
            if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) { remainder + b } else { remainder }
        }
        Operator::Power => a.powf(b),
        Operator::Concatenate => f64::NAN,
    };
    Ok(Numeric::Float(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_keep_their_kind_and_do_not_wrap() {
        use Operator::*;
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
