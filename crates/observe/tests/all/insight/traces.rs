//! Real executions as a collector sees them: one trace each, across restarts, with every span sent once.

use crate::insight::metrics::value;
use crate::insight::stage::{Stage, tenant, until};
use rutter_core::actor::Actor;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::journal::event::Event;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::port::outbox::{HttpSender, OutgoingRequest, SendOutcome};
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::port::tools::PortFuture;
use rutter_engine::control::ControlAction;
use rutter_observe::metrics::ServerMetrics;
use rutter_observe::trace::{TraceExporter, TraceOptions, ids};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An HTTP server that records requests and answers with a given status.
struct Collector {
    address: String,
    status: Arc<AtomicU16>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    listening: JoinHandle<()>,
}

impl Collector {
    async fn new() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (status, requests) = (Arc::new(AtomicU16::new(200)), Arc::new(Mutex::new(Vec::new())));
        let (answers, stored) = (Arc::clone(&status), Arc::clone(&requests));
        let listening = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let _ = serve(stream, &answers, &stored).await;
            }
        });
        Collector { address, status, requests, listening }
    }

    fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    fn spans(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let mut spans = Vec::new();
        for (_, body) in requests.iter() {
            for scope in body["resourceSpans"][0]["scopeSpans"].as_array().unwrap() {
                spans.extend(scope["spans"].as_array().unwrap().iter().cloned());
            }
        }
        spans
    }

    /// Spans of a trace whose name starts with `name`.
    fn named(&self, trace: &str, name: &str) -> Vec<Value> {
        let spans = self.spans().into_iter();
        spans.filter(|span| span["traceId"] == trace && span["name"].as_str().unwrap().starts_with(name)).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn serve(mut stream: TcpStream, status: &AtomicU16, stored: &Mutex<Vec<(String, Value)>>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let header = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = header.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let length: usize = length.trim().parse().unwrap();
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    let status = status.load(Ordering::SeqCst);
    if status == 200 {
        let body = serde_json::from_slice(&bytes[head..head + length]).unwrap();
        stored.lock().unwrap().push((header, body));
    }
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
    stream.write_all(answer.as_bytes()).await
}

/// Sends as the program does, without the address check: the operator chose the address.
struct Sender(reqwest::Client);

impl HttpSender for Sender {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn send(&self, delivery: OutgoingRequest) -> PortFuture<'_, SendOutcome> {
        Box::pin(async move {
            let mut request =
                self.0.post(&delivery.url).timeout(Duration::from_millis(delivery.timeout.0)).body(delivery.body);
            for (name, value) in &delivery.headers {
                request = request.header(name, value);
            }
            match request.send().await {
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    let text = answer.text().await.unwrap_or_default();
                    SendOutcome::Answered { status, retry_after: None, text }
                }
                Err(error) => SendOutcome::Failed { why: error.to_string() },
            }
        })
    }
}

struct Sending {
    shutdown: CancellationToken,
    running: JoinHandle<()>,
    metrics: Arc<ServerMetrics>,
}

impl Sending {
    fn start(stage: &Stage, collector: &Collector, include_arguments: bool) -> Sending {
        let metrics = ServerMetrics::new("1.2.3", stage.clock.now());
        let options = TraceOptions {
            endpoint: format!("{}/", collector.address),
            headers: vec![("authorization".to_owned(), "Bearer collector".to_owned())],
            include_arguments,
            mcp_servers: BTreeSet::new(),
            service: "rutter".to_owned(),
            version: "1.2.3",
        };
        let tracer = TraceExporter {
            options,
            tenant: tenant(),
            feed: stage.store.clone(),
            query: stage.store.clone(),
            register: stage.store.clone(),
            http_sender: Arc::new(Sender(rutter_tools::tls::client_builder().no_proxy().build().unwrap())),
            metrics: Arc::clone(&metrics),
            clock: stage.clock,
        };
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(tracer.run(shutdown.clone()));
        Sending { shutdown, running, metrics }
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.running.await.unwrap();
    }

    /// Ends without saving, as a killed process does.
    async fn crash(self) {
        self.running.abort();
        let _ = self.running.await;
    }
}

/// Waits for the first mark, so that later events are sent.
async fn begun(stage: &Stage) {
    until("the exporter has started", async || {
        stage.store.find(&tenant(), RegisterKind::Mark, "trace").await.unwrap().is_some()
    })
    .await;
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a Value> {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key)?;
    found["value"].as_object().unwrap().values().next()
}

fn is_hex(value: &Value, digits: usize) -> bool {
    let text = value.as_str().unwrap();
    text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_is_one_trace_of_its_attempts() {
    let (stage, collector) = (Stage::new().await, Collector::new().await);
    stage.execute("before").await;
    let sending = Sending::start(&stage, &collector, false);
    begun(&stage).await;
    let good = stage.execute("keep").await;
    let bad = stage.fail("look").await;
    let (good, bad) = (ids::trace(&tenant(), &good), ids::trace(&tenant(), &bad));
    until("both have arrived", async || {
        !collector.named(&good, "invoke_").is_empty() && !collector.named(&bad, "invoke_").is_empty()
    })
    .await;
    let spans = collector.spans();
    let traces: BTreeSet<&str> = spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces, BTreeSet::from([good.as_str(), bad.as_str()]), "earlier executions are not sent");
    let mut seen = BTreeSet::new();
    for span in &spans {
        assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16), "{span}");
        assert!(seen.insert(span["spanId"].as_str().unwrap()), "{span} came twice");
        let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
        assert!(time("startTimeUnixNano") > 1_700_000_000_000_000_000);
    }
    let root = &collector.named(&good, "invoke_")[0];
    assert_eq!(root["name"], "invoke_workflow keep");
    assert!(root.get("parentSpanId").is_none());
    assert_eq!(root["status"]["code"], 1);
    let attempts = collector.named(&good, "execute_tool memory.store");
    assert_eq!(attempts.len(), 2);
    for attempt in &attempts {
        assert_eq!(attempt["parentSpanId"], root["spanId"]);
        assert_eq!(attribute(attempt, "gen_ai.operation.name").unwrap(), "execute_tool");
        assert_eq!(attribute(attempt, "gen_ai.tool.name").unwrap(), "memory.store");
        assert_eq!(attribute(attempt, "rutter.attempt").unwrap(), "1");
        assert!(attribute(attempt, "gen_ai.tool.call.arguments").is_none());
    }
    let failed = &collector.named(&bad, "execute_tool")[0];
    assert_eq!(failed["status"]["code"], 2);
    assert_eq!(attribute(failed, "error.type"), failed["status"].get("message"));
    assert_eq!(collector.named(&bad, "invoke_")[0]["status"]["code"], 2);

    let (header, body) = collector.requests.lock().unwrap()[0].clone();
    assert!(header.starts_with("post /v1/traces "), "{header}");
    assert!(header.contains("content-type: application/json") && header.contains("authorization: bearer collector"));
    let resource = &body["resourceSpans"][0]["resource"]["attributes"];
    assert_eq!(resource[0], json!({ "key": "service.name", "value": { "stringValue": "rutter" } }));
    sending.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_is_one_trace_across_crash_and_restart() {
    let (mut stage, collector) = (Stage::new().await, Collector::new().await);
    let sending = Sending::start(&stage, &collector, false);
    begun(&stage).await;
    let plan = json!({ "name": "wait", "goal": "Wait for a yes", "steps": [
        { "id": "one", "tool": "memory.store", "cancellable": "irreversible", "parameters": { "text": "x" } },
        { "id": "two", "tool": "memory.store", "depends_on": ["one"], "cancellable": "irreversible",
          "parameters": { "text": "y" }, "approval": { "required": true } } ] });
    let (execution, status) = stage.run(&plan, json!({})).await;
    assert_eq!(status, ExecutionStatus::Waiting);
    let trace = ids::trace(&tenant(), &execution);
    until("the first attempt has arrived", async || collector.named(&trace, "execute_tool").len() == 1).await;
    sending.crash().await;

    stage = stage.restarted().await;
    let sending = Sending::start(&stage, &collector, false);
    let control = ControlAction::Approve { part: None, call: None };
    let operator = Actor::person("operator");
    let identity = stage.identity(&execution);
    stage.engine.control(&identity, operator, control, "go on".into(), None, None).await.unwrap();
    until("all of it has arrived", async || !collector.named(&trace, "invoke_").is_empty()).await;
    let mut times = BTreeMap::<String, usize>::new();
    for span in collector.spans() {
        assert_eq!(span["traceId"], trace.as_str());
        *times.entry(span["spanId"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(times.len(), 3, "two attempts and the whole: {times:?}");
    let from = |name: &str, at: usize| {
        let spans = collector.named(&trace, name);
        spans[at.min(spans.len() - 1)]["startTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap()
    };
    assert!(from("invoke_", 0) <= from("execute_tool", 0), "it began before the restart");
    sending.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_began_before_a_restart_is_looked_up() {
    let (stage, collector) = (Stage::new().await, Collector::new().await);
    let sending = Sending::start(&stage, &collector, false);
    begun(&stage).await;
    let first = stage.execute("first").await;
    let first = ids::trace(&tenant(), &first);
    until("the first has arrived", async || !collector.named(&first, "invoke_").is_empty()).await;
    sending.crash().await;
    // Entries written by another process, read here from the middle on.
    let second = stage.execute("second").await;
    let size = stage.store.size(&tenant()).await.unwrap();
    let stretch = stage.store.entries_after(&tenant(), 0, 1_000).await.unwrap();
    let started = stretch.items.iter().rev().find(|placed| matches!(placed.stored.event, Event::AttemptStarted { .. }));
    let place = started.unwrap().position;
    assert!(place < size);
    let changes = vec![RegisterChange::put(RegisterKind::Mark, "trace", json!({ "place": place }))];
    let at = stage.clock.now();
    stage.store.write(RegisterWrite { tenant: tenant(), at, changes, record: None }).await.unwrap();
    let sending = Sending::start(&stage, &collector, false);
    let second = ids::trace(&tenant(), &second);
    until("the second has arrived", async || !collector.named(&second, "invoke_").is_empty()).await;
    assert_eq!(collector.named(&second, "execute_tool memory.store").len(), 1);
    sending.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_collector_costs_only_spans() {
    let (stage, collector) = (Stage::new().await, Collector::new().await);
    let sending = Sending::start(&stage, &collector, false);
    begun(&stage).await;
    collector.answer(400);
    stage.execute("lost").await;
    let dropped = async || value(&stage, &sending.metrics, "rutter_trace_spans_total{result=\"dropped\"}").await;
    until("the spans are dropped", async || dropped().await >= 3.0).await;
    collector.answer(200);
    let found = ids::trace(&tenant(), &stage.execute("found").await);
    until("later spans arrive", async || !collector.named(&found, "invoke_").is_empty()).await;
    assert_eq!(collector.spans().len(), 3);
    let sent = "rutter_trace_spans_total{result=\"sent\"}";
    until("that is counted", async || value(&stage, &sending.metrics, sent).await == 3.0).await;
    assert_eq!(dropped().await, 3.0);
    sending.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_sent_only_when_asked_for() {
    let (stage, collector) = (Stage::new().await, Collector::new().await);
    let sending = Sending::start(&stage, &collector, true);
    begun(&stage).await;
    let execution = stage.execute("keep").await;
    let trace = ids::trace(&tenant(), &execution);
    until("it has arrived", async || !collector.named(&trace, "invoke_").is_empty()).await;
    for attempt in collector.named(&trace, "execute_tool") {
        let arguments = attribute(&attempt, "gen_ai.tool.call.arguments").unwrap().as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(arguments).unwrap()["text"], "kept");
        assert!(attribute(&attempt, "gen_ai.tool.call.result").is_some());
    }
    sending.end().await;
}
