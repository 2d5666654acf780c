//! Event streams: every event once and in order, also for readers that reconnect.

use crate::api::harbour::{Client, Harbour, PATIENCE, notes, unhurried};
use futures::StreamExt;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A reader of one stream.
struct Reader {
    pieces: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<axum::body::Bytes>> + Send>>,
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Told {
    id: u64,
    kind: String,
    data: Value,
}

impl Reader {
    async fn open(client: &Client, path: &str, last: Option<u64>) -> Reader {
        let mut request = client.request(Method::GET, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Reader { pieces: Box::pin(response.bytes_stream()), text: String::new() }
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let prefix = format!("{name}: ");
                    block.lines().find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
                };
                let Some(data) = field("data") else { continue };
                return Some(Told {
                    id: field("id").unwrap().parse().unwrap(),
                    kind: field("event").unwrap(),
                    data: serde_json::from_str(&data).unwrap(),
                });
            }
            let piece = tokio::time::timeout(PATIENCE, self.pieces.next()).await.expect("an event arrives");
            match piece {
                Some(Ok(piece)) => self.text.push_str(std::str::from_utf8(&piece).unwrap()),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// Every event up to a position.
    async fn up_to(&mut self, place: u64) -> Vec<Told> {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|answer: &Told| answer.id < place) {
            seen.push(self.next().await.expect("the stream continues"));
        }
        seen
    }
}

async fn size(client: &Client) -> u64 {
    client.get("/ledger").await.good()["size"].as_u64().unwrap()
}

#[tokio::test]
async fn every_entry_is_streamed_in_order() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let mut from_now = Reader::open(&client, "/events", None).await;
    let execution = client.execute(&notes("a", 3)).await;
    let id = execution["execution_id"].as_str().unwrap();
    let size = size(&client).await;
    let live = from_now.up_to(size).await;
    let ids: Vec<u64> = live.iter().map(|answer| answer.id).collect();
    assert_eq!(ids, (1..=size).collect::<Vec<u64>>());
    assert_eq!(live[0].kind, "plan_saved");
    assert_eq!(live.last().unwrap().data["status"], "completed");
    assert!(live.iter().all(|report| report.data["place"] == report.id && report.data["kind"] == report.kind.as_str()));
    let opened = &live[1].data;
    assert_eq!(
        (&opened["execution_id"], &opened["seq"], &opened["actor"]["party"]),
        (&json!(id), &json!(1), &json!("agent"))
    );

    let all = Reader::open(&client, "/events?after=0", None).await.up_to(size).await;
    assert_eq!(all, live, "the same from the beginning");
    let rest = Reader::open(&client, "/events?after=0", Some(5)).await.up_to(size).await;
    assert_eq!(rest, live[5..], "the last id takes precedence over the query");
    let one = Reader::open(&client, &format!("/executions/{id}/events?after=0"), None).await.up_to(size).await;
    assert_eq!(one, live[1..]);
    let some = format!("/events?after=0&execution={id}&kinds=attempt_started,execution_ended");
    let some = Reader::open(&client, &some, None).await.up_to(size).await;
    assert_eq!(
        some.iter().map(|answer_text| answer_text.kind.as_str()).collect::<Vec<_>>(),
        ["attempt_started", "attempt_started", "attempt_started", "execution_ended"]
    );
    assert_eq!(some[1].data["step"], "s1");
    let plan = execution["plan"]["id"].as_str().unwrap();
    let of_plan = Reader::open(&client, &format!("/events?after=0&plan={plan}"), None).await.up_to(size).await;
    assert_eq!(of_plan, live);
    let by_agents = Reader::open(&client, "/events?after=0&party=agent", None).await.next().await.unwrap();
    assert_eq!(by_agents.kind, "plan_saved");
    client.get("/events?kinds=nothing").await.refused(400, "server.arguments");
    client.get("/events?party=crowd").await.refused(400, "server.arguments");
    client.get_with("/events", "last-event-id", "x").await.refused(400, "server.arguments");
}

/// A reader that is cut off at any moment and reconnects with its last id sees every entry once and in order, also
/// across a restart of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_reconnects_sees_every_event_once() {
    let mut harbour = Harbour::new().await;
    // A deterministic pseudorandom sequence.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut chance = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut seen: Vec<u64> = Vec::new();
    for round in 0..40 {
        let client = harbour.agent();
        let writing = {
            let client = client.clone();
            tokio::spawn(async move { client.execute(&notes(&format!("round {round}"), 4)).await })
        };
        let after = seen.last().copied().unwrap_or(0);
        // Half of them are cut in the middle of a chunk, which drops an incomplete event.
        let mut reader = Reader::open(&client, "/events?after=0", Some(after)).await;
        for _ in 0..chance(12) {
            seen.push(reader.next().await.expect("the stream continues").id);
        }
        drop(reader);
        writing.await.unwrap();
        if round == 20 {
            harbour = harbour.restarted().await;
        }
    }
    let client = harbour.agent();
    let size = size(&client).await;
    let after = seen.last().copied();
    if after.is_none_or(|after| after < size) {
        let rest = Reader::open(&client, "/events?after=0", after).await.up_to(size).await;
        seen.extend(rest.iter().map(|answer| answer.id));
    }
    assert_eq!(seen, (1..=size).collect::<Vec<u64>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_readers_follow_a_hundred_executions() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let first = size(&client).await;
    let mut readers = Vec::new();
    for _ in 0..200 {
        readers.push(Reader::open(&client, "/events", None).await);
    }
    assert_eq!(harbour.api.streams(), 200);
    let running: Vec<_> = (0..100)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { client.execute(&notes(&format!("n{number}"), 3)).await })
        })
        .collect();
    for running in running {
        assert_eq!(running.await.unwrap()["status"], "completed");
    }
    let size = size(&client).await;
    let reading: Vec<_> =
        readers.into_iter().map(|mut reader| tokio::spawn(async move { reader.up_to(size).await })).collect();
    let mut ended: BTreeMap<usize, usize> = BTreeMap::new();
    for reading in reading {
        let seen = reading.await.unwrap();
        assert!(seen.iter().map(|answer| answer.id).eq(first + 1..=size), "every position once, in order");
        *ended.entry(seen.iter().filter(|report| report.kind == "execution_ended").count()).or_default() += 1;
    }
    assert_eq!(ended, BTreeMap::from([(100, 200)]));
    let deadline = std::time::Instant::now() + PATIENCE;
    while harbour.api.streams() > 0 {
        assert!(std::time::Instant::now() < deadline, "disconnected readers free their slots");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn streams_are_counted_and_end_with_the_server() {
    let settings = rutter_api::ApiSettings { streams_per_principal: 3, ..unhurried() };
    let harbour = Harbour::with("", settings).await;
    let client = harbour.agent();
    let mut readers = Vec::new();
    for _ in 0..3 {
        readers.push(Reader::open(&client, "/events", None).await);
    }
    client.get("/events").await.refused(429, "server.rate_limited");
    let _other = Reader::open(&harbour.operator(), "/events", None).await;
    drop(readers.pop());
    let deadline = std::time::Instant::now() + PATIENCE;
    while harbour.api.streams() > 3 {
        assert!(std::time::Instant::now() < deadline, "a closed stream frees its slot");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    readers.push(Reader::open(&client, "/events", None).await);
    harbour.close();
    for reader in &mut readers {
        assert_eq!(reader.next().await, None, "the shutdown ends it");
    }
}
