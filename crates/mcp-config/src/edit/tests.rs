//! Tests of the checks of a result, with results that a bug could produce.
#![allow(clippy::unwrap_used)]

use serde_json::json;
use teamster_core::provider::ConfigFormat::{self, Json, Toml};

use super::{read, verify_merged, verify_removed};

const BEFORE: [(ConfigFormat, &str); 2] = [
    (
        Json,
        r#"{"x": {"y": [1.0, "a"]}, "mcp": {"b": {"url": "u"}}}"#,
    ),
    (Toml, "x.y = [1.0, \"a\"]\n[mcp.b]\nurl = \"u\"\n"),
];

#[test]
fn a_merge_that_lost_or_changed_anything_is_an_error() {
    let ours = [("a".to_owned(), json!({"n": 1, "e": {"k": "v"}}))];
    for (format, good) in [
        (
            Json,
            r#"{"x": {"y": [1.0, "a"]}, "mcp": {"b": {"url": "u"}, "a": {"e": {"k": "v"}, "n": 1}}}"#,
        ),
        (
            Toml,
            "x.y = [1.0, \"a\"]\n[mcp.a]\nn = 1\ne = { k = \"v\" }\n[mcp.b]\nurl = \"u\"\n",
        ),
    ] {
        let text = BEFORE.iter().find(|(other, _)| *other == format).unwrap().1;
        let before = read(text, format, "mcp").unwrap();
        let verify = |result: &str| verify_merged(&before, result, format, "mcp", &ours);
        verify(good).unwrap();
        for (what, instead, message) in [
            ("1.0", "1.5", "something else would change"),
            ("1.0", "\"1.0\"", "something else would change"),
            ("1.0, ", "", "something else would change"),
            ("\"u\"", "\"U\"", "something else would change"),
            ("b", "c", "something else would change"),
            ("x", "xx", "something else would change"),
            ("\"v\"", "\"w\"", "`a` cannot be written unchanged"),
            ("\"v\"", "[\"v\"]", "`a` cannot be written unchanged"),
            ("n", "m", "`a` cannot be written unchanged"),
        ] {
            let bad = good.replace(what, instead);
            let error = verify(&bad).unwrap_err().to_string();
            assert!(
                error.ends_with(&format!("would damage it: {message}")),
                "{bad}: {error}"
            );
        }
        let error = verify(&good.replacen(['}', ']'], "", 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains("would damage it: line "), "{error}");
        // The unchanged text lacks the new entry.
        assert!(verify(text).is_err());
    }
    let twice = r#"{"x": {"y": [1.0, "a"]}, "mcp": {"b": {"url": "u"}, "a": {"n": 1, "e": {"k": "v"}}, "a": 1}}"#;
    let before = read(BEFORE[0].1, Json, "mcp").unwrap();
    assert!(verify_merged(&before, twice, Json, "mcp", &ours).is_err());
}

#[test]
fn a_removal_that_lost_or_changed_anything_is_an_error() {
    for (format, text) in BEFORE {
        let before = read(text, format, "mcp").unwrap();
        let verify =
            |result: &str, gone: &[&str]| verify_removed(&before, result, format, "mcp", gone);
        verify(text, &[]).unwrap();
        assert!(verify(text, &["b"]).is_err());
        let (good, bad) = match format {
            Json => (r#"{"x": {"y": [1.0, "a"]}, "mcp": {}}"#, r#"{"x": {}}"#),
            _ => ("x.y = [1.0, \"a\"]\n", "x = {}\n"),
        };
        verify(good, &["b"]).unwrap();
        assert!(verify(good, &[]).is_err());
        assert!(verify(bad, &["b"]).is_err());
        assert!(verify("", &["b"]).is_err());
    }
    // The order of keys, and a duplicate key, belong to the user too.
    for (text, other) in [
        (r#"{"a": 1, "b": 2}"#, r#"{"b": 2, "a": 1}"#),
        (r#"{"a": 1, "a": 2}"#, r#"{"a": 2}"#),
        (r#"{"a": 1.0}"#, r#"{"a": 1}"#),
    ] {
        let before = read(text, Json, "mcp").unwrap();
        verify_removed(&before, text, Json, "mcp", &[]).unwrap();
        assert!(verify_removed(&before, other, Json, "mcp", &[]).is_err());
    }
}
