//! The fast path on the recordings of the newest version.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::super::fast;

/// Returns the folder of the newest recorded version.
fn newest() -> std::path::PathBuf {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude");
    let number = |path: &Path| -> Vec<u32> {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.split('.').map(|part| part.parse().unwrap()).collect()
    };
    let versions = fs::read_dir(recordings).unwrap();
    let versions = versions.map(|entry| entry.unwrap().path());
    versions.max_by_key(|path| number(path)).unwrap()
}

/// Returns whether a line is a delta that is frequent, of the main agent. A character that is written as `\u…` is rare.
fn is_frequent(line: &str, value: &Value) -> bool {
    let kinds = ["text_delta", "thinking_delta", "input_json_delta"];
    value["event"]["type"] == "content_block_delta"
        && value["parent_tool_use_id"].is_null()
        && kinds
            .iter()
            .any(|kind| value["event"]["delta"]["type"] == *kind)
        && !line.contains("\\u")
}

/// A new field or another order of fields would make the fast path useless, which no result would show.
#[test]
fn the_newest_recordings_take_the_fast_path() {
    let (mut taken, mut left) = (0, Vec::new());
    for scenario in fs::read_dir(newest()).unwrap() {
        let stdout = scenario.unwrap().path().join("stdout.ndjson");
        for line in fs::read(&stdout).unwrap().split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            let Ok(value) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if !is_frequent(&line, &value) {
                continue;
            }
            match fast::delta(line.as_bytes(), value["session_id"].as_str().unwrap()) {
                Some(_) => taken += 1,
                None => left.push(line.into_owned()),
            }
        }
    }
    assert_eq!(left, Vec::<String>::new());
    assert!(taken >= 100, "{taken} frequent lines");
}
