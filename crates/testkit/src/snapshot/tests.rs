//! Rendering of hand-made events: one of each, every field once present and once absent.

use insta::assert_snapshot;
use serde_json::{Value, json};
use teamster_core::AgentEvent;

use super::{diff, render, with_header, without_header};

/// Creates events from their wire format, which is shorter than their types.
fn events(values: impl IntoIterator<Item = Value>) -> Vec<AgentEvent> {
    let event = |value| serde_json::from_value(value).unwrap();
    values.into_iter().map(event).collect()
}

fn text(message: &str, text: &str) -> Value {
    json!({"type": "text", "text": text, "messageId": message})
}

#[test]
fn events_with_all_their_fields() {
    let session = "0b9f1c2e-1111-4222-8333-0123456789ab";
    let rendered = render(&events([
        json!({"type": "session", "sessionId": session, "model": "opus[1m]", "tools": ["Bash", "Read"],
               "mcpServers": [{"name": "my db", "status": "failed"}]}),
        json!({"type": "thinking", "text": "Hm.\nWell.", "messageId": "msg_1"}),
        json!({"type": "text", "text": "sub", "messageId": "msg_2", "parentToolId": "toolu_001"}),
        json!({"type": "retract", "messageId": "msg_1"}),
        json!({"type": "tool_use", "toolName": "mcp__db__q", "toolId": "toolu_002", "kind": "mcp",
               "mcp": {"server": "db", "tool": "q"}, "parentToolId": "toolu_001",
               "input": {"id": session, "delay_ms": 17}}),
        json!({"type": "tool_result", "toolId": "toolu_002", "output": "a\tb", "isError": true,
               "parentToolId": "toolu_001"}),
        json!({"type": "file_change", "path": "/tmp/ws/new file.txt", "change": "add", "toolId": "toolu_002"}),
        json!({"type": "plan", "entries": [{"content": "one", "status": "completed"},
                                           {"content": "two", "status": "in_progress"}]}),
        json!({"type": "permission", "toolName": "Write", "toolId": "toolu_002",
               "decision": "denied", "reason": "not granted"}),
        json!({"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3,
                                          "cacheWriteTokens": 4, "reasoningTokens": 0}}),
        json!({"type": "retry", "number": 1, "maxAttempts": 10, "delayMs": 579,
               "error": {"message": "busy", "code": "CLI_ERROR", "kind": "overloaded",
                         "retryable": true, "retryAfterMs": 2000}}),
        json!({"type": "rate_limit", "status": "allowed_warning", "kind": "five_hour",
               "utilization": 0.5, "resetsAt": 1_795_293_727_795_u64}),
        json!({"type": "notice", "level": "warning", "message": "it \"spoke\"", "source": "stdout"}),
        json!({"type": "unknown", "native": {"uuid": "x", "type": "system", "subtype": "new", "a b": 1}}),
        json!({"type": "turn_end", "stopReason": "end_turn", "isError": false,
               "usage": {"inputTokens": 1}, "costUsd": 0.000_685}),
        json!({"type": "error", "message": "no credit", "code": "CLI_ERROR", "kind": "quota",
               "retryable": false, "resetsAt": 1_795_293_727_795_u64}),
    ]));
    assert_snapshot!(rendered, @r#"
    session      session#1 model=opus[1m] tools=2[Bash Read] mcp=["my db":failed]
    thinking     msg#1 "Hm.\nWell."
    text         msg#2 in=tool#1 "sub"
    retract      msg#1
    tool_use     tool#2 in=tool#1 mcp__db__q mcp mcp=db/q {"id":"session#1","delay_ms":<ms>}
    tool_result  tool#2 in=tool#1 error "a\tb"
    file_change  add "/tmp/ws/new file.txt" tool#2
    plan         [completed] "one" [in_progress] "two"
    permission   denied Write tool#2 "not granted"
    usage        in=1 out=2 cacheRead=3 cacheWrite=4 reasoning=0
    retry        1/10 delay=<ms> CLI_ERROR overloaded retryable retryAfter=2000ms "busy"
    rate_limit   allowed_warning kind=five_hour utilization=0.5 resetsAt=<time>
    notice       warning stdout "it \"spoke\""
    unknown      system/new {uuid,"a b"}
    turn_end     ok end_turn in=1 $0.000685
    error        CLI_ERROR quota final resetsAt=<time> "no credit"
    "#);
}

#[test]
fn events_with_no_more_than_they_need() {
    let rendered = render(&events([
        json!({"type": "session", "sessionId": "s"}),
        json!({"type": "text", "text": ""}),
        json!({"type": "tool_use", "toolName": "", "toolId": "1", "kind": "other", "input": null}),
        json!({"type": "tool_result", "toolId": "1", "output": ""}),
        json!({"type": "tool_result", "toolId": "2", "output": "", "isError": false}),
        json!({"type": "file_change", "path": "x", "change": "move"}),
        json!({"type": "plan", "entries": []}),
        json!({"type": "permission", "toolName": "Write", "decision": "requested"}),
        json!({"type": "usage", "usage": {}}),
        json!({"type": "rate_limit", "status": "rejected"}),
        json!({"type": "unknown", "native": {"type": 1}}),
        json!({"type": "unknown", "native": {}}),
        json!({"type": "turn_end", "isError": true}),
    ]));
    assert_snapshot!(rendered, @r#"
    session      session#1
    text         - ""
    tool_use     tool#1 "" other null
    tool_result  tool#1 - ""
    tool_result  tool#2 ok ""
    file_change  move "x" -
    plan
    permission   requested Write -
    usage        {}
    rate_limit   rejected
    unknown      1 {}
    unknown      - {}
    turn_end     error - - -
    "#);
}

#[test]
fn a_result_with_all_its_fields() {
    let error = json!({"message": "failed", "code": "CLI_EXIT_ERROR", "kind": "internal", "retryable": false});
    let rendered = render(&events([json!({"type": "done", "result": {
        "status": "aborted", "text": "One. Two.", "finalMessage": "Two.", "sessionId": "session-1",
        "model": "opus", "durationMs": 12, "apiDurationMs": 7, "usage": {"inputTokens": 1},
        "sessionUsage": {"inputTokens": 9},
        "usageByModel": {"opus": {"usage": {"outputTokens": 3}, "costUsd": 0.5,
                                  "contextWindow": 1000, "maxOutputTokens": 10}},
        "totalCostUsd": 0.5, "costSource": "estimated", "numTurns": 2, "stopReason": "tool use",
        "aborted": true, "exitCode": 143, "exitSignal": "SIGTERM", "stderr": "bye\n",
        "errors": [error], "openToolIds": ["t1", "t2"], "structuredOutput": {"a": [1]},
        "permissionDenials": [{"toolName": "Write", "toolId": "t1", "reason": "no"}, {"toolName": "Bash"}],
        "diagnostics": {"lines": 4, "malformed": 1, "oversize": 2, "unknown": 3},
    }})]));
    assert_snapshot!(rendered, @r#"
    done         aborted aborted=true exit=143 signal=SIGTERM
      text       "One. Two."
      final      "Two."
      session    session#1
      model      opus
      turns      2 stop="tool use"
      usage      in=1
      in session in=9
      by model   opus out=3 cost=$0.5 window=1000 maxOutput=10
      cost       $0.5 estimated
      time       <ms> api=<ms>
      stderr     "bye\n"
      error      CLI_EXIT_ERROR internal final "failed"
      denied     Write tool#1 "no"
      denied     Bash -
      open tools tool#1 tool#2
      structured {"a":[1]}
      lines      4 malformed=1 oversize=2 unknown=3
    "#);
}

#[test]
fn a_result_with_no_more_than_it_needs() {
    let rendered = render(&events([json!({"type": "done", "result": {
        "status": "completed", "text": "One.", "finalMessage": "One.", "durationMs": 0,
        "aborted": false, "diagnostics": {"lines": 0, "malformed": 0, "oversize": 0, "unknown": 0},
    }})]));
    assert_snapshot!(rendered, @r#"
    done         completed
      text       "One."
      final      = text
      session    -
      model      -
      turns      -
      usage      -
      cost       -
      time       0
      lines      0 malformed=0 oversize=0 unknown=0
    "#);
}

#[test]
fn many_deltas_are_folded_and_every_change_of_them_shows() {
    let deltas = |changed: &str| {
        let text = |i| text("m", if i == 20 { changed } else { "abc " });
        let other = [json!({"type": "text", "text": "x", "messageId": "n"})];
        render(&events((0..40).map(text).chain(other)))
    };
    assert_snapshot!(deltas("abc "), @r#"
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 … 28 more (112 bytes, #c99faae2)
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#1 "abc "
    text         msg#2 "x"
    "#);
    assert_ne!(deltas("abc "), deltas("abd "));

    let few = render(&events((0..24).map(|_| text("m", "a"))));
    assert_eq!(few.lines().count(), 24);
}

#[test]
fn where_one_folded_delta_ends_and_the_next_begins_shows() {
    let deltas = |a: &str, b: &str| {
        let part = |i| match i {
            20 => a.to_owned(),
            21 => b.to_owned(),
            _ => "x".to_owned(),
        };
        render(&events((0..40).map(|i| text("m", &part(i)))))
    };
    assert_ne!(deltas("ab", "c"), deltas("a", "bc"));
}

#[test]
fn long_strings_are_cut_and_every_change_of_them_shows() {
    let long = |middle: char| {
        let text = format!("{}{middle}{}", "ä".repeat(200), "z".repeat(200));
        render(&events([json!({"type": "text", "text": text})]))
    };
    assert_snapshot!(long('-'), @r#"text         - "ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää" … "zzzzzzzzzzzzzzzzzzzzzzzz" (601 bytes, #f2143023)"#);
    assert_ne!(long('-'), long('+'));
}

#[test]
fn differences() {
    assert_eq!(diff("a\n", "a\n"), None);
    assert_snapshot!(diff("a\nb\nc\nd\n", "a\nb\nx\nd\n").unwrap(), @r#"
    --- expected
    +++ actual
    @@ -1,4 +1,4 @@
     a
     b
    -c
    +x
     d
    "#);
}

#[test]
fn a_header_is_put_on_and_taken_off() {
    let events = "text         - \"a\"\n---\ndone         completed\n";
    let file = with_header("tests/it.rs", events);
    assert_eq!(file, format!("---\nsource: tests/it.rs\n---\n{events}"));
    assert_eq!(without_header(&file), events);
    let more = file.replacen("\n---", "\nexpression: x\n---", 1);
    assert_eq!(without_header(&more), events);
    assert_eq!(without_header(events), events);
}
