//! Requests by their keys.

use std::collections::HashMap;
use std::collections::hash_map;
use std::hash::{BuildHasherDefault, Hasher};

use super::entry::{Entry, Names};
use crate::Key;

/// A map by keys, which are hashes already.
pub(super) type ByKey<T> = HashMap<Key, T, BuildHasherDefault<AlreadyHashed>>;

/// Number of tables. A growing table needs its old and its new memory at once. With many small tables only one of them
/// does so at a time.
const TABLES: usize = 64;

/// Returns the index of a key's table.
fn table(key: Key) -> usize {
    // Bits in the middle, because hash maps use the lowest ones for the position and the highest to compare.
    usize::try_from(key.0 >> 32).unwrap_or(0) % TABLES
}

/// Unique requests.
#[derive(Debug, Clone)]
pub(super) struct Requests(Vec<ByKey<Entry>>);

impl Default for Requests {
    fn default() -> Self {
        Self(vec![ByKey::default(); TABLES])
    }
}

impl Requests {
    /// Adds a record of a request, merging it with earlier ones.
    pub(super) fn add(&mut self, key: Key, entry: Entry, names: &Names) {
        match self.0[table(key)].entry(key) {
            hash_map::Entry::Occupied(mut known) => known.get_mut().merge(&entry, names),
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(entry);
            }
        }
    }

    /// Returns the merged record of a request.
    pub(super) fn get(&self, key: Key) -> Option<&Entry> {
        self.0[table(key)].get(&key)
    }

    /// Returns all requests, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.0.iter().flatten()
    }

    /// Returns the merged records, in no particular order.
    pub(super) fn values(&self) -> impl Iterator<Item = &Entry> {
        self.iter().map(|(_, entry)| entry)
    }
}

/// Hasher for keys, which are hashes already.
#[derive(Debug, Clone, Default)]
pub(super) struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
