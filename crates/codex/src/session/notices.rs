//! Notifications for the user.

use teamster_core::provider::Events;
use teamster_core::{NoticeLevel, NoticeSource};

use crate::wire::Object;

/// Prefix of a warning without consequences: the CLI ships the program that it did not find.
const NO_BUBBLEWRAP: &str = "Codex could not find bubblewrap on PATH";

/// Emits a message that the CLI wants to show.
pub(super) fn message(level: NoticeLevel, params: &Object<'_>, out: &mut Events) -> Option<()> {
    let summary = params.text("summary")?;
    if summary.starts_with(NO_BUBBLEWRAP) {
        return Some(());
    }
    let message = match params.text("details") {
        Some(details) => format!("{summary}\n{details}"),
        None => summary.into_owned(),
    };
    out.notice(level, NoticeSource::Stdout, message);
    Some(())
}

/// Emits notices about the service, the login and the machine. No recording has them: the fields are those of the
/// CLI's own schema. Returns `None` for other fields.
pub(super) fn of(method: &str, params: &Object<'_>, out: &mut Events) -> Option<()> {
    let list = |name| params.get::<Vec<String>>(name);
    let (level, message) = match method {
        "modelProvider/authRecoveryStarted" => {
            let (provider, message) = (params.text("provider")?, params.text("message")?);
            (NoticeLevel::Warning, format!("{provider}: {message}"))
        }
        "modelProvider/authRecoveryCompleted" => {
            let (provider, message) = (params.text("provider")?, params.text("message")?);
            (NoticeLevel::Info, format!("{provider}: {message}"))
        }
        "model/verification" => (
            NoticeLevel::Warning,
            format!(
                "the service asks for a verification of the account: {}",
                list("verifications")?.join(", ")
            ),
        ),
        // It comes with each change; only this one must be shown.
        "model/safetyBuffering/updated" if params.get("show_buffering_ui") == Some(true) => {
            let model = params.text("model")?;
            let message = format!("the service holds the answer of {model} back to check it");
            (NoticeLevel::Info, message)
        }
        "model/safetyBuffering/updated" => return Some(()),
        "windows/worldWritableWarning" => {
            let paths = list("sample_paths")?.join(", ");
            let more = match params.get::<u64>("extra_count") {
                Some(more @ 1..) => format!(" and {more} more"),
                _ => String::new(),
            };
            let message = format!(
                "the sandbox cannot protect folders that everyone may write: {paths}{more}"
            );
            (NoticeLevel::Warning, message)
        }
        _ => return None,
    };
    out.notice(level, NoticeSource::Stdout, message);
    Some(())
}
