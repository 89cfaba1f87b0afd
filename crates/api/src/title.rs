//! Titles of runs.

use teamster_core::AgentError;
use teamster_core::provider::without_credentials;
use teamster_core::text::one_line;

use crate::{RunSpec, SessionSpec};

/// Longest title that is made of a prompt, in characters.
const OF_PROMPT: usize = 80;
/// Longest title that is given, in characters.
const GIVEN: usize = 200;

/// Returns the title of a run with this prompt: its first line with a text, in at most 80 characters. `None` without a text.
///
/// Of an address, neither password nor query is in a title. Nothing else is taken out.
///
/// ```
/// let title = teamster_api::title_of("\n  Fix the login\nIt fails since Monday.");
/// assert_eq!(title.as_deref(), Some("Fix the login"));
/// ```
pub fn title_of(prompt: &str) -> Option<String> {
    let mut lines = prompt.lines().map(one_line);
    let line = lines.find(|line| !line.is_empty())?;
    let words = line.split(' ').map(|word| {
        // What precedes the scheme, such as a bracket, is no part of the address.
        if word.contains("://") {
            without_credentials(word)
        } else {
            word.to_owned()
        }
    });
    Some(shortened(&words.collect::<Vec<_>>().join(" "), OF_PROMPT))
}

/// Returns a title that a person gives to a run, in one line.
///
/// # Errors
///
/// Fails if there is no text in it, or more than 200 characters.
pub fn check_title(title: &str) -> Result<String, AgentError> {
    let title = one_line(title);
    let refused = |problem: &str| Err(AgentError::refused("title", problem));
    match title.chars().count() {
        0 => refused("there is no text in it"),
        1..=GIVEN => Ok(title),
        _ => refused("at most 200 characters"),
    }
}

/// Returns the title of a spec or of parameters, in one line of at most 200 characters. `None` without a text.
///
/// Unlike [`check_title`], it shortens a longer one: what starts a run is not refused for it.
///
/// ```
/// let title = teamster_api::given_title(Some(" The\nlogin "));
/// assert_eq!(title.as_deref(), Some("The login"));
/// ```
pub fn given_title(title: Option<&str>) -> Option<String> {
    let title = title.map(one_line).filter(|title| !title.is_empty());
    title.map(|title| shortened(&title, GIVEN))
}

/// Returns whether each word of `wanted` is somewhere in the text. Upper and lower case are the same.
pub fn has_words(text: &str, wanted: &str) -> bool {
    let text = text.to_lowercase();
    let mut wanted = wanted.split_whitespace();
    wanted.all(|word| text.contains(&word.to_lowercase()))
}

impl RunSpec {
    /// Returns the title of the run at its start: the one that it has here, or else that of its prompt.
    pub fn first_title(&self) -> Option<String> {
        given_title(self.title.as_deref()).or_else(|| title_of(&self.prompt))
    }
}

impl SessionSpec {
    /// Returns the title of the session at its start: the one that it has here. Another session gets that of its first
    /// prompt.
    pub fn first_title(&self) -> Option<String> {
        given_title(self.title.as_deref())
    }
}

/// Returns the beginning of a text, with `…` for the rest.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let begin: String = text.chars().take(most - 1).collect();
            format!("{}…", begin.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_with_a_text_and_has_no_password() {
        let long = format!("{} end", "ä".repeat(100));
        for (prompt, title) in [
            ("Fix it", Some("Fix it".to_owned())),
            (
                " \r\n\t\u{1b}\n Fix\tthe  bug \nmore",
                Some("Fix the bug".to_owned()),
            ),
            ("\u{202e}evil", Some("evil".to_owned())),
            ("", None),
            (" \n\t\n", None),
            (
                "clone https://me:pw@example.com/x?token=1 now",
                Some("clone https://example.com/x?… now".to_owned()),
            ),
            (&long, Some(format!("{}…", "ä".repeat(79)))),
        ] {
            assert_eq!(title_of(prompt), title, "{prompt:?}");
            assert!(title.is_none_or(|title| title.chars().count() <= OF_PROMPT));
        }
    }

    #[test]
    fn title_of_a_spec_wins_over_its_prompt() {
        let mut run = RunSpec::new("claude", "Fix it\nsoon");
        assert_eq!(run.first_title().as_deref(), Some("Fix it"));
        run.title = Some(" The\nlogin ".to_owned());
        assert_eq!(run.first_title().as_deref(), Some("The login"));
        let mut session = SessionSpec::new("claude");
        assert_eq!(session.first_title(), None);
        session.title = Some("x".repeat(300));
        assert_eq!(session.first_title(), Some(format!("{}…", "x".repeat(199))));
    }

    #[test]
    fn a_given_title_has_a_text_and_a_limit() {
        assert_eq!(check_title(" a\n b ").unwrap(), "a b");
        assert_eq!(check_title(&"ä".repeat(200)).unwrap(), "ä".repeat(200));
        for wrong in ["", " \n", &"x".repeat(201)] {
            let error = check_title(wrong).unwrap_err();
            assert_eq!(error.parameter(), Some("title"), "{wrong:?}");
        }
    }

    #[test]
    fn words_are_found_in_any_order_and_case() {
        for (text, wanted, found) in [
            ("Fix the Login", "login fix", true),
            ("Fix the Login", "LOG", true),
            ("Fix the Login", "logout", false),
            ("ÄRGER", "ärger", true),
            ("100%", "%", true),
            ("abc", "%", false),
            ("abc", "  ", true),
        ] {
            assert_eq!(has_words(text, wanted), found, "{text:?} {wanted:?}");
        }
    }
}
