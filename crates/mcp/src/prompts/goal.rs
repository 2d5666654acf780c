//! `plan_goal`: what a good plan for a goal needs, with matching tools.

use crate::texts;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_core::port::tools::ServerSelection;
use rutter_core::text::cut;
use rutter_core::tool::Tool;
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

const TOOLS_MAX: usize = 10;
/// Servers that do not list their tools in time are left out.
const CATALOG_MAX: Duration = Duration::from_secs(10);
const DESCRIPTION_CHARS_MAX: usize = 200;
const SCHEMA_BYTES_MAX: usize = 600;

pub(super) async fn text(
    app: &App,
    caller: &Principal,
    goal: &str,
    complexity: &str,
    domain: Option<&str>,
) -> Result<String, AppError> {
    let size = match complexity {
        "simple" => "Keep it to the few steps it takes, one after the other.",
        "complex" => {
            "Let what is independent run side by side (`max_parallel`), fan out with `for_each` where there is a list, \
             and bound it with `deadline` and `budget`."
        }
        _ => "Order the steps by what they need; run side by side only what is independent.",
    };
    let domain = domain.map(|domain| format!("\nDomain: {domain}")).unwrap_or_default();
    let tools = tools(app, caller, goal).await?;
    Ok(format!(
        "Draft a plan for Rutter and have it executed.\n\n\
         Goal: {goal}{domain}\n\
         Complexity: {complexity}. {size}\n\n\
         ## What the plan must have\n\
         1. Steps with honest dependencies: by reference to results, `depends_on` only for order.\n\
         2. For each step that changes something, `cancellable` and, where it can be undone, a `compensation`. Say \
            `irreversible` where it cannot, and put such steps last.\n\
         3. A `probe` for each step that must not happen twice, where a read can tell whether it happened.\n\
         4. A failure policy that fits each step, with a `reason`; the default waits for a decision.\n\
         5. An `approval` before what costs money, reaches people or cannot be undone. You cannot give it yourself.\n\
         6. Risks: what may go wrong, and what then remains.\n\
         7. Monitoring: what to watch while it runs (`status`, subscription to the execution), and when to tell \
            the user.\n\n\
         ## How to continue\n\
         `save_plan` with `dry_run: true` and correct everything it names; `preview` what can be undone; show the user \
         the plan, the risks and the point of no return; then `save_plan` and `execute_plan` with a `request_id`.\n\n\
         Rutter does not promise success, does not guess whether a call happened, and compensation is another call, \
         not time running backwards. Write secrets as {{\"secret\": \"name\"}}.\n\n\
         ## Tools that may fit\n{tools}\n\
         {}",
        texts::PLAN
    ))
}

/// Descriptions come from the servers; they are quoted and cut.
async fn tools(app: &App, caller: &Principal, goal: &str) -> Result<String, AppError> {
    let asked = tokio::time::timeout(CATALOG_MAX, app.catalog(caller, ServerSelection::All)).await;
    let Ok(catalog) = asked else {
        return Ok("The servers did not list their tools in time; search with `find_tools`.\n".to_owned());
    };
    let catalog = catalog?;
    let found = app.search_tools(goal, TOOLS_MAX);
    let found: Vec<&Tool> = found.iter().filter_map(|name| catalog.tools.tools.get(name)).map(AsRef::as_ref).collect();
    let mut text = String::new();
    if found.is_empty() {
        text.push_str(
            "No known tool matches these words. Try `find_tools` with others, or plan with tools of your own \
             and execute with `driver: \"agent\"`.\n",
        );
    }
    for tool in found {
        let description = cut(&tool.description, DESCRIPTION_CHARS_MAX);
        let safety = tool.safety.as_str();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- `{}` ({safety}): {description:?}\n  parameters: {}", tool.name, brief(&tool.input));
    }
    for (server, failure) in &catalog.absent {
        let _ = writeln!(text, "- the tools of {server} are unavailable: {}", cut(&failure.to_string(), 200));
    }
    Ok(text)
}

/// The schema, or only its property names if it is too long.
fn brief(schema: &Value) -> String {
    let text = schema.to_string();
    if text.len() <= SCHEMA_BYTES_MAX {
        return text;
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let names = schema["properties"].as_object().into_iter().flatten().map(|(name, property)| {
        let kind = property["type"].as_str().unwrap_or("any");
        let must = if required.iter().any(|other| other == name.as_str()) { " (required)" } else { "" };
        format!("{name}: {kind}{must}")
    });
    cut(&names.collect::<Vec<String>>().join(", "), SCHEMA_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_schemas_shrink_to_names_and_types() {
        let short = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        assert_eq!(brief(&short), short.to_string());
        let long = "x".repeat(SCHEMA_BYTES_MAX);
        let long =
            json!({ "properties": { "a": { "type": "string", "description": long }, "b": {} }, "required": ["a"] });
        assert_eq!(brief(&long), "a: string (required), b: any");
    }
}
