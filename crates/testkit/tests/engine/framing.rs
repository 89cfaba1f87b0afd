//! From bytes to lines, through a real pipe.

use std::time::Duration;

use teamster_core::{Diagnostics, RunStatus};
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::{BigLine, Script, Text};

use crate::engine::{END, agent};

#[tokio::test]
async fn odd_line_ends_and_odd_bytes_do_not_break_the_stream() {
    let script = Script::new()
        .raw(b"\xef\xbb\xbf{\"t\":\"bom \"}\r\n\n\r\n   \n")
        .line("{\"t\":\"u2028\u{2028} \"}")
        .raw(b"{\"t\":\"\xff\"}\n")
        .line("no json")
        .raw(r#"{"end":"#)
        .sleep(Duration::from_millis(20))
        .raw("false}");
    let story = agent(&script).finish().await;
    assert_types(&story.events, "text text text notice turn_end done");
    assert_eq!(story.result.text, "bom u2028\u{2028} \u{fffd}");
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(
        story.result.diagnostics,
        Diagnostics::default().lines(5).malformed(1)
    );
}

#[tokio::test]
async fn a_100_mb_line_becomes_a_notice_and_reading_continues() {
    let script = Script::new()
        .line(r#"{"t":"before "}"#)
        .big_line(
            BigLine::new(100_000_000)
                .prefix(r#"{"t":""#)
                .suffix(r#""}"#),
        )
        .line(r#"{"t":"after"}"#)
        .line(END);
    let story = agent(&script).finish().await;
    assert_types(&story.events, "text notice text turn_end done");
    let notice = story.notices()[0];
    assert!(
        notice.starts_with("a line of 100000008 bytes was longer than the limit"),
        "{notice}"
    );
    assert!(notice.contains(r#"{"t":"xxxx"#), "{notice}");
    assert_eq!(story.result.text, "before after");
    assert_eq!(story.result.diagnostics.oversize, 1);
    assert_eq!(story.result.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_line_just_below_the_limit_is_read() {
    let script = Script::new()
        .big_line(BigLine::new(5_000_000).prefix(r#"{"t":""#).suffix(r#""}"#))
        .line(END);
    let story = agent(&script)
        .config(|config| config.max_line_bytes = 5_000_008)
        .finish()
        .await;
    assert_eq!(story.result.text.len(), 5_000_000);
    let story = agent(&script)
        .config(|config| config.max_line_bytes = 5_000_007)
        .finish()
        .await;
    assert_eq!(story.result.diagnostics.oversize, 1);
}

#[tokio::test]
async fn every_event_comes_with_its_line_when_asked() {
    let script = Script::new()
        .line(Text::from(r#"{"t":  "{n}"}"#).repeat(2))
        .line(END);
    let mut stream = agent(&script)
        .params(|params| params.include_native = true)
        .start();
    let mut lines = Vec::new();
    while let Some(entry) = stream.next_entry().await {
        lines.extend(entry.native().map(|line| line.get().to_owned()));
    }
    assert_eq!(lines, [r#"{"t":  "0"}"#, r#"{"t":  "1"}"#, END]);
}
