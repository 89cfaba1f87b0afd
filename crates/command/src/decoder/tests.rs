use teamster_core::provider::{RunAssembler, grammar};
use teamster_core::{AgentEvent, RunResult, RunStatus};

use super::*;

fn run(settings: &str, output: &[u8], code: i32) -> (Vec<AgentEvent>, RunResult) {
    let settings: CommandSettings = toml::from_str(settings).unwrap();
    let decoder = TextDecoder::new(Arc::new(settings), None);
    let mut assembler = RunAssembler::new(Box::new(decoder)).include_native(true);
    let mut out = Events::new();
    for line in output.split(|byte| *byte == b'\n') {
        assembler.line(line, &mut out);
    }
    assembler.finish(Exit::new(code), 0, &mut out);
    let events: Vec<_> = out.drain().collect();
    grammar::check(&events).unwrap();
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("{events:#?}");
    };
    let result = (*done.result).clone();
    (events, result)
}

const PLAIN: &str = "command = 'agent'";

#[test]
fn lines_are_text_blank_ones_and_json_too() {
    let (_, result) = run(PLAIN, b"\nHi.\n\n{\"a\": 1}\n  end", 0);
    assert_eq!(result.text, "Hi.\n\n{\"a\": 1}\n  end");
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(
        (result.diagnostics.malformed, result.diagnostics.unknown),
        (0, 0)
    );
}

#[test]
fn another_exit_code_than_0_is_a_failure() {
    let (_, result) = run(PLAIN, b"half", 3);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.text, "half");
    assert_eq!(result.errors[0].code, ErrorCode::CliExitError);
}

#[test]
fn colours_and_lines_that_were_written_over_are_not_there() {
    let (_, result) = run(PLAIN, b"10%\r100%\r\n\x1b[31mred\x1b[0m", 0);
    assert_eq!(result.text, "100%\nred");
}

#[test]
fn binary_output_is_an_error_and_other_bytes_are_a_notice() {
    let (events, result) = run(PLAIN, b"text\n\x7fELF\0\x01\n\0\0", 0);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::Protocol);
    assert!(result.errors[0].message.contains("2 lines"));
    assert_eq!((events.len(), result.text.as_str()), (4, "text"));
    let (events, result) = run(PLAIN, b"caf\xe9\n\xff", 0);
    assert_eq!(result.text, "caf\u{fffd}\n\u{fffd}");
    let notices = events.iter().filter(|event| event.type_name() == "notice");
    assert_eq!(notices.count(), 1);
}

/// Lines in the format of Aider 0.86.2, shortened.
#[test]
fn patterns_read_figures_errors_and_notices() {
    let settings = r"
        command = 'aider'
        tokens = '^Tokens: (?<input>[\d.,]+[kM]?) sent, (?<output>[\d.,]+[kM]?) received'
        cost = 'Cost: \$(?<cost>[\d.]+) message'
        notices = ['^Aider v']
        errors = [
            { pattern = '^litellm\.AuthenticationError', kind = 'auth' },
            { pattern = '^litellm\.\w*Error' },
        ]
    ";
    let output = b"Aider v0.86.2\nDone.\nTokens: 1.2k sent, 34 received. Cost: $0.01 message, $0.02 session.\n\
        Tokens: 300 sent, 6 received.";
    let (events, result) = run(settings, output, 0);
    assert_eq!(events[0].type_name(), "notice");
    assert!(result.text.starts_with("Done."));
    let usage = result.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (Some(1500), Some(40))
    );
    assert_eq!(result.total_cost_usd, Some(0.01));

    let (_, result) = run(settings, b"litellm.AuthenticationError: no key\nmore", 0);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::Auth);
    let (_, result) = run(settings, b"litellm.RateLimitError: rate limit", 0);
    assert_eq!(result.errors[0].kind, ErrorKind::RateLimit);
}

#[test]
fn a_pattern_that_is_none_is_an_error_of_the_settings() {
    let error = toml::from_str::<CommandSettings>("command = 'a'\ntokens = '('").unwrap_err();
    assert!(error.to_string().contains("tokens"), "{error}");
    assert!(toml::from_str::<CommandSettings>("command = 'a'\nother = 1").is_err());
}
