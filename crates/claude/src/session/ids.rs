//! Ids of messages and requests of a session.

use std::hash::{BuildHasher, RandomState};

/// Generates ids of messages and requests.
#[derive(Debug, Default)]
pub(super) struct Ids {
    random: RandomState,
    count: u64,
}

impl Ids {
    /// Returns a UUID that is unique for the session, across processes. The CLI treats a message with a known id as a
    /// duplicate.
    pub(super) fn uuid(&mut self) -> String {
        self.count += 1;
        let half = |which: u8| u128::from(self.random.hash_one((which, self.count)));
        let bits = half(0) << 64 | half(1);
        // Version 4, with the standard variant.
        let bits = bits & !(0xf << 76) | 0x4 << 76;
        let bits = bits & !(0b11 << 62) | 0b10 << 62;
        let hex = format!("{bits:032x}");
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        parts.join("-")
    }

    /// Returns an id that is unique among the requests to this process.
    pub(super) fn request(&mut self) -> String {
        self.count += 1;
        format!("teamster-{}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn uuids_are_written_as_such_and_never_the_same() {
        let (mut one, mut other) = (Ids::default(), Ids::default());
        let ids: HashSet<_> = (0..1000).flat_map(|_| [one.uuid(), other.uuid()]).collect();
        assert_eq!(ids.len(), 2000);
        for id in &ids {
            assert!(teamster_core::provider::is_uuid(id), "{id}");
            assert_eq!(&id[14..15], "4", "{id}");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        }
    }
}
