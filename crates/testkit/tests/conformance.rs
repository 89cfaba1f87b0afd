//! Each check of the suite detects a provider that is wrong on purpose.
#![cfg(test)]

use teamster_testkit::conformance::{Suite, Verdict};

mod servers;
mod toy;

use toy::{Fault, suite};

/// Asserts that this check detects this fault of a provider.
#[track_caller]
fn finds(check: fn(&Suite) -> Verdict, fault: Fault, message: &str) {
    match check(&suite(fault)) {
        Ok(()) => panic!("{fault:?} was not found"),
        Err(failures) => assert!(
            failures
                .messages()
                .iter()
                .any(|found| found.contains(message)),
            "{fault:?}: {failures:?}"
        ),
    }
}

mod of_a_provider_that_is_right {
    use super::*;

    teamster_testkit::conformance_tests!(suite(Fault::Nothing));
}

/// The guide's launch, for a CLI that reads no prompt from stdin.
mod without_stdin {
    use super::*;

    teamster_testkit::conformance_tests!(suite(Fault::ReadsNoStdin));
}

#[test]
fn chunks() {
    finds(Suite::chunks, Fault::KeepsStateBetweenRuns, "byte by byte");
}

#[test]
fn cut_short() {
    let message = "completed (exit code Some(0)), though no line reports the end";
    finds(Suite::cut_short, Fault::EndIsCompleted, message);
}

#[test]
fn text_once() {
    let message = "this text is there twice: \"Hello, world!\"";
    finds(Suite::text_once, Fault::TextTwice, message);
    let message = "the final message is no part of the text: \"done\"";
    finds(Suite::text_once, Fault::AnswerOfItsOwn, message);
}

#[test]
fn texts() {
    let message = "expected \"Hello, world!\", got \"Hello,world!\"";
    finds(Suite::texts, Fault::TextTrimmed, message);
}

#[test]
fn tools() {
    finds(Suite::tools, Fault::NoToolKind, "there are 0");
    finds(
        Suite::tools,
        Fault::ResultWithoutOutput,
        "expected \"no\" in the output",
    );
    finds(
        Suite::tools,
        Fault::FailureNotSeen,
        "expected is_error Some(true), got Some(false)",
    );
    finds(Suite::tools, Fault::ResultDropped, "has no result");
    finds(
        Suite::tools,
        Fault::ResultDropped,
        "completed, without results for [\"t1\", \"t2\"]",
    );
}

#[test]
fn calls() {
    let late = Fault::CallWithResult;
    finds(Suite::calls, late, "not announced before its result");
    let nothing = "expected the calls [(Execute, None)], got []";
    finds(Suite::calls, late, nothing);
    let hidden = "announces_tools: the suite declares that all calls are";
    finds(Suite::calls, Fault::HidesAnnouncing, hidden);
    let kind = "there is no call of kind Execute";
    finds(Suite::calls, Fault::NoToolKind, kind);
}

#[test]
fn statuses() {
    let message = "expected (Failed, Some(Auth)), got (Failed, Some(Internal))";
    finds(Suite::statuses, Fault::ErrorKindOther, message);
}

#[test]
fn truths() {
    finds(
        Suite::truths,
        Fault::FailsWithoutError,
        "failed, without an error",
    );
    finds(
        Suite::truths,
        Fault::CompletesWithError,
        "completed, with errors",
    );
}

#[test]
fn reports() {
    let message = "thinking: the capabilities declare true, the fixtures show false";
    finds(Suite::reports, Fault::SaysThinking, message);
    let hidden = "cost: the capabilities declare false, the fixtures show true";
    finds(Suite::reports, Fault::HidesCost, hidden);
}

#[test]
fn garbled() {
    finds(Suite::garbled, Fault::Unwraps, "a line without a type");
}

#[test]
fn recorded() {
    let message = "there is `--`, which does not protect what follows";
    finds(Suite::recorded, Fault::DashesProtectNothing, message);
}

#[test]
fn parameters() {
    let refused = "model: refused, though it can be honoured: model: Toy has no way";
    finds(Suite::parameters, Fault::SaysModel, refused);
    let taken = "effort: taken, though it cannot be honoured";
    finds(Suite::parameters, Fault::HidesEffort, taken);
    let nameless = "model: refused, but not by its name: InvalidParams there are no models";
    finds(Suite::parameters, Fault::RefusesWithoutName, nameless);
    let forgotten = "system_prompt: the CLI understands system_prompt None";
    finds(Suite::parameters, Fault::ForgetsSystemPrompt, forgotten);
    finds(
        Suite::parameters,
        Fault::ExtraArgsDropped,
        "extra_args: not among the options",
    );
}

#[test]
fn delivery() {
    finds(
        Suite::delivery,
        Fault::PromptTwice,
        "in the arguments and on stdin",
    );
    finds(
        Suite::delivery,
        Fault::PromptNeverOnStdin,
        "in the arguments, not on stdin",
    );
    finds(Suite::delivery, Fault::StdinOpen, "stdin is left open");
    let unread = "it is on stdin, which the CLI does not read";
    finds(Suite::delivery, Fault::PromptOnUnreadStdin, unread);
}

#[test]
fn prompts() {
    finds(
        Suite::prompts,
        Fault::RefusesDashes,
        "refused: prompt: it begins with a dash",
    );
    // The prompt becomes a flag, the value of one, or a sub-command, depending on its text.
    finds(Suite::prompts, Fault::PromptWithoutDashes, "any prompt: ");
    finds(
        Suite::prompts,
        Fault::PromptTwice,
        "the CLI understands prompt ",
    );
    let command = "the CLI understands slash_command true, asked was false";
    finds(Suite::prompts, Fault::PromptAsCommand, command);
    let large = "the prompt is not on stdin, where it belongs";
    finds(Suite::arguments, Fault::PromptNeverOnStdin, large);
}

#[test]
fn arguments() {
    finds(Suite::arguments, Fault::SessionIdAsWord, "SessionId(\"-");
    finds(
        Suite::arguments,
        Fault::DirsJoined,
        "the CLI understands add_dirs [",
    );
    finds(
        Suite::arguments,
        Fault::EnvInArguments,
        "a value of the caller's environment",
    );
    finds(Suite::arguments, Fault::RefusesAll, "this checks nothing");
    finds(Suite::arguments, Fault::ForgetsSystemPrompt, "Append(");
}

#[test]
fn mcp() {
    let taken = "a http server by private, default: refused, though it can be honoured";
    finds(Suite::mcp, Fault::SaysTransport, taken);
    let refused = "a stdio server by private, default: taken, though it cannot be honoured";
    finds(Suite::mcp, Fault::HidesTransport, refused);
    let strict = "mcp_strict: taken, though it cannot be honoured";
    finds(Suite::mcp, Fault::HidesStrict, strict);
    finds(Suite::mcp, Fault::SecretInArguments, "is in the argument");
    finds(
        Suite::mcp,
        Fault::SecretInArguments,
        "any server: the secret",
    );
    finds(
        Suite::mcp,
        Fault::SecretInFile,
        "is in the user's file, at files",
    );
    finds(Suite::mcp, Fault::ServersDropped, "does not reach the CLI");
    let lease = "a file of the user's is changed: true";
    finds(Suite::mcp, Fault::LeaseUnasked, lease);
    let timeout = "startup_timeout: it is taken and nothing comes of it";
    finds(Suite::mcp, Fault::TimeoutDropped, timeout);
}
