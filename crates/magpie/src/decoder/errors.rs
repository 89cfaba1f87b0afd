//! Error kinds of Magpie's own messages.

use teamster_core::ErrorKind;

/// Classifies a message, first by the CLI's own texts, then by those of model services.
pub(super) fn kind_of(message: &str) -> Option<ErrorKind> {
    if message.contains("MAGPIE_KEY") {
        return Some(ErrorKind::Auth);
    }
    ErrorKind::of_message(message)
}
