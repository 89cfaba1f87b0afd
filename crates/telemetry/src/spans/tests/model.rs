//! Requests to models.

use super::*;

#[tokio::test]
async fn requests_to_the_model_are_spans_with_their_tokens() {
    let kept = Kept::new(false, Context::new());
    let used = |input, output| Usage::default().input_tokens(input).output_tokens(output);
    let pause = || Duration::from_millis(5);
    let script = Script::new()
        .session("one")
        .tool_use("Read", "a", ToolKind::Read, json!({}))
        .usage_and_cost(used(10, 1), 0.25)
        .delay(pause())
        .tool_result("a", "x")
        // The same again.
        .usage_and_cost(used(10, 1), 0.25)
        .delay(pause())
        .tool_use("Read", "b", ToolKind::Read, json!({}))
        .delay(pause())
        .tool_result("b", "x")
        .delay(pause())
        .usage_and_cost(used(30, 3), 0.75)
        .text("x")
        .usage(used(60, 6));
    let log = kept.run(vec![MockRuntime::new("claude").run(script)]).await;
    let spans = kept.ended();
    let requests: Vec<_> = spans
        .iter()
        .filter(|span| span.name == "chat large/model")
        .collect();
    let figures: Vec<_> = requests
        .iter()
        .map(|span| {
            let value = |name| value(span, name).unwrap();
            (
                value("gen_ai.usage.input_tokens"),
                value("gen_ai.usage.output_tokens"),
            )
        })
        .collect();
    let pair = |input: &str, output: &str| (input.to_owned(), output.to_owned());
    assert_eq!(figures, [pair("10", "1"), pair("20", "2"), pair("30", "3")]);
    let costs: Vec<_> = requests
        .iter()
        .map(|span| value(span, "teamster.cost.usd"))
        .collect();
    assert_eq!(costs, [Some("0.25".into()), Some("0.5".into()), None]);
    let attempt = named(&spans, "attempt claude");
    for span in &requests {
        assert_eq!(span.parent_span_id, attempt.span_context.span_id());
        assert_eq!(
            value(span, "gen_ai.operation.name").as_deref(),
            Some("chat")
        );
        assert_eq!(
            value(span, "gen_ai.provider.name").as_deref(),
            Some("anthropic")
        );
    }
    // The first ends with its tokens, the second with its call, since its tokens come after the result.
    let first_result = at(&log, |entry| is_result(entry, "a"));
    let second_result = at(&log, |entry| is_result(entry, "b"));
    assert_eq!(start(requests[0]), start(attempt));
    assert!(end(requests[0]) < first_result);
    assert_eq!(start(requests[1]), first_result);
    assert_eq!(end(requests[1]), at(&log, |entry| is_use(entry, "b")));
    assert_eq!(start(requests[2]), second_result);
}
