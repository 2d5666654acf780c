//! The parameters of a call as a person sees them before approving it.
//!
//! What is too long is cut field by field, so that a long value does not push another one out of sight.

use rutter_core::text::cut_counted;
use serde_json::{Map, Value};

/// With more fields a call cannot be shown in short.
pub const FIELDS_SHOWN_MAX: usize = 60;
/// Every field shows at least so much of its value.
const VALUE_CHARS_MIN: usize = 40;
const NAME_CHARS_MAX: usize = 80;

/// The parameters, and whether something of them is cut. Then every field is there, the shortest first, and each that was
/// cut says how long it is. `None` if there are too many fields to show each.
pub fn shown_call(parameters: &Value, chars_max: usize) -> Option<(Value, bool)> {
    let whole = parameters.to_string();
    if whole.chars().count() <= chars_max {
        return Some((parameters.clone(), false));
    }
    let Some(fields) = parameters.as_object() else {
        return Some((Value::String(cut_counted(&whole, chars_max)), true));
    };
    if fields.len() > FIELDS_SHOWN_MAX {
        return None;
    }
    let mut sized: Vec<(usize, &String, &Value)> =
        fields.iter().map(|(name, value)| (value.to_string().chars().count(), name, value)).collect();
    sized.sort_by_key(|(size, ..)| *size);
    let mut room = chars_max.saturating_sub(fields.keys().map(|name| name.chars().count().min(NAME_CHARS_MAX)).sum());
    let mut shown = Map::new();
    for (at, (size, name, value)) in sized.into_iter().enumerate() {
        let share = (room / (fields.len() - at)).max(VALUE_CHARS_MIN);
        room = room.saturating_sub(size.min(share));
        // Two long names may begin alike.
        let name = match name.chars().count() > NAME_CHARS_MAX {
            true => format!("{} (field {at})", cut_counted(name, NAME_CHARS_MAX)),
            false => name.clone(),
        };
        shown.insert(name, if size <= share { value.clone() } else { shortened(value, share) });
    }
    Some((Value::Object(shown), true))
}

fn shortened(value: &Value, chars_max: usize) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Value::String(cut_counted(&text, chars_max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_value_pushes_no_other_field_out_of_sight() {
        let call = json!({ "note": "a".repeat(30_000), "list": vec![1; 900], "amount": 5, "to": "eve" });
        let (shown, is_cut) = shown_call(&call, 1_000).unwrap();
        let text = shown.to_string();
        assert!(is_cut && text.starts_with(r#"{"amount":5,"to":"eve","#), "{text}");
        assert!(text.contains("(1801 characters in all)") && text.contains("(30000 characters in all)"), "{text}");
        assert!(text.chars().count() < 1_200, "{}", text.len());
        let long = "n".repeat(500);
        let named = json!({ format!("{long}1"): 1, format!("{long}2"): 2, "note": "b".repeat(2_000) });
        assert_eq!(shown_call(&named, 1_000).unwrap().0.as_object().unwrap().len(), 3);
    }

    #[test]
    fn what_fits_is_shown_as_it_is_and_too_many_fields_are_not_shown() {
        let call = json!({ "to": "eve", "amount": 5 });
        assert_eq!(shown_call(&call, 1_000), Some((call.clone(), false)));
        let many: Map<String, Value> = (0..100).map(|at| (format!("f{at}"), json!("some text"))).collect();
        assert_eq!(shown_call(&Value::Object(many), 1_000), None);
        assert!(shown_call(&json!("a".repeat(2_000)), 1_000).unwrap().1);
    }
}
