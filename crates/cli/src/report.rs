//! Errors and warnings on stderr.

use std::io::{self, Write};

use anstyle::AnsiColor;
use teamster_host::Warning;

use crate::{hints, words};

/// Prints an error to stderr.
pub(crate) fn fail(error: &anyhow::Error) {
    fail_on(&mut anstream::stderr(), error);
}

/// Prints an error to `out`.
pub(crate) fn fail_on(out: &mut dyn Write, error: &anyhow::Error) {
    let style = AnsiColor::Red.on_default().bold();
    let advice = hints::advice(error).unwrap_or_default();
    let error = words::error_chain(error) + &advice;
    let error = words::printable(words::without_error_word(&error));
    let deleted = if is_current_directory_deleted() && !error.contains(DELETED) {
        format!("; {DELETED}; change to another one")
    } else {
        String::new()
    };
    // A closed stderr is ignored.
    let _ = writeln!(out, "{style}error:{style:#} {error}{deleted}");
}

/// The note that explains errors in a deleted current directory.
const DELETED: &str = "the current directory was deleted";

fn is_current_directory_deleted() -> bool {
    std::env::current_dir().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Prints a remark to stderr, where a script does not parse it as output. Without stderr it cannot be shown.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints warnings to stderr.
pub(crate) fn warn(ignored: &[String]) {
    let style = AnsiColor::Yellow.on_default();
    for what in ignored {
        note(&format!(
            "{style}warning:{style:#} {}",
            words::printable(what)
        ));
    }
}

/// Prints warnings of a run to stderr. A quiet command leaves out those that are not important.
pub(crate) fn warn_of(warnings: &[Warning], quiet: bool) {
    let shown = warnings.iter().filter(|it| it.important || !quiet);
    let shown: Vec<_> = shown.map(|it| hints::warning(&it.text)).collect();
    warn(&shown);
}
