//! Parses a recorded command line for the decoder of a replay.

use teamster_core::ExecuteParams;

/// Reads the session and the lists of tools from a recorded command line.
pub(crate) fn read(argv: &[String], params: &mut ExecuteParams) {
    let mut words = argv.iter().map(String::as_str);
    while let Some(word) = words.next().filter(|word| *word != "--") {
        match word {
            "--session" => params.session_id = words.next().map(str::to_owned),
            "--tools" | "--exclude-tools" => {
                let list = [Some(word), words.next()].into_iter().flatten();
                params.extra_args.extend(list.map(str::to_owned));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_the_word_after_its_flag() {
        let session = |argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
            let mut found = ExecuteParams::new("hi");
            read(&argv, &mut found);
            found.session_id
        };
        assert_eq!(
            session(&["pi", "--mode", "json", "--session", "a-1", "--", "x"]).as_deref(),
            Some("a-1")
        );
        assert_eq!(session(&["pi", "--", "--session", "a-1"]), None);
        assert_eq!(session(&["pi", "--session-id", "a-1"]), None);
    }

    #[test]
    fn lists_of_tools_are_kept_for_the_tools_that_they_withhold() {
        let argv = ["pi", "--tools", "read,ls", "--", "--tools"].map(str::to_owned);
        let mut found = ExecuteParams::new("hi");
        read(&argv, &mut found);
        assert_eq!(found.extra_args, ["--tools", "read,ls"]);
    }
}
