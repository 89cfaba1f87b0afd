//! Which session a recorded command line is about.

use teamster_core::ExecuteParams;

/// Flags of `codex exec` whose value is a word of its own.
const WITH_VALUE: &[&str] = &[
    "-c",
    "--config",
    "--enable",
    "--disable",
    "-i",
    "--image",
    "-m",
    "--model",
    "--local-provider",
    "-p",
    "--profile",
    "-s",
    "--sandbox",
    "-C",
    "--cd",
    "--add-dir",
    "--thread-source",
    "--output-schema",
    "--color",
    "-o",
    "--output-last-message",
];

/// Puts the session that is resumed or forked into the parameters, if the command line names one.
pub(crate) fn params(argv: &[String], params: &mut ExecuteParams) {
    let mut words = argv.iter().skip(1).map(String::as_str);
    let mut command = None;
    let mut last = false;
    while let Some(word) = words.next() {
        match word {
            "--" => break,
            "--last" => last = true,
            flag if WITH_VALUE.contains(&flag) => {
                words.next();
            }
            flag if flag.len() > 1 && flag.starts_with('-') => {}
            "exec" | "e" if command.is_none() => command = Some("exec"),
            "resume" | "fork" if command == Some("exec") => {
                command = Some(if word == "fork" { "fork" } else { "resume" });
            }
            id if matches!(command, Some("resume" | "fork")) => {
                // After `--last` it is the prompt.
                if !last {
                    params.session_id = Some(id.to_owned());
                    params.fork = command == Some("fork");
                }
                return;
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(line: &str) -> (Option<String>, bool) {
        let argv: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let mut found = ExecuteParams::new("");
        params(&argv, &mut found);
        (found.session_id, found.fork)
    }

    #[test]
    fn the_session_of_a_command_line() {
        let resumed = |id: &str| (Some(id.to_owned()), false);
        assert_eq!(
            session("codex exec --json -m m resume s-1 hi"),
            resumed("s-1")
        );
        assert_eq!(
            session("/x/codex exec resume --json -c a=b s-1 -"),
            resumed("s-1")
        );
        assert_eq!(
            session("codex exec fork s-1 hi"),
            (Some("s-1".to_owned()), true)
        );
        for new in [
            "codex exec --json hi",
            "codex exec -- resume s-1",
            "codex exec --json resume-me s-1",
            "codex exec -m resume s-1",
            "codex exec resume --last hi",
            "codex",
            "",
        ] {
            assert_eq!(session(new), (None, false), "{new}");
        }
    }
}
