//! Replacement of values of this machine and this run by those of the fixtures.

use crate::bench::Bench;
use crate::played::Played;

/// Replacements, the longest first.
pub(super) struct Neutral {
    pairs: Vec<(String, String)>,
}

impl Neutral {
    pub(super) fn new(bench: &Bench, played: &Played) -> Self {
        let mut pairs = Vec::new();
        let mut path = |from: &std::path::Path, to: &str| {
            let from = from.display().to_string();
            // Claude Code derives the name of a folder from a path in this way.
            let dashes = |path: &str| path.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            pairs.push((dashes(&from), dashes(to)));
            // OpenCode names a file relative to the root.
            let relative = |path: &str| path.trim_start_matches('/').to_owned();
            pairs.push((relative(&from), relative(to)));
        };
        path(&played.directory, "/tmp/ws");
        if let Some(location) = played.directory.parent() {
            path(&location.join("home"), "/tmp/home");
            path(&location.join("tmp"), "/tmp/tmp");
            path(location, "/tmp");
        }
        path(&bench.programs, "/tmp/bin");
        if let Some(modules) = bench.programs.parent() {
            path(modules, "/tmp/node_modules");
            // A program that was started by a link sees its real path.
            if let Ok(real) = modules.canonicalize() {
                path(&real, "/tmp/node_modules");
            }
        }
        if let Ok(program) = std::env::current_exe() {
            path(&program, "/tmp/teamster-fake-mcp-server");
        }
        path(&bench.boxes, "/tmp");
        if let Ok(path) = std::env::var("PATH") {
            pairs.push((path, "/usr/bin:/bin".to_owned()));
        }
        pairs.push((played.service.clone(), "127.0.0.1:8787".to_owned()));
        pairs.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Self { pairs }
    }

    pub(super) fn text(&self, text: &str) -> String {
        let text = self
            .pairs
            .iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        without_marks(&text)
    }

    /// Replaces values in bytes. Bytes that are not UTF-8 are returned unchanged.
    pub(super) fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text).into_bytes(),
            Err(_) => bytes.to_vec(),
        }
    }
}

/// Prefix of the folders with private files of a run.
const OF_A_RUN: &str = "/teamster-run-";

/// Removes the random part of the names of folders with private files.
fn without_marks(text: &str) -> String {
    let mut parts = text.split(OF_A_RUN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(OF_A_RUN.trim_end_matches('-'));
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_alphanumeric()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_private_files_has_the_same_name_in_each_run() {
        assert_eq!(
            without_marks("--mcp-config=/tmp/teamster-run-2xqPIg/private-0 /tmp/teamster-run-a"),
            "--mcp-config=/tmp/teamster-run/private-0 /tmp/teamster-run"
        );
        assert_eq!(without_marks("/tmp/ws/teamster"), "/tmp/ws/teamster");
    }
}
