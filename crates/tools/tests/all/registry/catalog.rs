//! What is offered: from which servers, under which names, with which safety, and for how long it is fresh.

use crate::registry::fixture::{Listing, Puppet, RegistryFixture, entrant, plain, served};
use rutter_core::id::ToolName;
use rutter_core::limits;
use rutter_core::port::tools::{ServerSelection, ToolGateway};
use rutter_core::time::Millis;
use rutter_core::tool::attempts::{AttemptSettings, RetrySettings};
use rutter_core::tool::{FailureCategory, Safety, SafetySource, ToolFailure};
use rutter_tools::config::command::CommandServerConfig;
use rutter_tools::config::http::HttpServerConfig;
use rutter_tools::config::{CallLimits, Config, ServerSettings, ToolSettings};
use rutter_tools::connector::ServedTool;
use rutter_tools::registry::{Error, ToolRegistry};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, advance, sleep};

fn names(catalog: &rutter_core::port::tools::CatalogSnapshot) -> Vec<&str> {
    catalog.tools.tools.keys().map(ToolName::as_str).collect()
}

fn named(servers: &[&str]) -> ServerSelection {
    ServerSelection::Named(servers.iter().map(|server| (*server).to_owned()).collect())
}

#[tokio::test]
async fn tools_are_offered_under_the_name_of_their_server() {
    let (git, message) = (Puppet::new(vec![plain("commit"), plain("log.show")]), Puppet::new(vec![plain("send")]));
    let fixture = RegistryFixture::new(&[("git", &git), ("mail", &message)]);
    assert_eq!(fixture.registry.definition(&ToolName::new("git.commit")), None, "nothing was listed so far");
    let catalog = fixture.catalog().await;
    assert_eq!(names(&catalog), ["git.commit", "git.log.show", "mail.send"]);
    assert!(catalog.absent.is_empty());
    let commit = &catalog.tools.tools["git.commit"];
    assert_eq!(fixture.registry.definition(&ToolName::new("git.commit")), Some(commit.definition));
    assert_eq!(fixture.registry.definition(&ToolName::new("git.push")), None);
}

#[tokio::test]
async fn only_the_named_servers_are_asked_and_unknown_ones_are_absent() {
    let (git, message) = (Puppet::new(vec![plain("commit")]), Puppet::new(vec![plain("send")]));
    let fixture = RegistryFixture::new(&[("git", &git), ("mail", &message)]);
    let catalog = fixture.registry.catalog(named(&["mail", "nothing"])).await;
    assert_eq!(names(&catalog), ["mail.send"]);
    assert_eq!((git.lists(), message.lists()), (0, 1));
    let absent: Vec<_> = catalog.absent.iter().map(|(name, failure)| (name.as_str(), failure.category)).collect();
    assert_eq!(absent, [("nothing", FailureCategory::NotFound)]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_delays_only_who_asks_for_it() {
    let (hanging, well) = (Puppet::new(vec![plain("x")]), Puppet::new(vec![plain("send")]));
    *hanging.listing.lock().unwrap() = Listing::Hangs;
    let fixture = RegistryFixture::new(&[("hanging", &hanging), ("well", &well)]);
    let began = Instant::now();
    let all = fixture.catalog();
    tokio::pin!(all);
    assert!(futures::poll!(&mut all).is_pending());
    assert_eq!(names(&fixture.registry.catalog(named(&["well"])).await), ["well.send"]);
    assert_eq!(began.elapsed(), Duration::ZERO);
    let catalog = all.await;
    assert_eq!(began.elapsed().as_millis() as u64, limits::UNKNOWN_SERVER_WAIT.0);
    assert_eq!(names(&catalog), ["well.send"]);
    assert_eq!(catalog.absent[0].0, "hanging");
    assert_eq!(catalog.absent[0].1.category, FailureCategory::Unavailable);
}

#[tokio::test]
async fn a_server_that_cannot_list_is_absent_and_asked_again_next_time() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let refused = ToolFailure::new(FailureCategory::Unavailable, "connection refused");
    for (listing, category) in
        [(Listing::Fails(refused), FailureCategory::Unavailable), (Listing::Panics, FailureCategory::Internal)]
    {
        *puppet.listing.lock().unwrap() = listing;
        let catalog = fixture.catalog().await;
        assert_eq!(catalog.absent[0].1.category, category);
        assert_eq!(fixture.registry.report()[0].failure.as_ref().unwrap().failure.category, category);
    }
    *puppet.listing.lock().unwrap() = Listing::Answers;
    assert_eq!(names(&fixture.catalog().await), ["s.x"]);
    assert_eq!(fixture.registry.report()[0].failure, None);
}

#[tokio::test]
async fn concurrent_listings_ask_the_server_once() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let catalogs = futures::future::join_all((0..100).map(|_| fixture.catalog())).await;
    assert!(catalogs.iter().all(|catalog| names(catalog) == ["s.x"]));
    assert_eq!(puppet.lists(), 1);
}

#[tokio::test]
async fn a_change_is_noticed_at_the_next_use() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    for _ in 0..3 {
        assert_eq!(names(&fixture.catalog().await), ["s.x"]);
    }
    assert_eq!(puppet.lists(), 1);
    puppet.serve(vec![plain("x"), plain("y")]);
    assert_eq!(names(&fixture.catalog().await), ["s.x", "s.y"]);
    assert_eq!(puppet.lists(), 2);
}

#[tokio::test(start_paused = true)]
async fn after_ten_minutes_the_server_is_asked_again() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    fixture.catalog().await;
    // The server does not announce its change.
    *puppet.tools.lock().unwrap() = vec![plain("y")];
    advance(Duration::from_secs(599)).await;
    assert_eq!(names(&fixture.catalog().await), ["s.x"]);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(puppet.lists(), 1);
    advance(Duration::from_secs(2)).await;
    assert_eq!(names(&fixture.catalog().await), ["s.y"]);
    assert_eq!(puppet.lists(), 2);
}

#[tokio::test]
async fn the_operators_settings_come_before_trusted_hints_and_those_before_caution() {
    let read_only = json!({"readOnlyHint": true});
    let table: [(Value, Option<Safety>, bool, Safety, SafetySource); 6] = [
        (read_only.clone(), None, false, Safety::Once, SafetySource::Unknown),
        (read_only.clone(), None, true, Safety::ReadOnly, SafetySource::TrustedHint),
        (read_only.clone(), Some(Safety::Once), true, Safety::Once, SafetySource::Configured),
        (json!({}), Some(Safety::Idempotent), false, Safety::Idempotent, SafetySource::Configured),
        (
            json!({"idempotentHint": true, "vendor/colour": 7}),
            None,
            true,
            Safety::Idempotent,
            SafetySource::TrustedHint,
        ),
        (json!({"readOnlyHint": true, "destructiveHint": true}), None, true, Safety::Once, SafetySource::Unknown),
    ];
    for (annotations, safety, trust, expected, source) in table {
        let puppet = Puppet::new(vec![served("x", json!({"annotations": annotations}))]);
        let settings = ToolSettings { safety, ..ToolSettings::default() };
        let common =
            ServerSettings { trust, tools: BTreeMap::from([("x".to_owned(), settings)]), ..ServerSettings::default() };
        let fixture = RegistryFixture::with(vec![entrant("s", &puppet, common)], &CallLimits::default());
        let catalog = fixture.catalog().await;
        let tool = &catalog.tools.tools["s.x"];
        assert_eq!((tool.safety, tool.safety_source), (expected, source), "{annotations} {safety:?} {trust}");
    }
}

#[tokio::test]
async fn a_server_has_defaults_for_its_tools_and_a_tool_has_its_own_settings() {
    let puppet = Puppet::new(vec![plain("usual"), plain("own")]);
    let own = ToolSettings {
        safety: Some(Safety::ReadOnly),
        timeout: Some(Millis::seconds(5)),
        retry: Some(RetrySettings { max_attempts: Some(2), ..RetrySettings::default() }),
        ..ToolSettings::default()
    };
    let common = ServerSettings {
        safety: Some(Safety::Idempotent),
        attempts: AttemptSettings {
            timeout: Some(Millis::seconds(30)),
            timeout_max: Some(Millis::seconds(90)),
            retry: Some(RetrySettings { max_attempts: Some(7), ..RetrySettings::default() }),
        },
        tools: BTreeMap::from([("own".to_owned(), own)]),
        ..ServerSettings::default()
    };
    let fixture = RegistryFixture::with(vec![entrant("s", &puppet, common)], &CallLimits::default());
    let catalog = fixture.catalog().await;
    let settings = |name: &str| {
        let tool = &catalog.tools.tools[name];
        let attempts = tool.attempts.retry.as_ref().and_then(|retry| retry.max_attempts);
        (tool.safety, tool.attempts.timeout, tool.attempts.timeout_max, attempts)
    };
    let seconds = |seconds| Some(Millis::seconds(seconds));
    assert_eq!(settings("s.usual"), (Safety::Idempotent, seconds(30), seconds(90), Some(7)));
    assert_eq!(settings("s.own"), (Safety::ReadOnly, seconds(5), seconds(90), Some(2)));
}

#[tokio::test]
async fn every_kind_of_server_says_how_long_it_and_one_tool_remember_a_key() {
    let mcp = "[servers.s]\ncommand = 'shop'\nkey_window = '2h'\ntools = { own = { key_window = '10m' } }";
    let http = "[http.s]\nbase = 'https://shop.example'\nkey_window = '2h'\n\
                [http.s.tools]\nusual = {}\nown = { key_window = '10m' }";
    let command = "[commands.s]\nkey_window = '2h'\n[commands.s.tools]\nusual = {}\nown = { key_window = '10m' }";
    for toml in [mcp, http, command] {
        let config: Config = toml_edit::de::from_str(toml).unwrap();
        let of_mcp = config.servers.values().map(|server| server.common.clone());
        let of_http = config.http.values().map(HttpServerConfig::common);
        let of_command = config.commands.values().map(CommandServerConfig::common);
        let common = of_mcp.chain(of_http).chain(of_command).next().unwrap();
        let puppet = Puppet::new(vec![plain("usual"), plain("own")]);
        let fixture = RegistryFixture::with(vec![entrant("s", &puppet, common)], &CallLimits::default());
        let catalog = fixture.catalog().await;
        let window = |name: &str| catalog.tools.tools[name].key_window;
        let expected = (Some(Millis::hours(2)), Some(Millis::seconds(600)));
        assert_eq!((window("s.usual"), window("s.own")), expected, "{toml}");
    }
}

#[tokio::test]
async fn what_a_kind_of_server_knows_about_results_is_checked_and_no_part_of_the_definition() {
    let text = || json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let (bare, known) = (plain("say"), ServedTool { result: Some(text()), ..plain("say") });
    let puppet = Puppet::new(vec![bare]);
    let first = RegistryFixture::new(&[("s", &puppet)]).catalog().await;
    let puppet = Puppet::new(vec![known]);
    puppet.on_call(|_| async { crate::registry::fixture::done(json!("not an object")) });
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let second = fixture.catalog().await;
    let (first, second) = (&first.tools.tools["s.say"], &second.tools.tools["s.say"]);
    assert_eq!((first.definition, &first.output), (second.definition, &None));
    assert_eq!(second.output.as_deref(), Some(&text()));
    // The tool did not declare it, so no result contradicts it.
    assert!(matches!(fixture.call("s.say", json!({})).await, rutter_core::tool::CallOutcome::Done { .. }));
}

#[tokio::test]
async fn hidden_tools_are_not_offered_and_key_parameters_must_exist() {
    let input = json!({"inputSchema": {"type": "object", "properties": {"request_key": {"type": "string"}}}});
    let puppet = Puppet::new(vec![served("keyed", input.clone()), served("wrong", input), plain("secret")]);
    let key = |name: &str| ToolSettings { key_parameter: Some(name.to_owned()), ..ToolSettings::default() };
    let tools = BTreeMap::from([
        ("keyed".to_owned(), key("request_key")),
        ("wrong".to_owned(), key("requestkey")),
        ("secret".to_owned(), ToolSettings { hidden: true, ..ToolSettings::default() }),
        ("gone".to_owned(), ToolSettings::default()),
    ]);
    let common = ServerSettings { tools, ..ServerSettings::default() };
    let fixture = RegistryFixture::with(vec![entrant("s", &puppet, common)], &CallLimits::default());
    let catalog = fixture.catalog().await;
    assert_eq!(names(&catalog), ["s.keyed"]);
    assert_eq!(catalog.tools.tools["s.keyed"].key_parameter.as_deref(), Some("request_key"));
    let report = &fixture.registry.report()[0];
    assert_eq!(report.hidden, 1);
    assert_eq!(report.left_out[0].name, "wrong");
    assert!(report.left_out[0].reason.contains("requestkey"), "{:?}", report.left_out);
    assert_eq!(report.doubts, ["there are settings for s.gone, but the server has no such tool"]);
}

#[tokio::test]
async fn every_change_of_a_definition_is_detected_even_where_it_is_cut() {
    let long = "x".repeat(5_000);
    let definition = |tail: &str, colour: u32, kind: &str| {
        json!({"description": format!("{long}{tail}"), "annotations": {"x-colour": {"b": colour, "a": 1}},
               "inputSchema": {"type": "object", "properties": {"a": {"type": kind}}}})
    };
    let puppet = Puppet::new(vec![]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let mut seen = BTreeSet::new();
    for definition in [
        definition("", 1, "string"),
        definition("!", 1, "string"),
        definition("", 2, "string"),
        definition("", 1, "number"),
    ] {
        puppet.serve(vec![served("x", definition)]);
        let catalog = fixture.catalog().await;
        let tool = &catalog.tools.tools["s.x"];
        assert_eq!(tool.description.len(), 4 << 10);
        assert!(seen.insert(tool.definition));
    }
    puppet.serve(vec![served("x", definition("", 1, "string"))]);
    assert!(!seen.insert(fixture.catalog().await.tools.tools["s.x"].definition), "the first one again");
}

#[tokio::test]
async fn a_definition_without_more_annotations_has_the_hash_that_a_catalogue_file_gives() {
    let tool = json!({"description": "Commits", "annotations": {"readOnlyHint": false}});
    let puppet = Puppet::new(vec![served("commit", tool.clone())]);
    let fixture = RegistryFixture::new(&[("git", &puppet)]);
    let mut in_file = tool;
    in_file["name"] = "commit".into();
    let file = json!({"server": "git", "tools": [in_file]});
    let file = rutter_core::tool::ToolCatalog::from_json(&file).unwrap();
    assert_eq!(fixture.catalog().await.tools, file);
}

#[tokio::test]
async fn two_servers_cannot_have_one_name() {
    let puppet = Puppet::new(vec![]);
    let fixture = RegistryFixture::new(&[]);
    let make = |names: [&str; 2]| {
        let entrants = names.map(|name| entrant(name, &puppet, ServerSettings::default())).into();
        let clock = Arc::new(|| rutter_core::time::Timestamp(0));
        let secrets: Arc<dyn rutter_tools::registry::SecretResolver> =
            Arc::<crate::registry::fixture::Safe>::clone(&fixture.secrets);
        ToolRegistry::new(entrants, &CallLimits::default(), secrets, clock).map(drop)
    };
    assert_eq!(make(["git", "git"]), Err(Error::Twice("git".to_owned())));
    for name in ["", "a.b", "a b", "gіt", "a/b"] {
        assert_eq!(make(["git", name]), Err(Error::Name(name.to_owned())));
    }
    assert_eq!(make(["git", "git-2_x"]), Ok(()));
}
