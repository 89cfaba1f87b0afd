//! Styles of a diff.

use anstyle::{AnsiColor, Style};

/// The name of something.
pub(crate) const BOLD: Style = Style::new().bold();
/// Text of less importance.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The head of a hunk.
pub(crate) const HUNK: Style = AnsiColor::Cyan.on_default();
/// An added line.
pub(crate) const ADDED: Style = AnsiColor::Green.on_default();
/// A deleted line.
pub(crate) const DELETED: Style = AnsiColor::Red.on_default();
