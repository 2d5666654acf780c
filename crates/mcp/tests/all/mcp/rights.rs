//! Who may answer for a person at a client, and which refusals are on record.

use rutter_app::app::AppSettings;
use rutter_app::command::CommandArguments;
use rutter_app::limits::REFUSALS_PER_MINUTE;
use rutter_app::principal::{Credential, McpToolset, Principal};
use rutter_app::rights::Operation;
use rutter_app::runtime::RuntimeOptions;
use rutter_app::scope::{self, AccessScope, AccessScopes};
use rutter_app::shown_call::FIELDS_SHOWN_MAX;
use rutter_app::verb::Verb;
use rutter_core::actor::{Actor, ActorKind};
use rutter_core::id::TenantId;
use rutter_core::journal::describe::describe;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::port::query::{EntryFilter, Pagination};
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::installation::options;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Value, json};

const ERAS: [ClientEra; 2] = [ClientEra::Legacy, ClientEra::Modern];

fn gated() -> Value {
    json!({ "name": "gated", "steps": [ { "id": "keep", "tool": "memory.store", "parameters": { "text": "x" },
        "cancellable": "irreversible", "approval": { "required": true } } ] })
}

fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

fn yes() -> Value {
    json!({ "action": "accept", "content": { "approve": true, "reason": "looks right" } })
}

/// The holder of a token over HTTP.
fn token(scopes: AccessScopes) -> Principal {
    let credential = Credential::Token { name: "remote".to_owned() };
    let toolsets = [McpToolset::Default].into();
    Principal { toolsets, ..Principal::new(TenantId::new("default"), "remote", scopes, credential) }
}

/// Executes a plan whose step needs approval, says yes to every form, and returns the last result and how many forms
/// there were.
async fn approve_everything(client: &mut McpClient, era: ClientEra) -> (Value, usize) {
    let call = json!({ "name": "execute_plan", "arguments": { "plan": gated() } });
    if era == ClientEra::Modern {
        let asked = client.ask("tools/call", call.clone()).await.unwrap();
        let Some(requests) = asked["inputRequests"].as_object() else { return (asked, 0) };
        let replies: serde_json::Map<String, Value> = requests.keys().map(|key| (key.clone(), yes())).collect();
        let mut again = call;
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!(replies);
        return (client.ask("tools/call", again).await.unwrap(), replies.len());
    }
    let id = client.send("tools/call", call).await;
    let mut forms = 0;
    loop {
        let message = client.hear().await;
        if message["method"] == "elicitation/create" {
            forms += 1;
            client.reply(&message["id"], yes()).await;
        } else if message["id"] == id {
            return (message["result"].clone(), forms);
        }
    }
}

async fn approval(deck: &ServerFixture) -> Option<EventRecord> {
    let filter = EntryFilter { kinds: vec!["approval_granted".to_owned()], ..EntryFilter::default() };
    let entries = deck.app.query.entries(&TenantId::new("default"), filter, Pagination::first(10)).await.unwrap();
    let entry = entries.items.into_iter().next()?;
    assert!(matches!(entry.record.event, Event::ApprovalGranted { .. }));
    Some(entry.record)
}

async fn approver(deck: &ServerFixture) -> Option<Actor> {
    approval(deck).await.map(|record| record.actor)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_the_scope_approve_is_not_asked_and_approves_nothing() {
    for era in ERAS {
        let deck = ServerFixture::new().await;
        let mut client = deck.client_of(era, token(scope::of_agent()), forms()).await;
        let (answer, asked) = approve_everything(&mut client, era).await;
        assert_eq!((asked, approver(&deck).await), (0, None), "{era:?} {answer}");
        assert_eq!(answer["structuredContent"]["status"], "waiting", "{era:?} {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_the_scope_approve_answers_for_its_person() {
    for era in ERAS {
        let deck = ServerFixture::new().await;
        let scopes = [AccessScope::Read, AccessScope::Operate, AccessScope::Approve].into();
        let mut client = deck.client_of(era, token(scopes), forms()).await;
        let (answer, asked) = approve_everything(&mut client, era).await;
        assert_eq!((asked, &answer["structuredContent"]["status"]), (1, &json!("completed")), "{era:?} {answer}");
        let actor = approver(&deck).await.unwrap();
        assert_eq!((actor.party, &*actor.name), (ActorKind::Person, "remote at tester"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_at_a_local_client_is_on_record_as_unproven_also_after_a_restart() {
    for era in ERAS {
        let deck = ServerFixture::new().await;
        let mut client = deck.client_with(era, &[McpToolset::Default], forms()).await;
        let (answer, asked) = approve_everything(&mut client, era).await;
        assert_eq!((asked, &answer["structuredContent"]["status"]), (1, &json!("completed")), "{era:?} {answer}");
        let id = answer["structuredContent"]["execution_id"].as_str().unwrap().to_owned();
        drop(client);
        let deck = deck.restarted().await;
        let actor = approver(&deck).await.unwrap();
        assert_eq!(actor, Actor::person("operator at tester").unproven());
        let mut client = deck.client(era).await;
        let uri = format!("rutter://executions/{id}/journal");
        let journal = client.ask("resources/read", json!({ "uri": uri })).await.unwrap();
        let journal: Value = serde_json::from_str(journal["contents"][0]["text"].as_str().unwrap()).unwrap();
        let granted = journal["entries"].as_array().unwrap().iter().find(|entry| entry["kind"] == "approval_granted");
        let actor = &granted.unwrap()["actor"];
        assert_eq!(actor, &json!({ "party": "person", "name": "operator at tester", "proof": "unproven" }));
        let others =
            journal["entries"].as_array().unwrap().iter().filter(|entry| entry["actor"].get("proof").is_some());
        assert_eq!(others.count(), 1);
        let EventRecord { actor, event, .. } = approval(&deck).await.unwrap();
        let sentence = describe(&event).by(&actor).sentence();
        assert!(sentence.starts_with("operator at tester (unproven) approved keep"), "{sentence}");
        let ledger = client.call("query_ledger", json!({ "execution_id": id, "include_events": true })).await;
        assert!(ledger.to_string().contains("unproven"), "{ledger}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_form_is_shown_where_the_operator_wants_none() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let settings = AppSettings { ask_at_client: false, templates: None };
        let options = RuntimeOptions { settings, ..options(folder.path(), "") };
        let deck = ServerFixture::open_with(folder, options).await;
        let local = Principal::local(TenantId::new("default"), "operator", [McpToolset::Default].into());
        for principal in [local, token(AccessScope::ALL.into())] {
            let mut client = deck.client_of(era, principal, forms()).await;
            let (answer, asked) = approve_everything(&mut client, era).await;
            assert_eq!((asked, approver(&deck).await), (0, None), "{era:?} {answer}");
            assert_eq!(answer["structuredContent"]["status"], "waiting", "{era:?} {answer}");
        }
    }
}

/// A task's questions have predictable names, so a client can answer one that it was not asked.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_question_that_was_not_asked_is_refused() {
    let deck = ServerFixture::new().await;
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": { "form": {} } });
    let mut client = deck.client_of(ClientEra::Modern, token(scope::of_agent()), capabilities).await;
    let call = json!({ "name": "execute_plan", "arguments": { "plan": gated(), "wait_seconds": 30 } });
    let waiting = client.ask("tools/call", call).await.unwrap()["structuredContent"].clone();
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    let key = format!("approve keep {}", waiting["questions"][0]["call"].as_str().unwrap());
    let update = json!({ "taskId": waiting["execution_id"], "inputResponses": { key: yes() } });
    let refused = client.ask("tasks/update", update).await.unwrap_err();
    assert!(refused.to_string().contains("only a person may do this"), "{refused}");
    assert_eq!(approver(&deck).await, None);
    let execution = waiting["execution_id"].as_str().map(str::to_owned);
    let on_record = refusals(&deck).await;
    assert!(matches!(&on_record[..], [(_, act, about, 1)] if act == "approve" && *about == execution), "{on_record:?}");
}

/// Who may approve and answers too late only made a mistake.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_answer_to_a_form_is_on_record() {
    for (scopes, acts) in [(scope::of_agent(), vec!["answer"]), (scope::of_operator(), Vec::new())] {
        let deck = ServerFixture::new().await;
        let waiting = deck.client(ClientEra::Modern).await.call("execute_plan", json!({ "plan": gated() })).await;
        let mut client = deck.client_of(ClientEra::Modern, token(scopes), forms()).await;
        let about = json!({ "execution_id": waiting["execution_id"] });
        let call = json!({ "name": "status", "arguments": about, "requestState": "forged",
            "inputResponses": { "approve keep": yes() } });
        let refused = client.ask("tools/call", call).await.unwrap();
        assert!(refused.to_string().contains("server.stale_question"), "{refused}");
        let on_record: Vec<String> = refusals(&deck).await.into_iter().map(|(_, act, ..)| act).collect();
        assert_eq!(on_record, acts);
    }
}

/// A plan in which the step needs no approval any more.
fn ungated() -> Value {
    let mut plan = gated();
    plan["steps"][0].as_object_mut().unwrap().remove("approval");
    plan
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_plan_that_was_rejected_too_often_is_refused_and_on_record() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let id = client.call("execute_plan", json!({ "plan": gated() })).await["execution_id"].clone();
    let new = json!({ "execution_id": id, "plan": ungated(), "reason": "quicker" });
    // Three times again, which is the default.
    for _ in 0..=3 {
        let proposed = client.call("replan", new.clone()).await;
        assert_eq!(proposed["is_applied"], false, "{proposed}");
        let view = client.call("status", json!({ "execution_id": id, "wait_seconds": 0 })).await;
        let questions = view["questions"].as_array().unwrap();
        let asked = questions.iter().find(|question| question["kind"] == "replan").unwrap();
        let arguments =
            CommandArguments { call: asked["plan"].as_str().map(str::to_owned), ..CommandArguments::default() };
        deck.command_with(id.as_str().unwrap(), Verb::Reject, arguments, "no").await;
    }
    let refused = client.call("replan", new).await;
    assert_eq!(refused["error"]["code"], "replan.rejected", "{refused}");
    let execution = id.as_str().map(str::to_owned);
    assert_eq!(refusals(&deck).await, [("agent tester".to_owned(), "replan".to_owned(), execution, 1)]);
}

/// Executes a plan, and returns the text of the form that its client is shown.
async fn form_of(plan: &Value, era: ClientEra) -> Option<String> {
    let deck = ServerFixture::with(ANY).await;
    let mut client = deck.client_of(era, token(scope::of_operator()), forms()).await;
    let call = json!({ "name": "execute_plan", "arguments": { "plan": plan } });
    if era == ClientEra::Modern {
        let asked = client.ask("tools/call", call).await.unwrap();
        let forms = asked["inputRequests"].as_object();
        assert!(forms.is_some() || asked["structuredContent"]["status"] == "waiting", "{asked}");
        return forms?.values().next()?["params"]["message"].as_str().map(str::to_owned);
    }
    let id = client.send("tools/call", call).await;
    let mut text = None;
    loop {
        let message = client.hear().await;
        if message["method"] == "elicitation/create" {
            text = message["params"]["message"].as_str().map(str::to_owned);
            client.reply(&message["id"], json!({ "action": "decline" })).await;
        } else if message["id"] == id {
            assert_eq!(message["result"]["structuredContent"]["status"], "waiting", "{message}");
            return text;
        }
    }
}

/// A tool that takes any parameters.
const ANY: &str = "
[commands.any.tools.call]
description = 'Take anything'
argv = ['/bin/true']
input = { type = 'object' }
result = 'text'
safety = 'idempotent'
";

#[tokio::test(flavor = "multi_thread")]
async fn a_form_shows_every_parameter_or_there_is_none() {
    let plan = |parameters: Value, attempts: u32| {
        json!({ "name": "any", "steps": [{ "id": "a", "tool": "any.call", "parameters": parameters,
            "cancellable": "irreversible", "approval": { "required": true }, "retry": { "max_attempts": attempts } }] })
    };
    for era in ERAS {
        let short = form_of(&plan(json!({ "amount": 5, "to": "eve" }), 1), era).await.unwrap();
        assert!(short.contains(r#"any.call with {"amount":5,"to":"eve"}. Approve this call?"#), "{era:?} {short}");
        let long = json!({ "note": "n".repeat(5_000), "amount": 5, "more": "m".repeat(4_000), "to": "eve" });
        let long = form_of(&plan(long, 3), era).await.unwrap();
        for part in [
            r#""amount":5"#,
            r#""to":"eve""#,
            "(5000 characters in all)",
            "(4000 characters in all)",
            "Not everything is shown here: the whole call is",
            "it may be sent up to 3 times, retries included",
        ] {
            assert!(long.contains(part), "{era:?} {part}: {long}");
        }
        let fields =
            |count: usize| (0..count).map(|at| (format!("field{at}"), json!("x".repeat(100)))).collect::<Value>();
        let most = form_of(&plan(fields(FIELDS_SHOWN_MAX), 1), era).await.unwrap();
        assert!((0..FIELDS_SHOWN_MAX).all(|at| most.contains(&format!("\"field{at}\""))), "{era:?} {most}");
        assert_eq!(form_of(&plan(fields(FIELDS_SHOWN_MAX + 1), 1), era).await, None, "{era:?}");
    }
}

async fn refusals(deck: &ServerFixture) -> Vec<(String, String, Option<String>, u64)> {
    deck.app.refusals.flush().await;
    let filter = EntryFilter { kinds: vec!["act_refused".to_owned()], ..EntryFilter::default() };
    let entries = deck.app.query.entries(&TenantId::new("default"), filter, Pagination::first(100)).await.unwrap();
    let refused = entries.items.into_iter().rev().map(|entry| {
        let Event::ActRefused { act, execution, count, .. } = entry.record.event else { panic!("another event") };
        (entry.record.actor.to_string(), act, execution.map(|execution| execution.to_string()), count)
    });
    refused.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_of_a_privileged_act_is_in_the_ledger() {
    for era in ERAS {
        let deck = ServerFixture::new().await;
        let mut client = deck.client(era).await;
        let id = client.call("execute_plan", json!({ "plan": gated() })).await["execution_id"].clone();
        for action in ["approve", "reject", "accept_tool"] {
            let refused = client.call("control", json!({ "execution_id": id, "action": action, "reason": "x" })).await;
            assert_eq!(refused["error"]["code"], "server.not_allowed", "{refused}");
        }
        let execution = id.as_str().map(str::to_owned);
        let expected = ["approve", "reject", "accept_tool"]
            .map(|act| ("agent tester".to_owned(), act.to_owned(), execution.clone(), 1));
        assert_eq!(refusals(&deck).await, expected);
        let reader = token([AccessScope::Read].into());
        for operation in [Operation::Read, Operation::CleanUp, Operation::ManageKeys, Operation::StartExecution] {
            let _ = deck.app.require(&reader, operation);
        }
        assert!(deck.app.auth.list(&reader).is_err());
        let acts: Vec<String> = refusals(&deck).await.into_iter().skip(3).map(|(_, act, _, _)| act).collect();
        assert_eq!(acts, ["clean_up", "manage_keys", "start_execution", "manage_keys"], "reading is not refused");
        let page = deck.app.metrics_text(&Principal::owner(TenantId::new("default"), "operator")).await.unwrap();
        assert!(page.contains("rutter_refusals_total{scope=\"approve\"} 3"), "{page}");
    }
}

/// A hostile agent cannot fill the ledger.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_beyond_the_limit_are_one_entry() {
    for (tried, entries) in [(REFUSALS_PER_MINUTE - 1, 19), (REFUSALS_PER_MINUTE, 20), (REFUSALS_PER_MINUTE + 7, 21)] {
        let deck = ServerFixture::new().await;
        for _ in 0..tried {
            assert!(deck.app.require(&token(scope::of_agent()), Operation::ManageKeys).is_err());
        }
        let deck = deck.restarted().await;
        let found = refusals(&deck).await;
        assert_eq!((found.len(), found.iter().map(|(_, _, _, count)| count).sum()), (entries, tried), "{found:?}");
        assert_eq!(found.last().unwrap().3, if tried > REFUSALS_PER_MINUTE { 7 } else { 1 });
    }
}
