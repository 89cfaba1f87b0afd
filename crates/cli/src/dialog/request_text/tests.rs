use super::*;
use serde_json::json;
use teamster::ToolKind;

fn request(input: Value) -> PermissionRequest {
    let mut request = PermissionRequest::new(1, "Ba\u{1b}[2Jsh", ToolKind::Execute, input);
    request.message = Some("because\nof it".into());
    request
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Returns the lines after the tool and the reason.
fn text_of(input: Value) -> String {
    let (text, _) = text(&request(input), Some(Path::new("/w")), false);
    let text = plain(&text);
    let rest = text.strip_prefix("\nAllow Ba [2Jsh?\n  because of it\n");
    rest.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn arguments_are_shown_without_control_characters() {
    assert_eq!(
        text_of(json!({"command": "echo \u{1b}]52;c;x\u{7}one\nrm -rf x\u{202e}", "timeout": 5})),
        "  command: echo ^[]52;c;x^Gone\n    rm -rf x<U+202E>\n  timeout: 5\n"
    );
    assert_eq!(
        text_of(json!({"command": "rm\u{a0}-rf\u{200b} 日本\u{feff}\u{e0041}"})),
        "  command: rm<U+00A0>-rf<U+200B> 日本<U+FEFF><U+E0041>\n"
    );
    assert_eq!(
        text_of(json!({"command": "/bin/bash -lc 'make test\necho done'", "cwd": "/w"})),
        "  command: make test\n    echo done\n  by /bin/bash -lc\n  cwd: /w\n"
    );
    assert_eq!(
        text_of(json!({"commands": ["ls", "make test"]})),
        "  commands: ls\n    make test\n"
    );
    assert_eq!(
        text_of(json!({"commands": ["a\nb"]})),
        "  commands: [\"a\\nb\"]\n"
    );
    assert_eq!(text_of(Value::Null), "");
    assert_eq!(text_of(json!(["x"])), "  [\"x\"]\n");
    // A text that looks like nothing or like another value.
    assert_eq!(
        text_of(json!({"n": "5", "s": " ", "a\nb": "c"})),
        "  n: \"5\"\n  s: \" \"\n  a^Jb: c\n"
    );
}

#[test]
fn an_edit_is_shown_as_a_diff_and_all_other_arguments_beside_it() {
    let edit = json!({
        "replace_all": true, "file_path": "/w/src/a.rs",
        "old_string": "a\nb\u{1b}[2J\nc", "new_string": "a\nB\nc"
    });
    assert_eq!(
        text_of(edit),
        "  file_path: /w/src/a.rs\n     a\n    -b^[[2J\n    +B\n     c\n  replace_all: true\n"
    );
    let written = json!({"file_path": "/x/a.txt", "content": "one"});
    assert_eq!(
        text_of(written),
        "  file_path: /x/a.txt\n    +one\n    \\ No newline at end of file\n"
    );
    let edits = json!({"path": "/w/a", "edits": [
        {"oldText": "a\n", "newText": "b\n"}, {"oldText": "c\n", "newText": "d\n", "all": 1}]});
    assert_eq!(
        text_of(edits),
        "  path: /w/a\n  change 1 of 2\n      -a\n      +b\n  change 2 of 2\n      -c\n      +d\n    all: 1\n"
    );
    // A mail is no file.
    let mail = json!({"to": "eve@example.com", "content": "the secret"});
    assert_eq!(
        text_of(mail),
        "  to: eve@example.com\n  content: the secret\n"
    );
}

#[test]
fn file_that_is_written_whole_is_shown_as_a_diff_from_its_text() {
    let mut request = request(json!({"file_path": "/w/a.txt", "content": "one\nTWO\n"}));
    request.old_text = Some("one\ntwo\n".to_owned());
    let shown = plain(&text(&request, Some(Path::new("/w")), false).0);
    let expected = "  file_path: /w/a.txt\n     one\n    -two\n    +TWO\n";
    assert!(shown.ends_with(expected), "{shown}");
}

#[test]
fn changes_of_files_are_shown_as_diffs() {
    let changes = json!([
        {"path": "/w/gone.txt", "kind": {"type": "delete"}, "diff": "x\n"},
        {"path": "/w/new.txt", "kind": {"type": "add"}, "diff": "hello\n\u{1b}[2Jworld\n"},
        {"path": "/o/old.txt", "kind": {"type": "update", "move_path": null}, "diff": "@@ -1 +1 @@\n-before\n+after\n"},
        {"path": "/o/b", "kind": {"type": "update", "move_path": "/c"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"},
    ]);
    let shown = text_of(json!({"changes": changes, "grant_root": null}));
    let expected = "  grant_root: null
  delete gone.txt
    -x
  add new.txt
    +hello
    +^[[2Jworld
  update /o/old.txt
    @@ -1 +1 @@
    -before
    +after
  change 4 of 4
    path: /o/b
      @@ -1 +1 @@
      -a
      +b
    kind: {\"type\":\"update\",\"move_path\":\"/c\"}
";
    assert_eq!(shown, expected);
    // A shape that is not known is shown as it is.
    let other = text_of(json!({"changes": {"a": 1}}));
    assert!(other.contains("changes: {\"a\":1}"), "{other}");
}

#[test]
fn cut_text_is_counted_and_can_be_shown() {
    let cut = |input: Value| {
        let request = request(input);
        let (short, is_cut) = text(&request, None, false);
        assert!(is_cut, "{short}");
        let whole = plain(&whole(&request, None));
        assert!(!whole.contains('…'), "{whole}");
        (plain(&short), whole)
    };
    let long = "x".repeat(MAX_SUMMARIZED_ARGUMENT + 7);
    let (short, whole) = cut(json!({"command": long, "other": "z".repeat(2007)}));
    assert!(short.contains("x… (7 characters more)\n"), "{short}");
    assert!(short.contains("z… (1807 characters more)\n"), "{short}");
    assert_eq!(whole.matches(&*long).count(), 1);

    let fields: Map<_, _> = (0..20).map(|n| (format!("k{n:02}"), json!(n))).collect();
    let (short, whole) = cut(Value::Object(fields));
    assert!(
        short.ends_with("  k11: 11\n  … 8 arguments more\n"),
        "{short}"
    );
    assert!(whole.ends_with("  k19: 19\n"), "{whole}");

    let mut long_reason = request(Value::Null);
    long_reason.message = Some("m".repeat(MAX_ARGUMENT + 9));
    let (short, is_cut) = text(&long_reason, None, false);
    assert!(
        is_cut && short.contains("m… (9 characters more)\n"),
        "{short}"
    );
    assert!(super::whole(&long_reason, None).contains(&"m".repeat(MAX_ARGUMENT + 9)));

    let content: String = (0..50).map(|n| n.to_string() + "\n").collect();
    let (short, whole) = cut(json!({"path": "/a", "content": content, "mode": 1}));
    let end = "    +39\n    … 10 lines more (+10 -0)\n  mode: 1\n";
    assert!(short.ends_with(end), "{short}");
    assert!(whole.ends_with("    +49\n  mode: 1\n"), "{whole}");

    let line = "y".repeat(300);
    let (short, _) = cut(json!({"path": "/a", "old_string": "a", "new_string": line}));
    assert!(short.contains("y… (100 characters more)\n"), "{short}");

    let edits: Vec<_> = (0..14)
        .map(|n| json!({"oldText": "a\n", "newText": format!("{n}\n")}))
        .collect();
    let (short, whole) = cut(json!({"path": "/a", "edits": edits}));
    assert!(
        short.ends_with("      +11\n  … 2 changes more\n"),
        "{short}"
    );
    assert!(
        whole.ends_with("  change 14 of 14\n      -a\n      +13\n"),
        "{whole}"
    );

    // A command of a shell is whole.
    let command = "y".repeat(1500);
    for shell in [
        json!({"command": format!("/bin/bash -lc '{command}'")}),
        json!({"commands": [command, "true"]}),
    ] {
        let (text, is_cut) = text(&request(shell), None, false);
        assert!(text.contains(&command) && !is_cut, "{text}");
    }
}

#[test]
fn the_fields_of_a_question_are_shown() {
    let mut question = request(json!({}));
    question.schema = Some(json!({"properties": {"colour": {"type": "string"}}}));
    assert_eq!(
        whole(&question, None),
        "\nInput needed\n  because of it\n  colour: {\"type\":\"string\"}\n"
    );
}
