//! Repeatable randomness: everything random in a simulated run comes from one seed.

/// A small generator (splitmix64); good enough to choose faults, and the same everywhere.
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// The seed is mixed first, so that neighbouring seeds do not share a stream.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(mix(seed ^ 0x5DEE_CE66_D1CE_4E5B))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.below(of.len() as u64);
        &of[usize::try_from(at).expect("a slice's length fits")]
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("a length fits")
    }
}

fn mix(bits: u64) -> u64 {
    let mut mixed = bits;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[test]
fn neighbouring_seeds_share_no_stream() {
    let draws = |seed: u64| {
        let mut chance = SeededRandom::new(seed);
        (0..100).map(|_| chance.draw()).collect::<Vec<_>>()
    };
    let (one, next) = (draws(1), draws(2));
    assert!(one.iter().all(|draw| !next.contains(draw)));
}
