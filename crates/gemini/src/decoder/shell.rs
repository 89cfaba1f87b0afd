//! Outcome of a command, from its displayed output.

/// Texts before the output of a cancelled command.
const BEFORE: &[&str] = &[
    "\n\nOutput before cancellation:\n",
    // With `--debug`.
    " Below is the output before it was cancelled:\n",
    " There was no output before it was cancelled.",
];

/// Prefix of the output with `--debug`.
const IN_FULL: &str = "Output: ";

/// Returns whether a command failed. The CLI reports the outcome only if the command printed nothing, so its text
/// must be the whole output: a command may print similar text.
pub(crate) fn failed(output: &str) -> Option<bool> {
    if output.is_empty() {
        return Some(false);
    }
    if output.starts_with(IN_FULL) {
        return failed_in_full(output);
    }
    let by_code = output.strip_prefix("Command exited with code: ");
    let by_signal = output.strip_prefix("Command terminated by signal: ");
    let never_began = output.strip_prefix("Command failed: spawn ");
    let is_failure = by_code.is_some_and(is_failure_code)
        || by_signal.is_some_and(is_signal)
        || never_began.is_some_and(|why| !why.contains('\n'))
        || is_cancelled(output);
    is_failure.then_some(true)
}

/// Returns whether the CLI cancelled the command.
fn is_cancelled(output: &str) -> bool {
    let timeout = "Command was automatically cancelled because it exceeded the timeout of ";
    let after_timeout = || {
        let (minutes, rest) = output
            .strip_prefix(timeout)?
            .split_once(" minutes without output.")?;
        minutes.parse::<f64>().ok().map(|_| rest)
    };
    let rest = output
        .strip_prefix("Command cancelled by user.")
        .or_else(|| output.strip_prefix("Command was cancelled by user before it could complete."))
        .or_else(after_timeout);
    rest.is_some_and(|rest| rest.is_empty() || BEFORE.iter().any(|words| rest.starts_with(words)))
}

/// Returns whether a command failed, from the display with `--debug`: the complete output for the model, followed by
/// lines about the outcome.
fn failed_in_full(output: &str) -> Option<bool> {
    let rest = output.strip_prefix(IN_FULL)?;
    let mut lines = rest.split('\n').rev();
    let group = lines.next()?.strip_prefix("Process Group PGID: ")?;
    group.parse::<u32>().ok()?;
    let mut end = lines.skip_while(|line| line.starts_with("Background PIDs: "));
    let last = end.next().unwrap_or_default();
    let by_code = last.strip_prefix("Exit Code: ");
    let by_signal = last.strip_prefix("Signal: ");
    if by_code.is_some_and(is_failure_code) || by_signal.is_some_and(is_signal) {
        Some(true)
    } else if last.starts_with("Error: ") {
        // A line of the CLI, or the last line of the command.
        None
    } else {
        Some(false)
    }
}

/// Returns whether the text is a number other than 0, which the CLI does not report.
fn is_failure_code(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|code| code != 0)
}

/// Returns whether the text is a number, or a name such as `SIGKILL`.
fn is_signal(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    };
    is_failure_code(text) || text.strip_prefix("SIG").is_some_and(is_name)
}
