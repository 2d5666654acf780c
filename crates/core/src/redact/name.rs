//! Field names that mark their value as secret.

use super::marker::is_label;
use crate::wording::spelled_plainly;
use serde_json::{Map, Value};

/// A name with one of these endings is secret: `db_password`, `X-Api-Key`, `clientSecret`.
const ENDINGS: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "apikey", "privatekey", "secretkey", "secretaccesskey"];

/// These only as whole names: later steps may need a `next_page_token` or a `payment_authorization`.
const WHOLE: [&str; 12] = [
    "token",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "authtoken",
    "bearertoken",
    "sessiontoken",
    "sessionkey",
    "authorization",
    "proxyauthorization",
    "cookie",
    "setcookie",
];

pub(super) fn is_telling(key: &str) -> bool {
    let name = spelled_plainly(key);
    WHOLE.contains(&name.as_str()) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether an object is a plan's reference to a secret: `{"secret": "payments_token"}`.
pub(super) fn is_reference(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.get("secret").and_then(Value::as_str).is_some_and(is_label)
}
