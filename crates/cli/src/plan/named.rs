//! What is named on the command line: a plan, as a file or a saved one, and the inputs that are typed beside it.

use super::show;
use crate::args::DatabaseArgs;
use crate::failure::CommandRefusal;
use rutter_app::error::AppError;
use rutter_core::id::TenantId;
use rutter_core::limits;
use rutter_core::plan::document::{DocumentFormat, PlanDocument, read_exact};
use rutter_core::port::Error;
use rutter_core::port::query::SavedPlan;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A plan that is named on the command line.
pub(crate) enum RunnablePlan {
    /// The bytes of the file.
    File(Vec<u8>),
    /// The name or id of a saved plan.
    Saved(String),
}

impl RunnablePlan {
    /// A file takes precedence, a directory does not.
    pub(crate) fn at(path: &Path) -> anyhow::Result<RunnablePlan> {
        match (bytes_of(path), path.to_str()) {
            (Ok(source), _) => Ok(RunnablePlan::File(source)),
            (Err(error), Some(name)) if is_no_file(&error) => Ok(RunnablePlan::Saved(name.to_owned())),
            (Err(error), _) => {
                let message = format!("cannot read {}: {error}", path.display());
                Err(CommandRefusal::new("file.unreadable", message).into())
            }
        }
    }

    /// The same for a command that starts tool servers: a mistyped file is noticed before that.
    pub(crate) fn found_at(path: &Path, store: &DatabaseArgs, tenant: &TenantId) -> anyhow::Result<RunnablePlan> {
        let is_like_a_file = path.components().count() > 1
            || path.extension().is_some_and(|end| ENDINGS.contains(&end.to_str().unwrap_or_default()));
        let plan = RunnablePlan::at(path)?;
        if let (RunnablePlan::Saved(name), true) = (&plan, is_like_a_file) {
            saved(name, store, tenant)?;
        }
        Ok(plan)
    }

    /// A refusal of the command: a plan that is not found is not a file either.
    pub(crate) fn refusal(&self, answer: &Value) -> CommandRefusal {
        let mut answer = answer.clone();
        // A revision that is not found is another matter: there is a plan of that name.
        if let RunnablePlan::Saved(name) = self
            && answer["error"]["message"] == AppError::missing("plan", name).message
        {
            answer["error"]["message"] = neither(name).into();
        }
        CommandRefusal::from_answer(&answer)
    }

    /// The schema of its inputs, as far as it can be found out before it is sent.
    pub(crate) fn inputs(&self, store: &DatabaseArgs, tenant: &TenantId) -> Value {
        let read = |source: &[u8]| {
            let document = PlanDocument::read(source, DocumentFormat::guess(source)).ok()?;
            let inputs = ["/inputs", "/plan/inputs"].iter().find_map(|pointer| document.value.pointer(pointer));
            inputs.cloned()
        };
        let saved = |name: &str| saved(name, store, tenant).ok()?.plan.inputs.as_deref().cloned();
        match self {
            RunnablePlan::File(source) => read(source).unwrap_or_default(),
            RunnablePlan::Saved(name) => saved(name).unwrap_or_default(),
        }
    }

    /// The text that findings are shown in.
    pub(crate) fn source(&self) -> &[u8] {
        match self {
            RunnablePlan::File(source) => source,
            RunnablePlan::Saved(_) => &[],
        }
    }
}

/// Reads a saved plan that is named where a file may be.
pub(super) fn saved(name: &str, store: &DatabaseArgs, tenant: &TenantId) -> Result<SavedPlan, CommandRefusal> {
    let saved = crate::store::archive(store).and_then(|mut archive| show::saved(&mut archive, tenant, name, None));
    let unread = |why: String| {
        let why = format!("there is no file {name}, and no saved plan can be read: {why}");
        CommandRefusal::new("file.unreadable", why)
    };
    saved.map_err(|error| match error.downcast::<CommandRefusal>() {
        // There are plans of that name, but not the one that is meant.
        Ok(refusal) if refusal.code().starts_with("server.") || refusal.code().starts_with("store.") => refusal,
        Ok(refusal) => unread(refusal.to_string()),
        Err(error) if matches!(error.downcast_ref(), Some(Error::NotFound { what: "plan", .. })) => {
            CommandRefusal::new("file.unreadable", neither(name))
        }
        Err(error) => unread(format!("{error:#}")),
    })
}

fn neither(name: &str) -> String {
    format!("there is neither a file nor a saved plan {name:?}")
}

/// Whether there is no file to read, only perhaps a directory.
fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory)
}

/// Values typed as `name=value`, each name once.
pub(crate) fn typed_values(typed: &[String], schema: &Value) -> Result<Map<String, Value>, CommandRefusal> {
    let wrong = |message: String| CommandRefusal::new("command.inputs", message);
    let mut values = Map::new();
    for typed in typed {
        let (name, value) =
            typed.split_once('=').ok_or_else(|| wrong(format!("expected an input as name=value, got {typed:?}")))?;
        let value = typed_value(name, value, schema).map_err(|why| wrong(format!("the input {name:?}: {why}")))?;
        if values.insert(name.to_owned(), value).is_some() {
            return Err(wrong(format!("the input {name:?} is given more than once")));
        }
    }
    Ok(values)
}

/// JSON if it can be parsed as such, unless `schema` wants a text there. What two programs could read differently is an
/// error.
fn typed_value(name: &str, value: &str, schema: &Value) -> Result<Value, String> {
    // The short form has the names beside each other.
    let property = schema.get("properties").unwrap_or(schema).get(name);
    let wants_text = property.is_some_and(|property| property["type"] == "string");
    match serde_json::from_str::<Value>(value) {
        Ok(parsed) if parsed.is_string() || !wants_text => read_exact(value.as_bytes()),
        _ => Ok(Value::from(value)),
    }
}

/// Endings of files with a plan.
const ENDINGS: &[&str] = &["yaml", "yml", "json"];

/// Reads at most one byte more than a document may have, so that a longer one is noticed.
pub(crate) fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    bytes_within(path, limits::PLAN_BYTES_MAX)
}

/// The same with another limit.
pub(crate) fn bytes_within(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let limit = bytes_max as u64 + 1;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn typed_values_are_read_as_strictly_as_a_request() {
        let schema = json!({ "properties": { "order": { "type": "string" } } });
        let read = |typed: &[&str]| {
            let typed: Vec<String> = typed.iter().map(ToString::to_string).collect();
            typed_values(&typed, &schema).map_err(|refusal| refusal.to_string())
        };
        let values = read(&["order=9007199254740993", "n=1.5", "text=A-1", "list=[1, {\"a\": 2}]", "empty="]).unwrap();
        let expected =
            json!({ "order": "9007199254740993", "n": 1.5, "text": "A-1", "list": [1, { "a": 2 }], "empty": "" });
        assert_eq!(Value::Object(values), expected);
        for (typed, says) in [
            (&["n"] as &[&str], "expected an input as name=value"),
            (&["n=9007199254740993"], "the input \"n\": "),
            (&["n={\"a\":1,\"a\":2}"], "the input \"n\": "),
            (&["n=1", "n=2"], "the input \"n\" is given more than once"),
            (&["n=1", "m=2", "n=1"], "the input \"n\" is given more than once"),
        ] {
            let refused = read(typed).unwrap_err();
            assert!(refused.contains(says), "{typed:?}: {refused}");
        }
    }
}
