//! Ranking of texts by the words they share with a query.

use rutter_core::ranking::Bm25Index;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct MemoryIndex(Bm25Index);

impl MemoryIndex {
    pub fn add(&mut self, text: usize, content: &str) {
        self.0.add(text, words(content).map(|word| (word, 1.0)));
    }

    /// The texts that share a word with the query, each with its score.
    pub fn search(&self, query: &str) -> BTreeMap<usize, f64> {
        self.0.search(words(query))
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(texts: &[&str], query: &str) -> Vec<usize> {
        let mut index = MemoryIndex::default();
        texts.iter().enumerate().for_each(|(at, text)| index.add(at, text));
        let mut found: Vec<(usize, f64)> = index.search(query).into_iter().collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1));
        found.into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn words_are_compared_without_case_and_punctuation() {
        assert_eq!(best(&["tea and milk", "coffee and milk", "milk"], "the COFFEE, milk!"), [1, 2, 0]);
        assert_eq!(best(&["Grüße aus Köln", "Kolner Dom"], "köln"), [0]);
    }
}
