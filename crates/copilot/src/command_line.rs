//! Finds the session that a recorded command line names.

use teamster_core::ExecuteParams;
use teamster_core::provider::is_uuid;

/// Flags that name a session.
const FLAGS: &[&str] = &["--session-id", "--resume", "-r"];

/// Sets the session parameters from a recorded command line. Session names and prefixes of ids are ignored, because
/// they are no ids.
///
/// `--session-id` also resumes an existing session, and a recording does not show whether it did. So that id is set
/// as one to resume, which makes no assumption of a new session.
pub(crate) fn read(argv: &[String], params: &mut ExecuteParams) {
    let mut words = argv.iter().skip(1).map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            return;
        }
        let (flag, joined) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        if !FLAGS.contains(&flag) {
            continue;
        }
        let value = joined.or_else(|| words.peek().copied());
        if let Some(id) = value.filter(|id| is_uuid(id)) {
            params.session_id = Some(id.to_owned());
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f";

    fn session(line: &str) -> Option<String> {
        let argv: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let mut found = ExecuteParams::new("");
        read(&argv, &mut found);
        assert_eq!(found.new_session_id, None);
        found.session_id
    }

    #[test]
    fn the_session_of_a_command_line_is_a_complete_id() {
        for flag in ["--session-id", "--resume", "-r"] {
            let joined = format!("copilot --prompt=hi {flag}={ID} --no-color");
            assert_eq!(session(&joined).as_deref(), Some(ID), "{joined}");
            let apart = format!("copilot -p hi {flag} {ID}");
            assert_eq!(session(&apart).as_deref(), Some(ID), "{apart}");
        }
        for none in [
            "copilot -p hi",
            "copilot --resume=0190b0b",
            "copilot --resume=my",
            "copilot --resume",
            "copilot --resume --no-color",
            "copilot --session-id x",
            "copilot --resume=",
        ] {
            assert_eq!(session(none), None, "{none}");
        }
        assert_eq!(session(&format!("copilot --prompt=--resume={ID}")), None);
        assert_eq!(session(&format!("copilot -- --resume={ID}")), None);
    }
}
