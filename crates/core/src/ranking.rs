//! BM25 ranking: which texts match a query best, by the words they share.
//!
//! A word counts more the rarer it is among all texts and the more often it occurs in this one; long texts are not
//! favoured for being long. The caller splits texts into words and weighs them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The usual constants: how soon repetition of a word stops counting, and how much length counts against a text.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// Texts by their words, each text under a number of the caller's choice.
#[derive(Clone, Debug, Default)]
pub struct Bm25Index {
    /// For each word the texts it occurs in, and its weight there.
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: HashMap<usize, f64>,
    length_total: f64,
}

impl Bm25Index {
    /// Adds a text: its words with their weights. A word that comes twice weighs twice as much.
    pub fn add(&mut self, text: usize, words: impl IntoIterator<Item = (String, f64)>) {
        let mut weights: BTreeMap<String, f64> = BTreeMap::new();
        for (word, weight) in words {
            *weights.entry(word).or_default() += weight;
        }
        let length: f64 = weights.values().sum();
        self.lengths.insert(text, length);
        self.length_total += length;
        for (word, weight) in weights {
            self.postings.entry(word).or_default().push((text, weight));
        }
    }

    /// Returns the texts that share a word with the query, with their scores.
    pub fn search(&self, words: impl IntoIterator<Item = String>) -> BTreeMap<usize, f64> {
        let texts = self.lengths.len() as f64;
        let average = self.length_total / texts.max(1.0);
        let wanted: BTreeSet<String> = words.into_iter().collect();
        let mut scores = BTreeMap::new();
        for postings in wanted.iter().filter_map(|word| self.postings.get(word)) {
            let with = postings.len() as f64;
            let rarity = (1.0 + (texts - with + 0.5) / (with + 0.5)).ln();
            for (text, weight) in postings {
                let length = self.lengths[text] / average;
                let damping = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
                *scores.entry(*text).or_default() += rarity * weight * (SATURATION + 1.0) / (weight + damping);
            }
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl Iterator<Item = String> {
        text.split_whitespace().map(str::to_owned)
    }

    fn best(texts: &[&str], query: &str) -> Vec<usize> {
        let mut index = Bm25Index::default();
        for (at, text) in texts.iter().enumerate() {
            index.add(at, words(text).map(|word| (word, 1.0)));
        }
        let mut found: Vec<(usize, f64)> = index.search(words(query)).into_iter().collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1));
        found.into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn rare_words_repeated_words_and_short_texts_count_more() {
        assert_eq!(best(&["tea and milk", "coffee and milk", "milk"], "the coffee milk"), [1, 2, 0]);
        assert_eq!(best(&["tea x y", "tea tea y"], "tea"), [1, 0]);
        assert_eq!(best(&["tea and much more than that besides", "tea"], "tea"), [1, 0]);
        assert_eq!(best(&["tea", "milk"], "coffee"), Vec::<usize>::new());
        assert_eq!(best(&[], "x"), Vec::<usize>::new());
    }

    #[test]
    fn a_heavier_word_counts_more() {
        let mut index = Bm25Index::default();
        index.add(7, [("tea".to_owned(), 1.0), ("milk".to_owned(), 3.0)]);
        index.add(9, [("tea".to_owned(), 3.0), ("milk".to_owned(), 1.0)]);
        let scores = index.search(words("tea"));
        assert!(scores[&9] > scores[&7]);
    }
}
