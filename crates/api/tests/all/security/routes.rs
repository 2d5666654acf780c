//! Every route, and the credentials it requires.

use crate::security::harbour::{Answer, Harbour, OPERATOR};
use rutter_api::openapi;
use rutter_app::auth::AccessScope;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub method: String,
    /// Path parameters name things that do not exist.
    pub path: String,
    pub entry: Entry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Anybody,
    /// A token or key: MCP.
    Programs,
    /// A token or key, or a cookie, with this scope: the API.
    Both(AccessScope),
    /// A cookie: pages.
    Browsers,
}

/// Routes outside of the tables.
const OTHERS: &[(&str, &str, Entry)] = &[
    ("GET", "/healthz", Entry::Anybody),
    ("GET", "/enter", Entry::Anybody),
    ("POST", "/enter", Entry::Anybody),
    ("GET", "/assets/0/app.css", Entry::Anybody),
    ("GET", "/api", Entry::Anybody),
    ("GET", "/api/docs", Entry::Anybody),
    ("GET", "/api/docs/errors", Entry::Anybody),
    ("GET", "/api/nothing", Entry::Anybody),
    ("POST", "/mcp", Entry::Programs),
    ("GET", "/mcp", Entry::Programs),
    ("DELETE", "/mcp", Entry::Programs),
    ("GET", "/metrics", Entry::Both(AccessScope::Read)),
    ("GET", "/ask/none_1", Entry::Browsers),
    ("GET", "/nothing", Entry::Browsers),
    ("POST", "/leave", Entry::Browsers),
];

/// Streams do not end, so they get a query that they refuse.
const STREAMS: &[&str] = &["/events"];

pub fn all() -> Vec<Route> {
    let route = |method: &str, path: &str, entry| Route { method: method.to_owned(), path: path.to_owned(), entry };
    let mut routes: Vec<Route> = OTHERS.iter().map(|(method, path, entry)| route(method, path, *entry)).collect();
    routes.extend(pages().into_iter().map(|(method, path)| route(method, &filled(&path), Entry::Browsers)));
    for (path, methods) in openapi::document()["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap().iter().filter(|(_, about)| about.is_object()) {
            let entry = match about.get("x-scope").and_then(Value::as_str) {
                Some(scope) => Entry::Both(scope.parse().unwrap()),
                None => Entry::Anybody,
            };
            let path = if path.starts_with("/api") { path.clone() } else { format!("/api/v1{path}") };
            let query = if STREAMS.iter().any(|end| path.ends_with(end)) { "?nonsense=1" } else { "" };
            let path = format!("{}{query}", filled(&path));
            routes.push(route(&method.to_uppercase(), &path, entry));
        }
    }
    assert!(routes.len() > OTHERS.len() + 20, "the API has routes");
    routes
}

/// The pages, parsed from the source, so that new ones are tested too.
fn pages() -> Vec<(&'static str, String)> {
    let source = include_str!("../../../../web/src/lib.rs");
    let (_, source) = source.split_once("fn routes(").unwrap();
    let (source, _) = source.split_once("\n}\n").unwrap();
    let lines = source.split(".route(").skip(1);
    let pages: Vec<(&str, String)> = lines
        .flat_map(|line| {
            let path = line.split('"').nth(1).unwrap();
            let methods = [("GET", "get("), ("POST", "post(")];
            methods.into_iter().filter(|(_, call)| line.contains(call)).map(|(method, _)| (method, path.to_owned()))
        })
        .collect();
    assert!(pages.len() >= 9, "{pages:?}");
    pages
}

/// Replaces path parameters with ids that do not exist.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "none_1" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Credentials with every scope.
pub struct Papers {
    pub bearer: String,
    pub cookie: String,
    pub csrf: String,
}

impl Papers {
    pub async fn all(harbour: &Harbour) -> Papers {
        let (cookie, csrf) = harbour.session(OPERATOR).await;
        Papers { bearer: format!("Bearer {OPERATOR}"), cookie, csrf }
    }

    /// The request of a browser or program with every scope, with additional `headers`.
    pub fn request(&self, harbour: &Harbour, route: &Route, headers: &[(&str, &str)]) -> String {
        let mut sent = headers.to_vec();
        match route.entry {
            Entry::Anybody => {}
            Entry::Programs | Entry::Both(_) => sent.push(("Authorization", &self.bearer)),
            Entry::Browsers => sent.push(("Cookie", &self.cookie)),
        }
        let is_form = route.entry == Entry::Browsers;
        let (kind, body) = match route.method.as_str() {
            "GET" => return harbour.request("GET", &route.path, &sent, ""),
            _ if is_form => ("application/x-www-form-urlencoded", format!("csrf={}", self.csrf)),
            _ => ("application/json", "{}".to_owned()),
        };
        sent.push(("Content-Type", kind));
        harbour.request(&route.method, &route.path, &sent, &body)
    }
}

/// Whether the gate refused the request, with a reason.
pub fn is_turned_away(answer: &Answer) -> bool {
    let by_name = answer.status == 403 && (answer.has("server.host") || answer.has("server.origin"));
    by_name || (answer.status == 400 && (answer.body.contains("is repeated") || answer.body.is_empty()))
}

/// Prints the number of cases.
pub fn counted(what: &str, cases: usize) {
    println!("security: {cases} cases of {what}");
}
