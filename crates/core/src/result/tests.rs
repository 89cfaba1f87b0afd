use super::*;
use crate::{AgentEvent, Retract, Text, TextLedger};

fn texts(result: &RunResult) -> Vec<(Option<&str>, &str)> {
    (result.messages().iter())
        .map(|message| match &message.text {
            Cow::Borrowed(text) => (message.message_id.map(|id| &**id), *text),
            Cow::Owned(text) => panic!("copied: {text}"),
        })
        .collect()
}

#[test]
fn messages_come_back_from_the_wire_without_retracted_ones() {
    let mut ledger = TextLedger::default();
    for (id, text) in [("a", "I wr"), ("lost", "Hm"), ("a", "ite."), ("b", "Grüße")] {
        ledger.event(&AgentEvent::Text(Text::new(text).message_id(id)));
    }
    let mut result = RunResult::default();
    (result.text, result.pieces) = (ledger.text().to_owned(), ledger.text_pieces());
    let read = |result: &RunResult| -> Vec<(String, String)> {
        let wire = serde_json::to_string(result).unwrap();
        let result: RunResult = serde_json::from_str(&wire).unwrap();
        let pair = |m: &Message<'_>| (m.message_id.unwrap().to_string(), m.text.to_string());
        result.messages().iter().map(pair).collect()
    };
    let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    let (a, b) = (pair("a", "I write."), pair("b", "Grüße"));
    assert_eq!(read(&result), [a.clone(), pair("lost", "Hm"), b.clone()]);

    ledger.event(&AgentEvent::Retract(Retract::new("lost")));
    (result.text, result.pieces) = (ledger.text().to_owned(), ledger.text_pieces());
    assert_eq!(read(&result), [a, b]);
    assert_eq!(result.text, "I write.Grüße");
}

#[test]
fn text_with_other_pieces_is_one_message() {
    let mut result = RunResult::default();
    assert_eq!(texts(&result), []);
    result.pieces = vec![TextPiece::new(3).message_id("a")];
    for text in ["", "ab", "abcd", "aé\u{e9}"] {
        result.text = text.to_owned();
        let single = Vec::from_iter((!text.is_empty()).then_some((None, text)));
        assert_eq!(texts(&result), single);
    }
    result.text = "abc".to_owned();
    assert_eq!(texts(&result), [(Some("a"), "abc")]);
}

fn error(code: ErrorCode, kind: ErrorKind) -> AgentError {
    AgentError::new(code, kind, format!("{code} {kind}"))
}

#[test]
fn the_error_of_a_run_is_the_one_that_ended_it() {
    use ErrorCode::{
        Aborted, CliError, CliStderr, Io, StartupTimeout, StreamEndedEarly, WatchdogTimeout,
    };
    use ErrorKind::{Auth, Internal, Mcp, Network, Protocol, Timeout};
    let mcp = (CliError, Mcp);
    let network = (CliError, Network);
    let vague = (CliError, Internal);
    let stderr = (CliStderr, Auth);
    let watchdog = (WatchdogTimeout, Timeout);
    let startup = (StartupTimeout, Timeout);
    let aborted = (Aborted, ErrorKind::Aborted);
    for (status, errors, expected) in [
        (RunStatus::Completed, &[network][..], None),
        (RunStatus::Failed, &[], None),
        // The CLI's last one with a kind of its own.
        (RunStatus::Failed, &[mcp, network], Some(network)),
        (RunStatus::Failed, &[stderr, mcp, vague], Some(mcp)),
        // Else the first one with a kind, else the first.
        (RunStatus::Failed, &[vague, stderr, startup], Some(stderr)),
        (RunStatus::Failed, &[vague, (Io, Internal)], Some(vague)),
        (
            RunStatus::Incomplete,
            &[(StreamEndedEarly, Protocol)],
            Some((StreamEndedEarly, Protocol)),
        ),
        // A stop counts before what the CLI has reported.
        (RunStatus::Aborted, &[network, aborted], Some(aborted)),
        (RunStatus::Aborted, &[network], Some(network)),
        (
            RunStatus::TimedOut,
            &[network, startup, watchdog],
            Some(watchdog),
        ),
        (RunStatus::TimedOut, &[network, startup], Some(startup)),
        (RunStatus::TimedOut, &[network], Some(network)),
        (RunStatus::Failed, &[network, watchdog], Some(network)),
    ] {
        let all = errors.iter().map(|(code, kind)| error(*code, *kind));
        let result = RunResult::default().status(status).errors(all.collect());
        let found = result.error().map(|error| (error.code, error.kind));
        assert_eq!(found, expected, "{status} {errors:?}");
        // A run that did not succeed has a failure.
        assert_eq!(result.failure().is_none(), status == RunStatus::Completed);
        if expected.is_some() {
            assert_eq!(result.failure().as_ref(), result.error());
        }
        assert_eq!(result.clone().into_result().err(), result.failure());
    }
}

#[test]
fn failure_without_an_error_is_of_the_denials_or_the_status() {
    let denials = ["Bash", "Edit"].map(PermissionDenial::new).to_vec();
    let denied = RunResult::default().permission_denials(denials);
    for (result, kind, message) in [
        (
            denied.clone().status(RunStatus::Incomplete),
            ErrorKind::Permission,
            "nothing was done; denied tools: Bash, Edit",
        ),
        (
            denied.status(RunStatus::Failed),
            ErrorKind::Protocol,
            "the run ended without success and without an error",
        ),
        (
            RunResult::default().status(RunStatus::Incomplete),
            ErrorKind::Protocol,
            "the run ended without success and without an error",
        ),
    ] {
        let failure = result.failure().unwrap();
        assert_eq!((failure.kind, &*failure.message), (kind, message));
    }
}

#[test]
fn the_answer_is_the_last_message_or_the_text() {
    let result = RunResult::default();
    assert_eq!((result.answer(), result.is_success()), (None, false));
    let result = result.text("one two");
    assert_eq!(result.answer(), Some("one two"));
    let result = result.final_message("two").status(RunStatus::Completed);
    assert_eq!((result.answer(), result.is_success()), (Some("two"), true));
}
