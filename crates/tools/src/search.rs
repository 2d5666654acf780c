//! Finds tools by words: BM25 over server, name, title, description and the names of parameters.

use rutter_core::id::ToolName;
use rutter_core::ranking::Bm25Index;
use rutter_core::tool::Tool;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchHit {
    pub name: ToolName,
    pub title: String,
    pub description: String,
    pub score: f64,
}

/// The search index; built again when the tools change.
#[derive(Debug, Default)]
pub struct ToolIndex {
    /// By name: the number of a tool is its rank among equally good ones.
    tools: Vec<(Arc<Tool>, String)>,
    words: Bm25Index,
}

/// A word in the name says more of a tool than one in its description.
const NAME_WEIGHT: f64 = 3.0;
const SERVER_WEIGHT: f64 = 2.0;
const TITLE_WEIGHT: f64 = 2.0;
const TEXT_WEIGHT: f64 = 1.0;

/// Longer queries are cut.
const QUERY_WORDS_MAX: usize = 64;
const WORD_CHARS_MAX: usize = 64;

impl ToolIndex {
    /// Builds the index of tools with their titles.
    pub fn new(tools: impl IntoIterator<Item = (Arc<Tool>, String)>) -> ToolIndex {
        let mut tools: Vec<(Arc<Tool>, String)> = tools.into_iter().collect();
        tools.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let mut index = Bm25Index::default();
        for (number, (tool, title)) in tools.iter().enumerate() {
            let fields = fields(tool, title).into_iter();
            let weigh = |(text, weight): (String, f64)| words(&text).into_iter().map(move |word| (word, weight));
            index.add(number, fields.flat_map(weigh));
        }
        ToolIndex { tools, words: index }
    }

    /// The best first; equally good ones by name.
    pub fn search(&self, query: &str, limit: usize) -> Vec<SearchHit> {
        let asked = words(query).into_iter().take(QUERY_WORDS_MAX);
        let mut found: Vec<(usize, f64)> = self.words.search(asked).into_iter().collect();
        let order = |a: &(usize, f64), b: &(usize, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if limit < found.len() {
            found.select_nth_unstable_by(limit, order);
            found.truncate(limit);
        }
        found.sort_unstable_by(order);
        found.into_iter().map(|(number, score)| self.hit(number, score)).collect()
    }

    fn hit(&self, number: usize, score: f64) -> SearchHit {
        let (tool, title) = &self.tools[number];
        SearchHit { name: tool.name.clone(), title: title.clone(), description: tool.description.clone(), score }
    }
}

fn fields(tool: &Tool, title: &str) -> Vec<(String, f64)> {
    let (server, name) = tool.name.as_str().split_once('.').unwrap_or(("", tool.name.as_str()));
    let mut fields = vec![
        (server.to_owned(), SERVER_WEIGHT),
        (name.to_owned(), NAME_WEIGHT),
        (title.to_owned(), TITLE_WEIGHT),
        (tool.description.clone(), TEXT_WEIGHT),
    ];
    if let Some(Value::Object(properties)) = tool.input.get("properties") {
        fields.extend(properties.keys().map(|key| (key.clone(), TEXT_WEIGHT)));
    }
    fields
}

/// Words in lower case and without a plural's `s`: `listOpenFiles`, `list_open_files` and "list open file" are the same.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let new_word = c.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        if !c.is_alphanumeric() || new_word {
            keep(&mut words, &mut word);
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    keep(&mut words, &mut word);
    words
}

fn keep(words: &mut Vec<String>, word: &mut String) {
    let mut word = std::mem::take(word);
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    if !word.is_empty() && word.chars().count() <= WORD_CHARS_MAX {
        words.push(word);
    }
}

#[cfg(test)]
mod tests;
