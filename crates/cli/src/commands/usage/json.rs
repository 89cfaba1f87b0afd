//! Usage as JSON. `docs/usage.md` describes the fields.

use std::io::{self, Write};

use teamster_api::usage::UsageSummary;

pub(super) fn print(summary: &UsageSummary, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, summary)?;
    writeln!(out)
}
