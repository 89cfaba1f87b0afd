//! Finds the session that a command line resumes or forks: of a recording, or in the caller's extra arguments.

use teamster_core::ExecuteParams;

/// Flags of `codex` and `codex exec` whose value is a separate word.
const WITH_VALUE: &str = "
    -a --ask-for-approval --remote --remote-auth-token-env -c --config --enable --disable -i
    --image -m --model --local-provider -p --profile -s --sandbox -C --cd --add-dir
    --thread-source --cyber-access-program --output-schema --color -o --output-last-message
";

/// A path that cannot exist.
const NOWHERE: &str = "\0";

/// A resumed or forked session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// The id, or another value in its position. `None` means the most recent session.
    id: Option<String>,
    fork: bool,
}

/// Sets the session parameters from a recorded command line that resumes or forks one.
///
/// The session's earlier usage is on the machine of the recording. The parameters name a home that cannot exist, so
/// that the CLI's home on this machine is not read.
pub(crate) fn read(argv: &[String], params: &mut ExecuteParams) {
    let is_exec = |word: &String| matches!(word.as_str(), "exec" | "e");
    let mut words = Words::new(argv);
    // Skip the program, which may be a script after its interpreter, and the flags of `codex` itself.
    while let Some(word) = words.positional() {
        if !is_exec(word) {
            continue;
        }
        if let Some(resumed) = resumed(words.rest) {
            params.env.insert("CODEX_HOME".into(), NOWHERE.into());
            match resumed.id {
                Some(id) => {
                    params.session_id = Some(id);
                    params.fork = resumed.fork;
                }
                None => params.extra_args = words.rest.to_vec(),
            }
        }
        return;
    }
}

/// Returns the session that arguments of `codex exec` resume or fork.
pub(crate) fn resumed(args: &[String]) -> Option<Resumed> {
    let mut words = Words::new(args);
    let command = words.positional().filter(|_| !words.ended)?;
    let fork = match command.as_str() {
        "resume" => false,
        "fork" => true,
        _ => return None,
    };
    let id = words.positional();
    while words.positional().is_some() {}
    // After `--last`, the word is the prompt.
    let id = id.filter(|_| !words.last);
    Some(Resumed {
        id: id.cloned(),
        fork,
    })
}

/// The words of a command line, without its flags.
struct Words<'a> {
    rest: &'a [String],
    /// True after `--`.
    ended: bool,
    /// True after `--last`.
    last: bool,
}

impl<'a> Words<'a> {
    fn new(rest: &'a [String]) -> Self {
        Self {
            rest,
            ended: false,
            last: false,
        }
    }

    /// Returns the next word that is neither a flag nor a flag's value.
    fn positional(&mut self) -> Option<&'a String> {
        loop {
            let (word, rest) = self.rest.split_first()?;
            self.rest = rest;
            match word.as_str() {
                _ if self.ended => return Some(word),
                "--" => self.ended = true,
                "--last" => self.last = true,
                flag if WITH_VALUE.split_ascii_whitespace().any(|it| it == flag) => {
                    self.rest = rest.get(1..).unwrap_or_default();
                }
                flag if flag.len() > 1 && flag.starts_with('-') => {}
                _ => return Some(word),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a1ffcf-9322-7b61-8654-8b3cf70c24fa";

    fn params(line: &str) -> ExecuteParams {
        let argv: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let mut found = ExecuteParams::new("");
        read(&argv, &mut found);
        found
    }

    #[test]
    fn the_session_of_a_command_line() {
        for before in [
            "codex exec --json -m m resume",
            "/x/codex exec resume --json -c a=b",
            "codex -a never exec resume",
            "codex --search -c a=b exec --cyber-access-program p resume",
            "node /x/bin/codex.js exec resume",
            "codex exec resume --json --",
        ] {
            for after in ["hi", "-", "-- hi"] {
                let found = params(&format!("{before} {ID} {after}"));
                assert_eq!(found.session_id.as_deref(), Some(ID), "{before} {after}");
                assert!(!found.fork);
            }
        }
        let found = params(&format!("codex exec fork {ID} hi"));
        assert_eq!((found.session_id.as_deref(), found.fork), (Some(ID), true));
    }

    #[test]
    fn a_session_that_is_resumed_without_its_id() {
        for line in [
            "codex exec resume --last hi",
            "codex exec --json resume hi --last",
            "codex exec resume --last",
            "codex exec resume",
            "codex exec fork --last -- hi",
            &format!("codex exec resume --last {ID}"),
        ] {
            let found = params(line);
            assert_eq!(found.session_id, None, "{line}");
            assert!(resumed(&found.extra_args).is_some(), "{line}");
        }
    }

    /// The CLI begins a new session for such a value, and the decoder sees the new id.
    #[test]
    fn a_value_that_is_no_uuid_stands_in_the_place_of_the_session() {
        let found = params("codex exec resume no-such-session hi");
        assert_eq!(found.session_id.as_deref(), Some("no-such-session"));
    }

    #[test]
    fn a_new_session_is_not_taken_for_one_that_is_resumed() {
        for line in [
            "codex exec --json hi",
            &format!("codex exec -- resume {ID}"),
            &format!("codex exec --json resume-me {ID}"),
            &format!("codex exec -m resume {ID}"),
            "codex exec hi resume",
            "codex resume",
            "codex",
            "",
        ] {
            let found = params(line);
            assert_eq!(found.session_id, None, "{line}");
            assert!(
                found.extra_args.is_empty() && found.env.is_empty(),
                "{line}"
            );
        }
    }

    #[test]
    fn recorded_session_ignores_files_of_this_machine() {
        for line in [
            format!("codex exec resume {ID} hi"),
            "codex exec resume --last hi".into(),
        ] {
            let home = params(&line).env.remove("CODEX_HOME").unwrap();
            let sessions = std::path::Path::new(&home).join("sessions");
            assert!(std::fs::read_dir(sessions).is_err(), "{line}");
        }
    }
}
