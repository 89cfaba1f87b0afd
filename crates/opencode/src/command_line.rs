//! Parses a recorded command line for the decoder of a replay.

use teamster_core::ExecuteParams;

/// Reads the model, the session and the agent from a recorded command line. A configuration that the recording does
/// not have must not come from the environment of the replay.
pub(crate) fn read(argv: &[String], params: &mut ExecuteParams) {
    let mut agent = None;
    let mut words = argv.iter().map(String::as_str);
    while let Some(word) = words.next().filter(|word| *word != "--") {
        for (flags, value) in [
            (["--model", "-m"], &mut params.model),
            (["--session", "-s"], &mut params.session_id),
            (["--agent", "--agent"], &mut agent),
        ] {
            if flags.contains(&word) {
                *value = words.next().map(str::to_owned);
                break;
            }
            if let Some(joined) = flags.iter().find_map(|flag| joined(word, flag)) {
                *value = Some(joined.to_owned());
                break;
            }
        }
    }
    // The agent whose rules apply.
    params
        .extra_args
        .extend(agent.map(|agent| format!("--agent={agent}")));
    for name in ["OPENCODE_CONFIG_CONTENT", "OPENCODE_PERMISSION"] {
        params.env.entry(name.into()).or_default();
    }
}

/// Returns the value that is joined to this flag.
fn joined<'a>(word: &'a str, flag: &str) -> Option<&'a str> {
    let rest = word.strip_prefix(flag)?;
    match rest.strip_prefix('=') {
        Some(value) => Some(value),
        None if flag.len() == 2 && !rest.is_empty() => Some(rest),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(argv: &[&str]) -> (Option<String>, Option<String>) {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let mut found = ExecuteParams::new("hi");
        read(&argv, &mut found);
        (found.model, found.session_id)
    }

    #[test]
    fn model_and_session_joined_or_as_two_words() {
        let both = (Some("a/b".to_owned()), Some("ses_1".to_owned()));
        let head = ["opencode", "run", "--format", "json"];
        for rest in [
            ["-m", "a/b", "--session", "ses_1"].as_slice(),
            &["--model=a/b", "--session=ses_1", "hi"],
            &["--model", "a/b", "-s", "ses_1"],
            &["-ma/b", "-s=ses_1", "--", "-m", "c/d", "--session=x"],
        ] {
            assert_eq!(of(&[&head, rest].concat()), both, "{rest:?}");
        }
        assert_eq!(of(&["opencode", "run", "--", "-m", "a/b"]), (None, None));
        assert_eq!(of(&["opencode", "run", "--share", "x"]), (None, None));
    }

    #[test]
    fn the_agent_is_known_by_its_argument() {
        for argv in [&["run", "--agent", "plan"][..], &["run", "--agent=plan"]] {
            let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
            let mut found = ExecuteParams::new("hi");
            read(&argv, &mut found);
            assert_eq!(found.extra_args, ["--agent=plan"]);
        }
    }

    #[test]
    fn the_environment_of_the_replay_does_not_count() {
        let mut found = ExecuteParams::new("hi");
        read(&[], &mut found);
        assert_eq!(found.env["OPENCODE_CONFIG_CONTENT"], "");
        assert_eq!(found.env["OPENCODE_PERMISSION"], "");
        found
            .env
            .insert("OPENCODE_CONFIG_CONTENT".into(), "{}".into());
        read(&[], &mut found);
        assert_eq!(found.env["OPENCODE_CONFIG_CONTENT"], "{}");
    }
}
