//! The same right at every door: each operation and each verb, over HTTP, on the dashboard and over MCP, with keys of
//! every scope.

use crate::security::harbour::{Harbour, OPERATOR, tenant};
use crate::security::routes::counted;
use rutter_app::auth::AccessScope::{self, Admin, Approve, Operate, Read};
use rutter_app::principal::{Credential, Principal};
use rutter_app::rights::{OPERATIONS, Operation, check_verb, may};
use rutter_app::verb::VERBS;
use serde_json::{Value, json};

const KEYS: &[&[AccessScope]] = &[
    &[Read],
    &[Operate],
    &[Approve],
    &[Admin],
    &[Read, Operate],
    &[Read, Approve],
    &[Read, Admin],
    &[Operate, Approve, Admin],
    &[Read, Operate, Approve, Admin],
];

/// One operation at its doors. What is sent is wrong or changes little: only whether it is refused for its scope counts.
struct Doors {
    operation: Operation,
    /// Method, path and body.
    http: Option<(&'static str, String, Value)>,
    /// Method, path and form.
    page: Option<(&'static str, String, &'static str)>,
    /// Toolset, tool and arguments.
    mcp: Option<(&'static str, &'static str, Value)>,
}

fn doors(execution: &str) -> Vec<Doors> {
    let plan = json!({ "name": "note", "steps": [{ "id": "a", "tool": "memory.recent" }] });
    let api = |path: &str| format!("/api/v1{path}");
    let http = |method, path: &str, body| Some((method, api(path), body));
    let page = |method, path: &str, form| Some((method, path.to_owned(), form));
    let of = |operation, http, page, mcp| Doors { operation, http, page, mcp };
    let none = json!({});
    let (get, post) = ("GET", "POST");
    vec![
        of(
            Operation::Read,
            http(get, "/executions", none.clone()),
            page(get, "/executions", ""),
            Some(("default", "query_history", json!({}))),
        ),
        of(
            Operation::ListTools,
            http(get, "/tools", none.clone()),
            page(post, "/tools/ask", ""),
            Some(("default", "find_tools", json!({}))),
        ),
        of(
            Operation::CheckPlan,
            http(post, "/plans/check", json!({ "plan": plan })),
            None,
            Some(("default", "preview", json!({ "plan": plan }))),
        ),
        of(
            Operation::VerifyLedger,
            http(post, "/ledger/verify", none.clone()),
            page(post, "/journal/verify", ""),
            None,
        ),
        of(Operation::ExportLedger, http(get, "/ledger/export", none.clone()), page(get, "/journal/export", ""), None),
        of(Operation::ReadMetrics, Some((get, "/metrics".to_owned(), none.clone())), None, None),
        of(Operation::ReadAlerts, http(get, "/alerts", none.clone()), page(get, "/alerts", ""), None),
        of(
            Operation::SavePlan,
            http(post, "/plans", json!({ "plan": plan })),
            None,
            Some(("default", "save_plan", json!({ "plan": plan }))),
        ),
        of(Operation::ArchivePlan, http(post, "/plans/plan_none/archive", json!({ "reason": "r" })), None, None),
        of(Operation::DeletePlan, http(post, "/plans/plan_none/delete", json!({ "reason": "r" })), None, None),
        of(
            Operation::StartExecution,
            http(post, "/executions", json!({ "plan_id": "plan_none" })),
            page(post, "/plans/plan_none/start", ""),
            Some(("default", "execute_plan", json!({ "plan_id": "plan_none" }))),
        ),
        of(
            Operation::Replan,
            http(post, &format!("/executions/{execution}/replan"), json!({ "plan": plan, "reason": "" })),
            None,
            Some(("default", "replan", json!({ "execution_id": execution, "plan": plan, "reason": " " }))),
        ),
        of(
            Operation::Record,
            http(
                post,
                &format!("/executions/{execution}/records"),
                json!({ "action": { "action_type": "other", "description": "d" } }),
            ),
            None,
            Some((
                "journal",
                "record_action",
                json!({ "execution_id": execution, "action_type": "other", "description": "d" }),
            )),
        ),
        of(
            Operation::AcknowledgeAlert,
            http(post, "/alerts/none_1/acknowledge", none.clone()),
            page(post, "/alerts/none_1/acknowledge", ""),
            None,
        ),
        of(Operation::SilenceAlerts, http(post, "/silences", none.clone()), page(post, "/alerts/silences", ""), None),
        of(Operation::ChangeAlertRules, http(post, "/rules", none.clone()), page(post, "/alerts/rules", ""), None),
        of(
            Operation::ReadWebhooks,
            http(get, "/webhooks", none.clone()),
            page(get, "/alerts/webhooks/none_1", ""),
            None,
        ),
        of(
            Operation::ReadWebhooks,
            http(get, "/deliveries/1", none.clone()),
            page(get, "/alerts/deliveries/1", ""),
            None,
        ),
        of(Operation::ChangeWebhooks, http(post, "/webhooks", none.clone()), page(post, "/alerts/webhooks", ""), None),
        of(
            Operation::CallTool,
            http(post, "/tools/memory.recent/call", json!({ "reason": "" })),
            page(post, "/tools/memory.recent/call", ""),
            Some(("admin", "call_tool", json!({ "tool": "memory.recent", "reason": "" }))),
        ),
        of(
            Operation::ResetBreaker,
            http(post, "/servers/none_1/reset", none.clone()),
            page(post, "/servers/none_1/reset", ""),
            None,
        ),
        of(
            Operation::SignCheckpoint,
            http(post, "/ledger/checkpoints", none.clone()),
            page(post, "/journal/sign", ""),
            None,
        ),
        of(
            Operation::CleanUp,
            http(post, "/history/cleanup", json!({ "cleanup_type": "all_old" })),
            None,
            Some(("journal", "cleanup_history", json!({ "cleanup_type": "all_old" }))),
        ),
        of(Operation::ManageKeys, http(get, "/keys", none.clone()), page(post, "/settings/keys", ""), None),
        of(Operation::UseAdminTools, None, None, Some(("admin", "find_tools", json!({})))),
    ]
}

/// A key with its session.
struct Caller {
    principal: Principal,
    bearer: String,
    cookie: String,
    csrf: String,
}

impl Caller {
    async fn new(harbour: &Harbour, scopes: &[AccessScope]) -> Caller {
        let name = format!("{scopes:?}");
        let (_, secret) = harbour.key(&name, scopes).await;
        let (cookie, csrf) = harbour.session(&secret).await;
        let credential = Credential::Token { name: name.clone() };
        let principal = Principal::new(tenant(), &name, scopes.iter().copied().collect(), credential);
        Caller { principal, bearer: format!("Bearer {secret}"), cookie, csrf }
    }

    async fn http(&self, harbour: &Harbour, (method, path, body): &(&str, String, Value)) -> bool {
        let headers = [("Authorization", self.bearer.as_str()), ("Content-Type", "application/json")];
        let body = if *method == "GET" { String::new() } else { body.to_string() };
        is_allowed(harbour.ask(&harbour.request(method, path, &headers, &body)).await)
    }

    async fn page(&self, harbour: &Harbour, (method, path, form): &(&str, String, &str)) -> bool {
        let headers = [("Cookie", self.cookie.as_str()), ("Accept", "text/html")];
        is_allowed(match *method {
            "GET" => harbour.get(path, &headers).await,
            _ => harbour.post(path, &headers, &format!("csrf={}&{form}", self.csrf)).await,
        })
    }

    async fn mcp(&self, harbour: &Harbour, (toolset, tool, arguments): &(&str, &str, Value)) -> bool {
        let version = "2026-07-28";
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments,
            "_meta": { "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {} } } });
        let headers = [
            ("Authorization", self.bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Mcp-Protocol-Version", version),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        let path = format!("/mcp?toolset={toolset}");
        is_allowed(harbour.ask(&harbour.request("POST", &path, &headers, &body.to_string())).await)
    }
}

fn is_allowed(answer: crate::security::harbour::Answer) -> bool {
    assert!(!matches!(answer.status, 0 | 401 | 429 | 500..), "{answer:?}");
    // An export of the ledger has earlier refusals in it.
    let says_so = answer.body.contains("server.not_allowed") && !answer.body.contains("act_refused");
    let is_refused = answer.status == 403 || says_so;
    assert_eq!(is_refused, says_so, "{answer:?}");
    !is_refused
}

/// An execution that waits for a person.
async fn waiting(harbour: &Harbour) -> String {
    let plan = json!({ "name": "gated", "steps": [
        { "id": "keep", "tool": "memory.store", "parameters": { "text": "x" }, "approval": { "required": true } } ] });
    let bearer = format!("Bearer {OPERATOR}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let body = json!({ "plan": plan, "wait_seconds": 30 }).to_string();
    let answer = harbour.ask(&harbour.request("POST", "/api/v1/executions", &headers, &body)).await;
    let location = answer.header("location").unwrap_or_else(|| panic!("{answer:?}"));
    location.rsplit('/').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_allowed_or_refused_alike_at_every_door() {
    let harbour = Harbour::new().await;
    let doors = doors(&waiting(&harbour).await);
    for row in OPERATIONS {
        let is_tried = doors.iter().any(|doors| doors.operation == row.operation);
        assert_eq!(is_tried, row.operation != Operation::Erase, "{}: only the command line erases", row.name);
    }
    let mut cases = 0;
    for scopes in KEYS {
        let caller = Caller::new(&harbour, scopes).await;
        for doors in &doors {
            let expected = may(&caller.principal, doors.operation);
            let about = format!("{:?} with {scopes:?}", doors.operation);
            if let Some(http) = &doors.http {
                assert_eq!(caller.http(&harbour, http).await, expected, "{about} over HTTP");
                cases += 1;
            }
            if let Some(page) = &doors.page {
                assert_eq!(caller.page(&harbour, page).await, expected, "{about} on the dashboard");
                cases += 1;
            }
            if let Some(mcp) = &doors.mcp {
                assert_eq!(caller.mcp(&harbour, mcp).await, expected, "{about} over MCP");
                cases += 1;
            }
        }
    }
    counted("operations, doors and keys", cases);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_is_allowed_or_refused_alike_at_every_door() {
    let harbour = Harbour::new().await;
    let execution = waiting(&harbour).await;
    let mut cases = 0;
    for scopes in KEYS {
        let caller = Caller::new(&harbour, scopes).await;
        for row in VERBS {
            let about = format!("{} with {scopes:?}", row.name);
            let expected = check_verb(&caller.principal, row.verb).is_ok();
            let http = ("POST", format!("/api/v1/executions/{execution}/signals"), json!({ "action": row.name }));
            assert_eq!(caller.http(&harbour, &http).await, expected, "{about} over HTTP");
            let form: &'static str = Box::leak(format!("say={}", row.name).into_boxed_str());
            let page = ("POST", format!("/executions/{execution}/answer"), form);
            assert_eq!(caller.page(&harbour, &page).await, expected, "{about} on the dashboard");
            // A program never has the rights of a person.
            let expected = check_verb(&caller.principal.through(Some("tester")), row.verb).is_ok();
            let mcp = ("default", "control", json!({ "execution_id": execution, "action": row.name }));
            assert_eq!(caller.mcp(&harbour, &mcp).await, expected, "{about} over MCP");
            cases += 3;
        }
    }
    counted("verbs, doors and keys", cases);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_different_principals_are_independent_and_outlive_a_restart() {
    let harbour = Harbour::new().await;
    let scopes = [Read, Operate];
    let (one, two) = (Caller::new(&harbour, &scopes).await, harbour.key("another", &scopes).await.1);
    let start = |bearer: &str, number: u32| {
        let plan = json!({ "name": "note", "steps": [
            { "id": "a", "tool": "memory.store", "parameters": { "text": format!("{number}") } }] });
        let headers = [("Authorization", bearer), ("Content-Type", "application/json"), ("Idempotency-Key", "k-1")];
        (headers.map(|(name, value)| (name, value.to_owned())), json!({ "plan": plan }).to_string())
    };
    async fn send(harbour: &Harbour, (headers, body): ([(&'static str, String); 3], String)) -> (u16, String) {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = harbour.ask(&harbour.request("POST", "/api/v1/executions", &headers, &body)).await;
        let id = answer.body.split("\"execution_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        (answer.status, id.unwrap_or_default().to_owned())
    }
    let first = send(&harbour, start(&one.bearer, 1)).await;
    assert_eq!(first.0, 201, "{first:?}");
    let other = send(&harbour, start(&format!("Bearer {two}"), 2)).await;
    assert_eq!(other.0, 201, "another principal's key does not collide: {other:?}");
    assert_ne!(first.1, other.1);
    assert_eq!(send(&harbour, start(&one.bearer, 2)).await.0, 409, "its own key does");
    let harbour = harbour.restarted(crate::security::harbour::tokens()).await;
    assert_eq!(send(&harbour, start(&one.bearer, 1)).await, (200, first.1), "also after a restart");
}
