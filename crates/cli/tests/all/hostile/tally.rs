//! The outcomes by kind of message, as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Debug, Default)]
pub struct Tally(BTreeMap<(String, String), usize>);

impl Tally {
    pub fn count(&mut self, category: &str, outcome: &str) {
        *self.0.entry((category.to_owned(), outcome.to_owned())).or_default() += 1;
    }

    pub fn total(&self) -> usize {
        self.0.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes: BTreeSet<&String> = self.0.keys().map(|(_, outcome)| outcome).collect();
        let categories: BTreeSet<&String> = self.0.keys().map(|(category, _)| category).collect();
        write!(f, "{:14}", "")?;
        for outcome in &outcomes {
            write!(f, " {outcome:>9}")?;
        }
        for category in categories {
            write!(f, "\n{category:14}")?;
            for outcome in &outcomes {
                match self.0.get(&(category.clone(), (*outcome).clone())) {
                    Some(count) => write!(f, " {count:>9}")?,
                    None => write!(f, " {:>9}", "·")?,
                }
            }
        }
        writeln!(f)
    }
}
