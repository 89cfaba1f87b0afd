//! Cause of a failure before the first line of a CLI.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use teamster_core::provider::Stop;
use teamster_core::text::{error_of_stack, excerpt};
use teamster_core::{ErrorDetail, ErrorKind};

use crate::driver::Driver;
use crate::node::node_problem;
use crate::program::not_found;
use crate::reading::Reader;

/// Shells, as the program of a run. Their exit codes are those of the commands in them.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "fish"];
/// Exit codes of shells, `env` and shims for a program that cannot be executed or does not exist.
const SHELL_CODES: [i32; 2] = [126, 127];
/// Words on stderr about a program that cannot start, with any exit code, in lower case: of CLIs about an old Node.js,
/// of npm's launchers, of asdf and mise, and of the dynamic loader.
const WORDS: [&str; 6] = [
    "requires node",
    "unsupported node",
    "missing optional dependency",
    "no version is set for",
    "error while loading shared libraries",
    "version `glibc_",
];
/// Words of Node.js about a program without its files, in lower case, if it ends with them.
const WORDS_OF_NODE: [&str; 2] = ["cannot find module", "err_module_not_found"];
/// Beginning of the last line of Node.js after an error that nothing has caught, in lower case.
const END_OF_NODE: &str = "node.js v";
/// Maximum bytes of stderr in the error.
const MOST_SHOWN: usize = 600;

/// Returns the reason for which a program did not start, by the end of its process. `None` if it started.
fn not_started(code: Option<i32>, stderr: &str) -> Option<String> {
    let code = code?;
    let lower = stderr.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    let last = lower.trim_end().lines().next_back().unwrap_or_default();
    // MCP servers and extensions write to the same stderr: the CLI may have failed for a reason of its own.
    let by_words = has(&WORDS) || has(&WORDS_OF_NODE) && last.starts_with(END_OF_NODE);
    let is_known =
        SHELL_CODES.contains(&code) || by_words && ErrorKind::of_message(stderr).is_none();
    is_known.then(|| match stderr.trim() {
        "" => format!("it ended with exit code {code}"),
        stderr => excerpt(error_of_stack(stderr).unwrap_or(stderr), MOST_SHOWN),
    })
}

impl<R: Reader> Driver<R> {
    /// Returns what a CLI that failed before its first line has printed.
    pub(crate) fn early_failure(&self) -> Option<String> {
        let has_failed = self.tree.status().is_some_and(|status| !status.success());
        (has_failed && !self.clock.has_line).then(|| self.tail.text())
    }

    /// Returns the reason of an early failure, if it is a container or a CLI that was not started or a Node.js that is too
    /// old, or a request to stop the run, which does not wait for the answer of Node.js.
    pub(crate) async fn explained(&mut self, stderr: &str) -> Option<Stop> {
        let code = self.tree.status().and_then(|status| status.code());
        if let Some(container) = &self.container {
            let error = code.and_then(|code| container.not_started(code, stderr));
            return error.map(Stop::Failed);
        }
        let (program, path) = self.program.clone();
        let problem = {
            // Dropping it ends the process that it has asked.
            let mut problem = pin!(node_problem(&program, stderr, path.as_deref()));
            poll_fn(|cx| {
                if self.reader.poll(cx) {
                    // Only a poll without news registers the task.
                    cx.waker().wake_by_ref();
                }
                if self.stop_wanted().is_some() || self.reader.is_interrupting() {
                    return Poll::Ready(None);
                }
                problem.as_mut().poll(cx)
            })
            .await
        };
        let explained = problem.map(|problem| {
            let error = not_found(format!("{} {problem}", program.display()));
            Stop::Failed(error.detail(ErrorDetail::missing_program("node", "")))
        });
        let explained = explained.or_else(|| self.stop_wanted());
        let is_shell = SHELLS.iter().any(|shell| program.ends_with(shell));
        explained.or_else(|| {
            let reason = not_started(code, stderr).filter(|_| !is_shell)?;
            let program = program.display();
            Some(Stop::Failed(not_found(format!(
                "{program} did not start: {reason}"
            ))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by hand, after the words of these programs.
    #[test]
    fn program_that_did_not_start_is_known_by_its_end() {
        for (code, stderr, expected) in [
            (
                127,
                "sh: 1: exec: claude-real: not found\n",
                Some("sh: 1: exec: claude-real: not found"),
            ),
            (126, "", Some("it ended with exit code 126")),
            (
                1,
                "mise ERROR No version is set for shim: kimi\n",
                Some("mise ERROR No version is set for shim: kimi"),
            ),
            (
                1,
                "node:internal/modules/cjs/loader:1228\n  throw err;\n\nError: Cannot find module '/x/cli.js'\n    at f (node:x:1)\n\nNode.js v22.1.0\n",
                Some("Error: Cannot find module '/x/cli.js'"),
            ),
            (
                1,
                "GitHub Copilot CLI requires Node.js v22 or newer. You are using v18.19.0",
                Some("GitHub Copilot CLI requires Node.js v22 or newer. You are using v18.19.0"),
            ),
            (
                1,
                "claude: /lib/libc.so.6: version `GLIBC_2.38' not found (required by claude)",
                Some("claude: /lib/libc.so.6: version `GLIBC_2.38' not found (required by claude)"),
            ),
            (1, "Error: no such model", None),
            (
                1,
                "[mcp tiny] Error: Cannot find module '/x/tiny.js'\n[mcp tiny] Node.js v22.1.0\nNot logged in",
                None,
            ),
            (
                1,
                "[mcp tiny] requires Node.js 24\nError: invalid x-api-key",
                None,
            ),
            (1, "Node.js version: v22.1.0\nNo key is set", None),
            (1, "", None),
        ] {
            assert_eq!(
                not_started(Some(code), stderr).as_deref(),
                expected,
                "{code} {stderr}"
            );
        }
        assert_eq!(not_started(None, "killed"), None);
    }
}
