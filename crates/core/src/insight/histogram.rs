//! A compact histogram: buckets grow with the value, so that no value is off by more than a tenth.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values below this have their own bucket.
const EXACT: u64 = 16;
/// Buckets between a power of two and the next.
const STEPS: u64 = 8;
/// The power of two from which buckets are shared.
const EXACT_BITS: u32 = EXACT.ilog2();
const STEPS_BITS: u32 = STEPS.ilog2();

/// Counts of whole numbers. Two histograms add up to the histogram of all their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeableHistogram {
    #[serde(with = "pairs")]
    buckets: BTreeMap<u16, u64>,
    sum: u64,
    max: u64,
}

impl MergeableHistogram {
    pub fn record(&mut self, value: u64) {
        *self.buckets.entry(bucket(value)).or_default() += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    pub fn add(&mut self, other: &MergeableHistogram) {
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    pub fn count(&self) -> u64 {
        self.buckets.values().sum()
    }

    pub fn sum(&self) -> u64 {
        self.sum
    }

    pub fn max(&self) -> u64 {
        self.max
    }

    /// A percentile, off by at most a tenth. `None` for an empty histogram.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let count = self.count();
        let rank = u128::from(count) * u128::from(percent.min(100));
        let rank = u64::try_from(rank.div_ceil(100)).unwrap_or(count).max(1);
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return Some(middle(*bucket).min(self.max));
            }
        }
        None
    }

    /// The number of values up to this one; a bucket counts by its middle.
    pub fn up_to(&self, value: u64) -> u64 {
        let within = |bucket: &&u16| middle(**bucket) <= value;
        self.buckets.keys().take_while(within).map(|bucket| self.buckets[bucket]).sum()
    }

    /// The middle and the count of each bucket, smallest first.
    pub fn spread(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.iter().map(|(bucket, count)| (middle(*bucket), *count))
    }
}

fn bucket(value: u64) -> u16 {
    let number = if value < EXACT {
        value
    } else {
        let bits = value.ilog2();
        let step = (value >> (bits - STEPS_BITS)) & (STEPS - 1);
        EXACT + u64::from(bits - EXACT_BITS) * STEPS + step
    };
    u16::try_from(number).expect("64 powers of two have some 500 buckets")
}

fn middle(bucket: u16) -> u64 {
    let number = u64::from(bucket);
    if number < EXACT {
        return number;
    }
    // A bucket that does not exist, in damaged bytes, counts as the last one.
    let bits = u32::try_from((number - EXACT) / STEPS).unwrap_or(u32::MAX).saturating_add(EXACT_BITS).min(63);
    let width = 1u64 << (bits - STEPS_BITS);
    (1u64 << bits) + (number - EXACT) % STEPS * width + width / 2
}

/// Serializes as a list of pairs, which is half as long as an object with numeric keys.
mod pairs {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub fn serialize<S: Serializer>(buckets: &BTreeMap<u16, u64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(buckets)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u16, u64>, D::Error> {
        Ok(Vec::<(u16, u64)>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_off_by_more_than_a_tenth() {
        let edges = (0..64).flat_map(|bits| [1u64 << bits, (1u64 << bits) - 1, (1u64 << bits) + 1]);
        for value in (0..100_000).chain(edges).chain([u64::MAX]) {
            let off = middle(bucket(value)).abs_diff(value);
            assert!(u128::from(off) * 10 <= u128::from(value), "{value} is reported as {}", middle(bucket(value)));
        }
    }

    #[test]
    fn buckets_follow_each_other() {
        let mut last = 0;
        for value in 0..1_000_000u64 {
            let next = bucket(value);
            assert!(next == last || next == last + 1, "{value}");
            last = next;
        }
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values_within_a_tenth() {
        let values: Vec<u64> = (1..=5_000u64).map(|n| n * n % 7_919 * 13).collect();
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let mut halves = [MergeableHistogram::default(), MergeableHistogram::default()];
        for (at, value) in values.iter().enumerate() {
            halves[at % 2].record(*value);
        }
        let [mut histogram, other] = halves;
        histogram.add(&other);
        assert_eq!((histogram.count(), histogram.sum()), (5_000, values.iter().sum()));
        for percent in [1, 50, 95, 99, 100] {
            let exact = sorted[(5_000 * percent / 100) as usize - 1];
            let count = histogram.percentile(percent).unwrap();
            assert!(count.abs_diff(exact) * 10 <= exact, "p{percent}: {count} for {exact}");
        }
        assert_eq!(MergeableHistogram::default().percentile(50), None);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut histogram = MergeableHistogram::default();
        for value in [0, 3, 3, 900, 1_000_000] {
            histogram.record(value);
        }
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<MergeableHistogram>(&text).unwrap(), histogram, "{text}");
        assert_eq!((histogram.up_to(3), histogram.up_to(999), histogram.up_to(u64::MAX)), (3, 4, 5));
    }
}
