//! Finds tools by words: BM25 over server, name, title, description and the names of parameters.

use rutter_core::id::ToolName;
use rutter_core::tool::Tool;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    pub name: ToolName,
    pub title: String,
    pub description: String,
    pub score: f64,
}

/// Ready to be asked; made anew when the tools change.
#[derive(Debug, Default)]
pub struct Index {
    /// By name: the number of a tool is its rank among equally good ones.
    tools: Vec<(Arc<Tool>, String)>,
    /// By word: in which tools it stands, and how much it adds to their score.
    places: HashMap<String, Vec<(u32, f32)>>,
}

/// A word in the name says more of a tool than one in its description.
const NAME_WEIGHT: f32 = 3.0;
const SERVER_WEIGHT: f32 = 2.0;
const TITLE_WEIGHT: f32 = 2.0;
const TEXT_WEIGHT: f32 = 1.0;

/// The usual constants of BM25: how soon repetition stops to count, and how much length counts against.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;

/// Longer questions are not better ones.
const QUERY_WORDS_MAX: usize = 64;
const WORD_CHARS_MAX: usize = 64;

impl Index {
    /// Of tools with their titles.
    pub fn new(tools: impl IntoIterator<Item = (Arc<Tool>, String)>) -> Index {
        let mut tools: Vec<(Arc<Tool>, String)> = tools.into_iter().collect();
        tools.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let mut places: HashMap<String, Vec<(u32, f32)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(tools.len());
        for (number, (tool, title)) in (0..).zip(&tools) {
            let mut weights: BTreeMap<String, f32> = BTreeMap::new();
            for (text, weight) in fields(tool, title) {
                for word in words(&text) {
                    *weights.entry(word).or_default() += weight;
                }
            }
            lengths.push(weights.values().sum::<f32>());
            for (word, weight) in weights {
                places.entry(word).or_default().push((number, weight));
            }
        }
        let average = lengths.iter().sum::<f32>() / tools.len().max(1) as f32;
        for places in places.values_mut() {
            let count = places.len() as f32;
            let rarity = (1.0 + (tools.len() as f32 - count + 0.5) / (count + 0.5)).ln();
            for (number, weight) in places {
                let damping = SATURATION * (1.0 - LENGTH + LENGTH * lengths[*number as usize] / average);
                *weight = rarity * *weight * (SATURATION + 1.0) / (*weight + damping);
            }
        }
        Index { tools, places }
    }

    /// The best first; equally good ones by name.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let asked: BTreeSet<String> = words(query).into_iter().take(QUERY_WORDS_MAX).collect();
        let mut scores = vec![0.0_f32; self.tools.len()];
        for places in asked.iter().filter_map(|word| self.places.get(word)) {
            for (number, score) in places {
                scores[*number as usize] += score;
            }
        }
        let mut found: Vec<(usize, f32)> =
            scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
        let order = |a: &(usize, f32), b: &(usize, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if limit < found.len() {
            found.select_nth_unstable_by(limit, order);
            found.truncate(limit);
        }
        found.sort_unstable_by(order);
        found.into_iter().map(|(number, score)| self.hit(number, score)).collect()
    }

    fn hit(&self, number: usize, score: f32) -> Hit {
        let (tool, title) = &self.tools[number];
        Hit {
            name: tool.name.clone(),
            title: title.clone(),
            description: tool.description.clone(),
            score: f64::from(score),
        }
    }
}

fn fields(tool: &Tool, title: &str) -> Vec<(String, f32)> {
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
