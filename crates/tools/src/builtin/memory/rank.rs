//! Which texts fit a query best, by the words they share (BM25): a word counts more the rarer it is among all texts and
//! the more often it stands in this one, and long texts are not favoured for being long.

use std::collections::HashMap;

/// How soon more of the same word stops counting.
const SATURATION: f64 = 1.2;
/// How much length counts against a text.
const LENGTH_WEIGHT: f64 = 0.75;

#[derive(Debug, Default)]
pub(super) struct Index {
    /// For each word the texts it stands in, and how often.
    postings: HashMap<String, Vec<(usize, u32)>>,
    lengths: HashMap<usize, u32>,
    words: u64,
}

impl Index {
    pub fn add(&mut self, text: usize, content: &str) {
        let mut counts: HashMap<String, u32> = HashMap::new();
        let mut length = 0;
        for word in words(content) {
            *counts.entry(word).or_default() += 1;
            length += 1;
        }
        for (word, count) in counts {
            self.postings.entry(word).or_default().push((text, count));
        }
        self.lengths.insert(text, length);
        self.words += u64::from(length);
    }

    /// The texts that share a word with the query, and how well each fits; in no order.
    pub fn search(&self, query: &str) -> HashMap<usize, f64> {
        let texts = self.lengths.len() as f64;
        let average = self.words as f64 / texts.max(1.0);
        let mut wanted: Vec<String> = words(query).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut scores = HashMap::new();
        for postings in wanted.iter().filter_map(|word| self.postings.get(word)) {
            let with = postings.len() as f64;
            let rarity = (1.0 + (texts - with + 0.5) / (with + 0.5)).ln();
            for (text, count) in postings {
                let length = f64::from(self.lengths[text]) / average;
                let count = f64::from(*count);
                let norm = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
                *scores.entry(*text).or_default() += rarity * count * (SATURATION + 1.0) / (count + norm);
            }
        }
        scores
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(texts: &[&str], query: &str) -> Vec<usize> {
        let mut index = Index::default();
        texts.iter().enumerate().for_each(|(at, text)| index.add(at, text));
        let mut found: Vec<(usize, f64)> = index.search(query).into_iter().collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1));
        found.into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn rare_words_repeated_words_and_short_texts_count_more() {
        assert_eq!(best(&["tea and milk", "coffee and milk", "milk"], "the COFFEE, milk!"), [1, 2, 0]);
        assert_eq!(best(&["tea x y", "tea tea y"], "tea"), [1, 0]);
        assert_eq!(best(&["tea and much more than that besides", "tea"], "tea"), [1, 0]);
        assert_eq!(best(&["tea", "milk"], "coffee"), Vec::<usize>::new());
        assert_eq!(best(&["Grüße aus Köln", "Kolner Dom"], "köln"), [0]);
        assert_eq!(best(&[], "x"), Vec::<usize>::new());
    }
}
