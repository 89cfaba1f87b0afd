//! Random lines: the decoder never panics and the stream keeps its grammar.

use proptest::prelude::*;
use teamster_core::provider::{Events, RunAssembler, grammar};

use super::*;

/// Generates lines of every type that the CLI prints, and of some others.
fn lines() -> impl Strategy<Value = String> {
    let id = 0u32..4;
    let text = prop_oneof!["[ab]{0,3}", ".{0,10}"];
    let stage = prop_oneof![Just("started"), Just("updated"), Just("completed")];
    let kind = prop_oneof![
        Just("agent_message"),
        Just("reasoning"),
        Just("command_execution"),
        Just("file_change"),
        Just("mcp_tool_call"),
        Just("web_search"),
        Just("todo_list"),
        Just("collab_tool_call"),
        Just("error"),
        Just("something_new"),
    ];
    prop_oneof![
        1 => Just(thread()),
        1 => Just(turn()),
        2 => Just(reconnect(1)),
        1 => text.prop_map(|text| error(&text)),
        1 => Just(failed("x")),
        1 => any::<(u64, u64, u64)>().prop_map(|(i, c, o)| end(i, c, o)),
        8 => (stage, kind, id, "[ab]{0,3}").prop_map(|(stage, kind, id, text)| item(stage, &json!({
            "id": format!("item_{id}"), "type": kind, "text": text, "message": text,
            "query": text, "tool": text, "server": "s", "command": text, "status": "completed",
            "changes": [{"path": text, "kind": "add"}], "items": [{"text": text}],
        }))),
        1 => ".{0,40}".prop_map(|text| format!("{{{text}")),
    ]
}

proptest! {
    #[test]
    fn any_lines_give_a_stream(
        lines in proptest::collection::vec((lines(), any::<proptest::sample::Index>(), any::<u8>(), 0u8..8), 0..30),
        code in 0i32..3,
    ) {
        let lines: Vec<Vec<u8>> = lines
            .into_iter()
            .map(|(line, at, byte, garble)| {
                let mut line = line.into_bytes();
                if garble == 0 {
                    let at = at.index(line.len());
                    line[at] = byte;
                } else if garble == 1 {
                    line.truncate(at.index(line.len()));
                }
                line
            })
            .collect();
        let mut assembler = RunAssembler::new(Box::new(CodexDecoder::new())).include_native(true);
        let mut out = Events::new();
        for line in &lines {
            assembler.line(line, &mut out);
        }
        assembler.finish(exit(code), 0, &mut out);
        let events: Vec<_> = out.drain().collect();
        prop_assert_eq!(grammar::check(&events), Ok(()));
    }
}
