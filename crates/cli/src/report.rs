//! Errors and warnings on stderr.

use std::io::{self, Write};

use teamster_host::Warning;

use crate::{hints, words};

/// Prints an error to stderr.
pub(crate) fn fail(error: &anyhow::Error) {
    fail_on(&mut anstream::stderr(), error);
}

/// Prints an error to `out`.
pub(crate) fn fail_on(out: &mut dyn Write, error: &anyhow::Error) {
    let style = anstyle::Style::new()
        .fg_color(Some(anstyle::AnsiColor::Red.into()))
        .bold();
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

/// Prints warnings to stderr.
pub(crate) fn warn(ignored: &[String]) {
    let style = anstyle::Style::new().fg_color(Some(anstyle::AnsiColor::Yellow.into()));
    for what in ignored {
        let what = words::printable(what);
        // As above.
        let _ = writeln!(anstream::stderr(), "{style}warning:{style:#} {what}");
    }
}

/// Prints warnings of a run to stderr. A quiet command leaves out those that are not important.
pub(crate) fn warn_of(warnings: &[Warning], quiet: bool) {
    let shown = warnings.iter().filter(|it| it.important || !quiet);
    let shown: Vec<_> = shown.map(|it| hints::warning(&it.text)).collect();
    warn(&shown);
}
