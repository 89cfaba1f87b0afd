//! Compares the accounts of files of real agents, other than the first five, with the usage that the model's service
//! reported.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use teamster_api::usage::Dimension;
use teamster_usage::Provider;

use crate::common::{counted, scan, scenarios, truth};

/// The providers whose files are copied unchanged.
const IN_FILES: [Provider; 5] = [
    Provider::Cline,
    Provider::Kimi,
    Provider::Pi,
    Provider::Qwen,
    Provider::Embedded,
];

fn each(check: impl Fn(Provider, &Path, &Value)) {
    for provider in IN_FILES {
        let scenarios = scenarios(provider);
        assert!(scenarios.len() >= 4, "{provider}: {}", scenarios.len());
        for (folder, known) in scenarios {
            check(provider, &folder.join("home"), &known);
        }
    }
}

#[test]
fn each_matches_the_real_usage() {
    each(|_, home, known| {
        let accounts = scan(home);
        assert_eq!(counted(&accounts), truth(known), "{}", home.display());
        let found = accounts.diagnostics();
        assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
    });
}

#[test]
fn requests_of_sub_agents_are_distinguished_from_the_rest() {
    each(|provider, home, known| {
        let all = known["requests"].as_array().unwrap().iter();
        let of_subagents = all.filter(|request| request["subagent"] == true).count();
        let total = scan(home).total();
        assert_eq!(
            total.subagent_requests,
            of_subagents as u64,
            "{provider}: {}",
            home.display()
        );
    });
}

#[test]
fn each_session_worked_where_it_was_started() {
    each(|provider, home, known| {
        let agents = scan(home).by(Dimension::Agent);
        let names: Vec<_> = agents.iter().map(|agent| agent.name.as_deref()).collect();
        assert_eq!(names, [known["directory"].as_str()], "{provider}");
    });
}

/// Returns the files of a home folder.
fn files(home: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(home).into_iter().flatten();
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(walkdir::DirEntry::into_path).collect()
}

/// A file may be read while it is being written, or may have been truncated by a full disk.
#[test]
fn a_file_that_breaks_off_anywhere_never_counts_more() {
    each(|provider, home, known| {
        let all: u64 = truth(known).values().map(|sum| sum.0).sum();
        for file in files(home) {
            let bytes = fs::read(&file).unwrap();
            let copies = tempfile::tempdir().unwrap();
            let copy = copies.path().join(file.strip_prefix(home).unwrap());
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            let mut before = 0;
            for end in (0..bytes.len()).step_by(bytes.len() / 20 + 1) {
                fs::write(&copy, &bytes[..end]).unwrap();
                let accounts = scan(copies.path());
                let requests = accounts.total().requests;
                assert!(before <= requests && requests <= all, "{provider}: {end}");
                before = requests;
                // A truncated file that is a single JSON value cannot be parsed.
                if provider != Provider::Cline {
                    assert_eq!(accounts.diagnostics().malformed_lines, 0, "{provider}");
                }
            }
        }
    });
}
