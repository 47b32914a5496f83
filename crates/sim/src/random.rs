//! Random numbers that are the same for the same seed on every machine. Never use it where a stranger must not guess.

/// A generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts from a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.number() % n
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several; there must be one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// The place of one of several, each as likely as its weight says.
    pub fn weighted(&mut self, weights: impl Iterator<Item = u64> + Clone) -> usize {
        let mut left = self.below(weights.clone().sum());
        for (place, weight) in weights.enumerate() {
            if left < weight {
                return place;
            }
            left -= weight;
        }
        unreachable!("the weights add up to more than what was drawn")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.number(), random.below(10), random.number()]
        };
        assert_eq!(numbers(5), numbers(5));
        assert_ne!(numbers(5), numbers(6));
    }

    #[test]
    fn weights_decide() {
        let mut random = Random::new(1);
        let mut seen = [0; 3];
        (0..1000).for_each(|_| seen[random.weighted([1, 0, 9].into_iter())] += 1);
        assert!(seen[0] > 50 && seen[1] == 0 && seen[2] > 800, "{seen:?}");
    }
}
