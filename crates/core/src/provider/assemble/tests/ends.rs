//! Ends without output, and with denied calls.

use super::*;

/// Returns the status and the errors of a run with these lines.
fn silent(
    adjust: impl FnOnce(RunAssembler) -> RunAssembler,
    lines: &[&str],
) -> (RunStatus, Vec<(ErrorKind, bool)>) {
    let mut assembler = adjust(RunAssembler::new(Box::new(Scripted::default())));
    let mut out = Events::new();
    for line in lines {
        assembler.line(line.as_bytes(), &mut out);
    }
    assembler.finish(exit(0, ""), 1, &mut out);
    let events: Vec<_> = out.drain().collect();
    grammar::check(&events).unwrap();
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("{events:?}");
    };
    let errors = done.result.errors.iter();
    let errors = errors.map(|error| (error.kind, error.retryable));
    (done.result.status, errors.collect())
}

#[test]
fn a_success_without_any_output_is_a_failure() {
    let end = r#"{"end":false}"#;
    let failed = (RunStatus::Failed, vec![(ErrorKind::Protocol, true)]);
    let completed = (RunStatus::Completed, vec![]);
    for resumes in [false, true] {
        let silent = |lines: &[&str]| silent(|it| it.resumes(resumes), lines);
        assert_eq!(silent(&[end]), failed);
        assert_eq!(silent(&[r#"{"t":" "}"#, end]), failed);
        // Withdrawn text is no answer.
        let withdrawn = [r#"{"m":"a","t":"half"}"#, r#"{"x":"a"}"#, end];
        assert_eq!(silent(&withdrawn), failed);
        for output in [
            r#"{"t":"yes"}"#,
            r#"{"u":"1"}"#,
            r#"{"think":"hm"}"#,
            r#"{"file":"a"}"#,
        ] {
            assert_eq!(silent(&[output, end]), completed, "{output}");
        }
        let (status, errors) = silent(&[r#"{"end":true}"#]);
        assert_eq!((status, errors), (RunStatus::Failed, vec![]));
    }
    assert_eq!(silent(|it| it.may_be_silent(true), &[end]), completed);
}

#[test]
fn the_error_of_a_success_without_output_has_the_end_of_stderr() {
    let (_, result) = run(&[r#"{"end":false}"#], exit(0, "as always\nno disk\n"));
    assert_eq!(
        result.errors[0].message,
        "the CLI reported success, but there is no answer: no text, no reasoning and no tool use; stderr: no disk"
    );
}

#[test]
fn run_with_only_denied_calls_is_incomplete() {
    use RunStatus::{Completed, Incomplete};
    let (one, other) = (r#"{"u":"1"}"#, r#"{"u":"2"}"#);
    let (no, no_other) = (r#"{"no":"1"}"#, r#"{"no":"2"}"#);
    let without_id = r#"{"no":""}"#;
    let (text, end) = (r#"{"t":"I may not."}"#, r#"{"end":false}"#);
    for (lines, expected) in [
        (&[one, no, text, end][..], Incomplete),
        (&[one, no, end], Incomplete),
        (&[one, other, no, no_other, text, end], Incomplete),
        (&[one, without_id, text, end], Incomplete),
        // A call that is not reported.
        (&[no, text, end], Incomplete),
        (&[one, other, without_id, without_id, text, end], Incomplete),
        (&[one, other, no, without_id, text, end], Incomplete),
        // Something was done.
        (&[one, other, without_id, text, end], Completed),
        (&[one, other, no, text, end], Completed),
        (&[one, no, r#"{"file":"a"}"#, text, end], Completed),
        // There is no text about what was done.
        (&[one, other, no, end], Incomplete),
        (&[one, text, end], Completed),
    ] {
        let (status, errors) = silent(|it| it, lines);
        assert_eq!((status, errors), (expected, vec![]), "{lines:?}");
    }
}

#[test]
fn the_error_of_the_end_is_by_what_explains_it() {
    use ErrorCode::{CliExitError, CliStderr, StreamEndedEarly};
    let text = &[r#"{"t":"x"}"#][..];
    let known = "No conversation";
    let killed = |stderr: &str| Exit {
        code: None,
        signal: Some("SIGKILL".into()),
        ..exit(0, stderr)
    };
    let unknown = Exit {
        code: None,
        ..exit(0, "")
    };
    let lingering = Exit {
        stop: Some(Stop::Lingering),
        ..exit(1, known)
    };
    for (lines, exit, code, message) in [
        (text, exit(0, known), CliStderr, known),
        (&[], exit(0, "noise"), CliStderr, "noise"),
        (text, exit(0, "noise"), StreamEndedEarly, "; stderr: noise"),
        (text, exit(1, "noise"), CliStderr, "noise"),
        (text, exit(1, ""), CliExitError, "exited with code 1 before"),
        (text, killed("noise"), CliExitError, "was ended by SIGKILL"),
        (text, killed(known), CliStderr, known),
        (text, unknown, CliExitError, "ended in an unknown way"),
        // It was stopped, so its exit explains nothing.
        (text, lingering, StreamEndedEarly, known),
    ] {
        let (_, result) = run(lines, exit);
        assert_eq!(codes(&result), [code], "{message}");
        let found = &result.errors[0];
        assert!(found.message.contains(message), "{}", found.message);
        assert_eq!(
            result.status == RunStatus::Incomplete,
            code == StreamEndedEarly
        );
    }
}
