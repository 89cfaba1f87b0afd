//! Prompts that begin with a dash, such as a Markdown list.
//!
//! clap parses them as flags, and `--` is taken: arguments after it go to the agent's CLI. So a prompt that
//! cannot be a flag is marked before clap sees it.

use std::convert::Infallible;
use std::ffi::OsString;

use clap::Args;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::args::RunArgs;
use crate::args::RemoteArgs;

/// The prefix of a marked prompt. Process arguments never contain NUL, so it is unambiguous.
const MARK: char = '\0';

/// Removes the mark from a prompt.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a value parser")]
pub(crate) fn unmarked(text: &str) -> Result<String, Infallible> {
    Ok(text.strip_prefix(MARK).unwrap_or(text).to_owned())
}

/// Marks the prompt of `teamster run` if it looks like a flag but cannot be one.
///
/// `command` is the index of the word `run`.
pub(crate) fn mark(mut args: Vec<OsString>, command: usize) -> Vec<OsString> {
    if let Some(prompt) = prompt_index(&args, command) {
        let mut marked = OsString::from(MARK.to_string());
        marked.push(&args[prompt]);
        args[prompt] = marked;
    }
    args
}

/// Returns the index of a prompt that needs the mark. The prompt is the positional argument after the provider.
fn prompt_index(args: &[OsString], command: usize) -> Option<usize> {
    // Almost always there is none, and the list of the flags takes longer than parsing the arguments.
    if !args[command..].iter().any(has_dash_and_space) {
        return None;
    }
    let flags = Flags::new();
    let mut provider = false;
    let mut args = args.iter().enumerate().skip(command + 1);
    while let Some((index, arg)) = args.next() {
        let arg = arg.to_str()?;
        if arg == "--" {
            return None;
        }
        let is_flag = arg.starts_with('-') && arg != "-";
        if is_flag && !(provider && flags.cannot_match(arg)) {
            if flags.takes_next(arg) {
                args.next();
            }
        } else if provider {
            return is_flag.then_some(index);
        } else {
            provider = true;
        }
    }
    None
}

fn has_dash_and_space(arg: &OsString) -> bool {
    arg.to_str()
        .is_some_and(|arg| arg.starts_with('-') && arg.contains(char::is_whitespace))
}

/// The flags of `teamster run`.
struct Flags(clap::Command);

impl Flags {
    fn new() -> Self {
        let mut command = RunArgs::augment_args(clap::Command::new("run"));
        command = RemoteArgs::augment_args(command);
        command.build();
        Self(command)
    }

    /// Returns whether the argument cannot be a flag: flag names have no white space.
    fn cannot_match(&self, arg: &str) -> bool {
        let Some(space) = arg.find(char::is_whitespace) else {
            return false;
        };
        match arg.strip_prefix("--") {
            Some(_) => !arg[..space].contains('='),
            // A value may follow its letter at once, as in `-C/my files`.
            None => !arg[1..]
                .chars()
                .map_while(|c| self.short(c))
                .any(|takes| takes),
        }
    }

    /// Returns whether the next argument is the value of this flag.
    fn takes_next(&self, arg: &str) -> bool {
        match arg.strip_prefix("--") {
            Some(name) => self
                .0
                .get_arguments()
                .filter(|known| known.get_action().takes_values())
                .any(|known| {
                    let others = known.get_all_aliases().unwrap_or_default();
                    known.get_long() == Some(name) || others.contains(&name)
                }),
            None => {
                let mut letters = arg[1..].chars();
                let last = letters.next_back().and_then(|c| self.short(c)) == Some(true);
                last && letters.all(|c| self.short(c) == Some(false))
            }
        }
    }

    /// Returns whether the short flag takes a value; `None` if there is no such flag.
    fn short(&self, letter: char) -> Option<bool> {
        let flag = self
            .0
            .get_arguments()
            .find(|known| known.get_short() == Some(letter))?;
        Some(flag.get_action().takes_values())
    }
}

/// Replaces clap's tip for arguments that begin with a dash.
///
/// clap suggests `--`, but `teamster run` passes everything after `--` to the agent's CLI.
pub(crate) fn replace_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument
        && error.remove(ContextKind::Suggested).is_some()
        && error.get(ContextKind::SuggestedArg).is_none()
    {
        let tip = StyledStr::from(
            "a prompt that begins with a dash goes to stdin (`-`) or into --prompt-file",
        );
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{Cli, Command};

    fn read(args: &[&str]) -> Result<Option<String>, String> {
        let args = ["teamster", "run"].iter().chain(args).map(OsString::from);
        match Cli::read(args) {
            Ok(cli) => match cli.command {
                Command::Run(run) => Ok(run.prompt),
                other => panic!("{other:?}"),
            },
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_prompt_may_begin_with_a_dash_if_it_cannot_be_a_flag() {
        for prompt in [
            "- fix this list\n- and that",
            "-- what is this?",
            "--json does not work, a=b",
            "-v is ignored",
            "-q\tdoes nothing",
            "-é a",
        ] {
            let expected = Ok(Some(prompt.to_owned()));
            assert_eq!(read(&["claude", prompt]), expected);
            assert_eq!(read(&["claude", prompt, "--json"]), expected);
            assert_eq!(read(&["claude", "--json", prompt, "--", "-x y"]), expected);
            assert_eq!(read(&["-qm", "some model", "claude", prompt]), expected);
            let append = ["claude", "--append-system-prompt", "- be brief", prompt];
            assert_eq!(read(&append), expected);
        }
    }

    #[test]
    fn the_remote_option_may_precede_the_command() {
        for server in [&["--remote", "unix:/s"][..], &["--remote=unix:/s"]] {
            let args = [
                &["teamster"],
                server,
                &["run", "claude", "- a\n- b", "--json"],
            ]
            .concat();
            let args: Vec<_> = args.into_iter().map(OsString::from).collect();
            let cli = Cli::read(args).unwrap();
            assert_eq!(cli.remote.remote.as_deref(), Some("unix:/s"));
            let Command::Run(run) = cli.command else {
                panic!("{:?}", cli.command);
            };
            assert_eq!(run.prompt.as_deref(), Some("- a\n- b"));
        }
    }

    #[test]
    fn an_argument_that_can_be_a_flag_is_one() {
        for (args, prompt) in [
            (&["claude", "x", "-C/my files"][..], "x"),
            (&["claude", "-qm some model", "x"], "x"),
            (&["claude", "--model=some model", "x"], "x"),
            (
                &["claude", "--append-system-prompt", "- be brief", "x"],
                "x",
            ),
            (&["claude", "x", "--", "- y"], "x"),
            (&["claude", "-"], "-"),
        ] {
            assert_eq!(read(args), Ok(Some(prompt.to_owned())), "{args:?}");
        }
    }

    #[test]
    fn other_commands_keep_their_tips() {
        let args = ["teamster", "--json"].map(OsString::from);
        let error = Cli::read(args).unwrap_err().to_string();
        assert!(!error.contains("--prompt-file"), "{error}");
    }

    #[test]
    fn an_unexpected_argument_is_reported_with_the_tip_for_prompts() {
        for args in [&["claude", "-5"][..], &["claude", "x", "- y"]] {
            let error = read(args).unwrap_err();
            assert!(error.contains("unexpected argument '-"), "{error}");
            assert!(
                error.contains("--prompt-file") && !error.contains("'-- "),
                "{error}"
            );
        }
        let error = read(&["claude", "x", "--modle", "y"]).unwrap_err();
        assert!(error.contains("'--model'"), "{error}");
        assert!(!error.contains("'-- "), "{error}");
    }
}
