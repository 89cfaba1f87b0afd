//! Text of errors.

pub use teamster_core::text::{plural, printable};

/// Returns the message of an error and its causes. A cause that is already in the text is left out.
pub fn error_chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster_core::{AgentError, ErrorCode, ErrorKind};

    #[test]
    fn a_printable_path_is_the_path() {
        assert_eq!(printable("/a/my  repo\u{a0}x"), "/a/my  repo\u{a0}x");
        assert_eq!(printable("/a\n\u{1b}[2K/\u{202e}b"), "/a[2K/b");
    }

    #[test]
    fn a_cause_within_an_error_is_printed_once() {
        let error = |message: &str| AgentError::new(ErrorCode::CliError, ErrorKind::Auth, message);
        let explained = error("log in (it may have had side effects)").cause(error("log in"));
        assert_eq!(
            error_chain(&explained.into()),
            "log in (it may have had side effects)"
        );
        let other = error("all agents are on hold").cause(error("log in"));
        assert_eq!(error_chain(&other.into()), "all agents are on hold: log in");
    }

    #[test]
    fn a_message_of_the_system_is_printed_once() {
        let missing = || std::io::Error::from_raw_os_error(2);
        let text = missing().to_string();
        let twice = anyhow::Error::from(missing()).context(format!("cannot read x: {}", missing()));
        assert_eq!(error_chain(&twice), format!("cannot read x: {text}"));
        let once = anyhow::Error::from(missing()).context("cannot read x");
        assert_eq!(error_chain(&once), format!("cannot read x: {text}"));
    }
}
