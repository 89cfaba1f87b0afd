//! Deterministic pseudo-random numbers.

/// Deterministic random numbers, for stand-ins and their tests.
///
/// The generator is `SplitMix64` (Steele, Lea, Flood, 2014). Its state is a counter, so the numbers at any
/// position of a sequence are available without the earlier ones.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Returns the generator of the item with this kind and number.
    pub fn of(seed: u64, kind: u64, number: u64) -> Self {
        let mut chance = Self(seed);
        for part in [kind, number] {
            chance.0 = chance.number() ^ part;
        }
        chance
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns true with this probability, from 0 to 1.
    pub fn happens(&mut self, probability: f64) -> bool {
        // 32 bits are exact in an `f64`.
        let number = u32::try_from(self.number() >> 32).unwrap_or(u32::MAX);
        f64::from(number) / 4_294_967_296.0 < probability
    }

    /// Returns a number in this inclusive range.
    pub fn between(&mut self, [low, high]: [u64; 2]) -> u64 {
        let count = high.saturating_sub(low).saturating_add(1);
        low + self.number() % count
    }

    /// Returns an id in the form of a UUID.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.number(), self.number());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_the_same_each_time_and_as_probable_as_wanted() {
        let one: Vec<u64> = (0..5).map(|n| Chance::of(7, 0, n).number()).collect();
        let again: Vec<u64> = (0..5).map(|n| Chance::of(7, 0, n).number()).collect();
        let other: Vec<u64> = (0..5).map(|n| Chance::of(8, 0, n).number()).collect();
        assert_eq!(one, again);
        assert_ne!(one, other);
        let mut chance = Chance::of(1, 2, 3);
        let happened = (0..10_000).filter(|_| chance.happens(0.3)).count();
        assert!((2_800..3_200).contains(&happened), "{happened}");
        assert!(!chance.happens(0.0));
        assert!(chance.happens(1.0));
        assert!((0..100).all(|_| (3..=5).contains(&chance.between([3, 5]))));
        assert!(teamster_core::provider::is_uuid(&chance.uuid()));
    }
}
