//! Kilo's messages, in a database like that of OpenCode, of which Kilo is a fork.

use std::io;

use crate::Provider;
use crate::locations::Locations;
use crate::opencode::{self, Store};
use crate::provider::Traits;
use crate::source::{Sink, Source, Sources};

pub(crate) const TRAITS: Traits = opencode::TRAITS;

fn store(locations: &Locations) -> Store<'_> {
    Store {
        provider: Provider::Kilo,
        name: "kilo",
        data: locations.kilo.as_deref(),
        database: locations.kilo_db.as_deref(),
    }
}

/// Adds the databases, which may have any session.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    store(locations).sources(found);
}

/// Reads a database.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    opencode::read(source, sink)
}
