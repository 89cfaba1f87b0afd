//! The guide for authors of providers contains the files of this crate.

use std::fs;
use std::path::Path;

/// Returns the code blocks of the page that follow a line such as "`src/lib.rs`:", with that path.
fn files(page: &str) -> Vec<(&str, &str)> {
    let mut files = Vec::new();
    for (before, rest) in page
        .match_indices("```rust,ignore\n")
        .map(|(at, fence)| (&page[..at], &page[at + fence.len()..]))
    {
        let path = before.rsplit('`').nth(1).unwrap();
        files.push((path, rest.split_once("```").unwrap().0));
    }
    files
}

#[test]
fn the_guide_shows_the_files_of_this_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/providers/writing.md")).unwrap();
    let shown = files(&page);
    let paths: Vec<&str> = shown.iter().map(|(path, _)| *path).collect();
    assert_eq!(
        paths,
        [
            "src/lib.rs",
            "src/launch.rs",
            "src/decoder.rs",
            "src/decoder/end.rs",
            "src/decoder/errors.rs",
            "src/main.rs",
            "tests/conformance.rs",
        ]
    );
    for (path, text) in shown {
        let real = fs::read_to_string(root.join(path)).unwrap();
        // In this crate the snapshot tests are in a separate file, `tests/it.rs`.
        let text = text
            .split("\nteamster_testkit::snapshot_tests!")
            .next()
            .unwrap();
        assert_eq!(
            text, real,
            "{path}: copy the file into docs/providers/writing.md"
        );
    }
}
