//! Searching: ranking, a stable order, and many tools.

use super::*;
use rutter_core::tool::ToolCatalog;
use serde_json::json;

fn index(tools: Vec<Value>) -> ToolIndex {
    let titles: Vec<String> = tools.iter().map(|tool| tool["title"].as_str().unwrap_or("").to_owned()).collect();
    let read = |tool: &Value| ToolCatalog::from_json(&json!({"tools": [tool]})).unwrap().tools;
    let tools = tools.iter().map(|tool| read(tool).into_values().next().unwrap());
    ToolIndex::new(tools.zip(titles))
}

fn names(hits: &[SearchHit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.name.as_str()).collect()
}

#[test]
fn names_fall_into_words() {
    assert_eq!(words("listOpenFiles"), ["list", "open", "file"]);
    assert_eq!(words("list_open-files/2"), ["list", "open", "file", "2"]);
    assert_eq!(words("HTTPServer v2Beta"), ["httpserver", "v2", "beta"]);
    assert_eq!(words("Class, bus; Größe"), ["class", "bus", "größe"]);
    assert_eq!(words(" -- "), Vec::<String>::new());
}

#[test]
fn a_word_in_the_name_counts_more_than_one_in_the_text() {
    let index = index(vec![
        json!({"name": "mail.send", "description": "Sends a message, for instance about a payment"}),
        json!({"name": "shop.payment", "description": "Charges a card"}),
        json!({"name": "shop.list", "description": "Lists articles"}),
    ]);
    assert_eq!(names(&index.search("payment", 10)), ["shop.payment", "mail.send"]);
    assert_eq!(names(&index.search("payment", 1)), ["shop.payment"]);
    assert_eq!(names(&index.search("payment", 0)), Vec::<&str>::new());
    assert_eq!(names(&index.search("", 10)), Vec::<&str>::new());
}

#[test]
fn every_field_can_be_found() {
    let index = index(vec![json!({
        "name": "calendar.createEvent", "title": "New appointment", "description": "Books a meeting",
        "inputSchema": {"type": "object", "properties": {"attendee_email": {"type": "string"}}},
    })]);
    for query in ["Calendar", "event", "appointments", "meeting", "email", "attendee"] {
        assert_eq!(names(&index.search(query, 10)), ["calendar.createEvent"], "{query}");
    }
}

#[test]
fn equally_good_tools_come_by_name_every_time() {
    let tools = |order: [&str; 4]| order.map(|name| json!({"name": name, "description": "same"})).into();
    let first = index(tools(["d.x", "b.x", "a.x", "c.x"])).search("same", 3);
    assert_eq!(names(&first), ["a.x", "b.x", "c.x"]);
    let second = index(tools(["a.x", "c.x", "d.x", "b.x"])).search("same", 3);
    assert_eq!(names(&second), names(&first));
}

#[test]
fn five_thousand_tools_are_searched_and_only_the_best_are_given() {
    let words = ["read", "write", "list", "delete", "create", "search", "update", "invoice", "file", "branch"];
    let tool = |at: usize| {
        let word = |step: usize| words[(at / step) % words.len()];
        let description = format!("{} the {} of a {} and return what was found", word(1), word(10), word(100));
        json!({"name": format!("server{}.{}_{}{at}", at % 50, word(1), word(10)), "description": description})
    };
    let index = index((0..5_000).map(tool).collect());
    // Every tool has one of these words: nothing can be passed over.
    let query = "please find what was returned and create the invoice file of a branch";
    assert_eq!(index.search(query, 20).len(), 20);
}
