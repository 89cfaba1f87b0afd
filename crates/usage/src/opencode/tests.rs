//! Tests with handwritten messages in the form of real ones.

use super::*;
use crate::source::Found;

fn read(sessions: Sessions, messages: &[(&str, &str)]) -> (Vec<Record>, u64) {
    let mut found = Vec::new();
    let mut take = |what| {
        if let Found::Record(record) = what {
            found.push(record);
        }
    };
    let mut sink = Sink::new(&mut take);
    let mut reader = Reader::new(Provider::OpenCode, sessions, None);
    for (session, message) in messages {
        reader.message(session, message.as_bytes(), &mut sink);
    }
    let malformed = sink.diagnostics.malformed_lines;
    (found, malformed)
}

fn message(created: i64, output: u64, cost: f64) -> String {
    format!(
        r#"{{"role":"assistant","modelID":"m","providerID":"p","cost":{cost},"tokens":{{"total":{},"input":5,"output":{output},"reasoning":3,"cache":{{"read":7,"write":0}}}},"time":{{"created":{created},"completed":{created}}},"path":{{"cwd":"/w"}}}}"#,
        output + 15
    )
}

fn child_of(parent: &str) -> Session {
    Session {
        parent: Some(parent.to_owned()),
        ..Session::default()
    }
}

#[test]
fn reasoning_is_output_and_a_cost_of_nothing_is_none() {
    let (found, malformed) = read(
        Sessions::new(),
        &[("s", &message(1, 10, 0.0)), ("s", &message(2, 10, 0.5))],
    );
    let expected = Usage::default()
        .input_tokens(5)
        .output_tokens(13)
        .cache_read_tokens(7)
        .reasoning_tokens(3);
    assert_eq!((found[0].usage, malformed), (expected, 0));
    assert_eq!(found[0].directory.as_deref(), Some("/w"));
    let costs: Vec<_> = found.iter().map(|record| record.cost_usd).collect();
    assert_eq!(costs, [None, Some(0.5)]);
}

#[test]
fn reasoning_that_is_in_the_output_is_not_added_to_it() {
    let of_version_1_1 = message(1, 10, 1.0).replace("\"total\":25", "\"total\":22");
    let without_total = message(1, 10, 1.0).replace("\"total\":25,", "");
    for message in [of_version_1_1, without_total] {
        let (found, _) = read(Sessions::new(), &[("s", &message)]);
        assert_eq!(found[0].usage.output_tokens, Some(10), "{message}");
        assert_eq!(found[0].usage.reasoning_tokens, Some(3));
    }
}

#[test]
fn a_copy_has_the_key_of_its_original() {
    let begun = Session {
        created: Some(2),
        ..Session::default()
    };
    let sessions = Sessions::from([("fork".to_owned(), begun)]);
    let (found, _) = read(
        sessions,
        &[
            ("fork", &message(1, 10, 1.0)),
            ("s", &message(1, 10, 1.0)),
            ("fork", &message(3, 10, 1.0)),
        ],
    );
    assert_eq!(found[0].key, found[1].key);
    assert_ne!(found[0].key, found[2].key);
    let copied: Vec<_> = found.iter().map(|record| record.copied).collect();
    assert_eq!(copied, [true, false, false]);
}

#[test]
fn sub_agents_count_for_the_session_above_all_and_a_circle_ends() {
    let sessions = Sessions::from([
        ("c".to_owned(), child_of("b")),
        ("b".to_owned(), child_of("a")),
        ("x".to_owned(), child_of("y")),
        ("y".to_owned(), child_of("x")),
    ]);
    let text = message(1, 10, 1.0);
    let (found, _) = read(sessions, &[("c", &text), ("a", &text), ("x", &text)]);
    let reported: Vec<_> = found.iter().map(|r| (&*r.session, r.subagent)).collect();
    assert_eq!(reported[..2], [("a", true), ("a", false)]);
    assert_eq!(found.len(), 3);
}

#[test]
fn messages_without_figures_are_ignored_and_invalid_reported() {
    let (found, malformed) = read(
        Sessions::new(),
        &[
            ("s", r#"{"role":"user"}"#),
            (
                "s",
                r#"{"tokens":{"input":0,"output":0},"time":{"created":1}}"#,
            ),
            ("s", r#"{"tokens":{"input":1}}"#),
            ("s", r#"{"tokens":"#),
        ],
    );
    assert_eq!((found.len(), malformed), (0, 2));
}

#[test]
fn files_of_an_older_version_are_read_with_their_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let storage = folder.path().join("storage");
    let write = |path: &str, text: &str| {
        let path = storage.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "session/p1/ses_a.json",
        r#"{"id":"ses_a","directory":"/a","time":{"created":0}}"#,
    );
    write(
        "session/p1/ses_b.json",
        r#"{"id":"ses_b","parentID":"ses_a","directory":"/a"}"#,
    );
    write("message/ses_a/msg_1.json", &message(1, 10, 1.0));
    write("message/ses_a/msg_2.txt", "no message");
    write("message/ses_b/msg_3.json", &message(2, 20, 1.0));
    let locations = Locations {
        opencode: Some(folder.path().to_owned()),
        ..Locations::default()
    };
    let mut found = Sources::new(None);
    sources(&locations, &mut found);
    found.found.sort_by(|a, b| a.path.cmp(&b.path));
    let mut records = Vec::new();
    let mut take = |what| {
        if let Found::Record(record) = what {
            records.push(record);
        }
    };
    let mut sink = Sink::new(&mut take);
    for source in &found.found {
        super::read(source, &mut sink).unwrap();
    }
    let reported: Vec<_> = records
        .iter()
        .map(|r| {
            (
                &*r.session,
                r.subagent,
                r.directory.as_deref(),
                r.usage.output_tokens,
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            ("ses_a", false, Some("/a"), Some(13)),
            ("ses_a", true, Some("/a"), Some(23)),
        ]
    );
}

#[test]
fn the_price_depends_on_the_vendor() {
    let mut accounts = crate::Accounts::new(None, None, jiff::tz::TimeZone::UTC);
    for (created, vendor) in [(1, "openai"), (2, "lmstudio"), (3, "openrouter/x")] {
        let text = message(created, 10, 0.0)
            .replace(r#""modelID":"m""#, r#""modelID":"gpt-5.5""#)
            .replace(
                r#""providerID":"p""#,
                &format!(r#""providerID":"{vendor}""#),
            );
        let (found, _) = read(Sessions::new(), &[("s", &text)]);
        for record in found {
            accounts.add(record);
        }
    }
    // They count as one model.
    let models = accounts.by(crate::Dimension::Model);
    assert_eq!(models.len(), 1);
    assert_eq!(models[0].name.as_deref(), Some("gpt-5.5"));
    let figures = models[0].figures;
    assert_eq!((figures.requests, figures.unpriced_requests), (3, 1));
    assert!(figures.estimated_cost_usd.is_some());
}

#[test]
fn a_folder_that_cannot_be_read_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let locations = Locations {
        opencode: Some(folder.path().join("data")),
        ..Locations::default()
    };
    let unreadable = || {
        let mut found = Sources::new(None);
        sources(&locations, &mut found);
        found.diagnostics.unreadable
    };
    assert_eq!(unreadable(), 0, "it is not there");
    // A link to itself cannot be read.
    fs::create_dir_all(folder.path().join("data/storage")).unwrap();
    let link = |path: &str| std::os::unix::fs::symlink(path, folder.path().join(path));
    std::os::unix::fs::symlink("message", folder.path().join("data/storage/message")).unwrap();
    assert_eq!(unreadable(), 1);
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    link("data").unwrap();
    assert_eq!(unreadable(), 2);
}
