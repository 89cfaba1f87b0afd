//! Kilo's messages, in a database like that of OpenCode, of which Kilo is a fork.

use std::io;

use crate::Provider;
use crate::opencode::{self, Store};
use crate::places::Places;
use crate::provider::Traits;
use crate::source::{Sink, Source, Sources};

pub(crate) const TRAITS: Traits = opencode::TRAITS;

fn store(places: &Places) -> Store<'_> {
    Store {
        provider: Provider::Kilo,
        name: "kilo",
        data: places.kilo.as_deref(),
        database: places.kilo_db.as_deref(),
    }
}

/// Adds the databases, which may have any session.
pub(crate) fn sources(places: &Places, found: &mut Sources) {
    store(places).sources(found);
}

/// Reads a database.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    opencode::read(source, sink)
}
