use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use teamster_api::usage::{Dimension, Figures};

use super::*;
use crate::Group;

const DIMENSIONS: [Dimension; 5] = [
    Dimension::Day,
    Dimension::Model,
    Dimension::Agent,
    Dimension::Session,
    Dimension::Provider,
];

/// Returns the homes that real CLIs left.
fn homes() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let homes = ["claude", "codex"].map(|cli| {
        walkdir::WalkDir::new(data.join(cli))
            .max_depth(3)
            .into_iter()
            .flatten()
            .map(walkdir::DirEntry::into_path)
            .filter(|path| path.ends_with("home"))
    });
    homes.into_iter().flatten().collect()
}

/// Returns the records found in all homes.
fn found() -> Vec<Found> {
    static FOUND: LazyLock<Vec<Found>> = LazyLock::new(read_all);
    FOUND.clone()
}

fn read_all() -> Vec<Found> {
    let mut all = Vec::new();
    for home in homes() {
        let mut sources = Sources::new(None);
        for provider in [Provider::Claude, Provider::Codex] {
            provider.sources(&Locations::of_home(&home), &mut sources);
        }
        for source in sources.found {
            read(&source, &mut |found| all.push(found));
        }
    }
    all
}

fn accounts(found: impl IntoIterator<Item = Found>) -> Accounts {
    let mut accounts = Accounts::new(None, None, TimeZone::UTC);
    found.into_iter().for_each(|found| accounts.take(found));
    accounts
}

fn all_groups(accounts: &Accounts) -> Vec<Vec<Group>> {
    DIMENSIONS.map(|dimension| accounts.by(dimension)).into()
}

/// Returns the figures that must not exceed the real ones.
fn figures(figures: &Figures) -> [Option<u64>; 7] {
    let usage = figures.usage;
    [
        Some(figures.requests),
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        figures.cache_write_1h_tokens,
    ]
}

/// Scans a file at the location that its CLI uses.
fn scan_file(provider: Provider, name: &str, bytes: &[u8]) -> Accounts {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(match provider {
        Provider::Claude => ".claude/projects/-tmp-box-ws",
        _ => ".codex/sessions/2026/11/22",
    });
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), bytes).unwrap();
    Scan::new(Locations::of_home(home.path()))
        .time_zone(TimeZone::UTC)
        .run()
}

/// A file: its provider, name and content.
type Recorded = (Provider, String, Vec<u8>);

/// Recorded files of each kind: with sub-agents' results, with a fork, with the history of a parent.
static FILES: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
    let mut files = Vec::new();
    for home in homes() {
        for (provider, folder) in [(Provider::Claude, ".claude"), (Provider::Codex, ".codex")] {
            for entry in walkdir::WalkDir::new(home.join(folder))
                .into_iter()
                .flatten()
            {
                let name = entry.file_name().to_str().unwrap().to_owned();
                if crate::source::is_jsonl(entry.path()) {
                    files.push((provider, name, fs::read(entry.path()).unwrap()));
                }
            }
        }
    }
    files
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_sources_does_not_matter(seed in any::<u64>()) {
        let expected = all_groups(&accounts(found()));
        let mut shuffled = found();
        shuffle(&mut shuffled, seed);
        prop_assert_eq!(all_groups(&accounts(shuffled)), expected);
    }

    #[test]
    fn a_source_found_twice_counts_once(seed in any::<u64>(), many in 0_usize..400) {
        let expected = all_groups(&accounts(found()));
        let mut again = found();
        shuffle(&mut again, seed);
        again.truncate(many);
        let mut all = found();
        all.extend(again);
        shuffle(&mut all, seed.wrapping_add(1));
        prop_assert_eq!(all_groups(&accounts(all)), expected);
    }

    #[test]
    fn a_file_that_is_cut_off_has_no_more_than_the_complete_one(
        file in any::<prop::sample::Index>(),
        index in any::<prop::sample::Index>(),
    ) {
        let (provider, name, bytes) = file.get(&FILES);
        let complete = scan_file(*provider, name, bytes);
        let cut = scan_file(*provider, name, &bytes[..index.index(bytes.len() + 1)]);
        for (part, all) in figures(&cut.total()).into_iter().zip(figures(&complete.total())) {
            prop_assert!(part <= all, "{:?} of {:?}", part, all);
        }
        prop_assert_eq!(cut.diagnostics().malformed_lines, 0);
    }

    #[test]
    fn no_file_is_too_bad_to_be_read(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..200),
    ) {
        let (provider, name, bytes) = file.get(&FILES);
        let mut bytes = bytes.clone();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let accounts = scan_file(*provider, name, &bytes);
        all_groups(&accounts);
        prop_assert_eq!(accounts.diagnostics().files, 1);
    }
}

/// Shuffles items by the Fisher-Yates algorithm, with Knuth's random numbers.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for index in (1..items.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(seed >> 33).unwrap() % (index + 1);
        items.swap(index, other);
    }
}

#[test]
fn a_transcript_that_was_copied_counts_once() {
    for home in homes() {
        let locations = Locations::of_home(&home);
        let once = Scan::new(locations.clone()).time_zone(TimeZone::UTC).run();
        let copy = tempfile::tempdir().unwrap();
        // The same folder with all files twice, as after a backup.
        for entry in walkdir::WalkDir::new(&home).into_iter().flatten() {
            if entry.file_type().is_file() {
                let path = copy.path().join(entry.path().strip_prefix(&home).unwrap());
                let folder = path.parent().unwrap();
                fs::create_dir_all(folder.join("copy")).unwrap();
                fs::copy(entry.path(), &path).unwrap();
                // Rollouts are found only at one depth.
                let second = if path.extension().is_some_and(|e| e == "jsonl") {
                    let name = path.file_name().unwrap().to_str().unwrap();
                    let name = name.replacen("rollout-2026", "rollout-2027", 1);
                    folder.join(if name.starts_with("rollout") {
                        name
                    } else {
                        format!("a{name}")
                    })
                } else {
                    continue;
                };
                fs::copy(entry.path(), second).unwrap();
            }
        }
        let twice = Scan::new(Locations::of_home(copy.path()))
            .time_zone(TimeZone::UTC)
            .run();
        assert_eq!(all_groups(&twice), all_groups(&once), "{}", home.display());
        assert_eq!(twice.diagnostics().files, 2 * once.diagnostics().files);
    }
}

#[test]
fn the_parts_of_a_period_add_up() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/claude/2.1.197/fork/home");
    let scan = Scan::new(Locations::of_home(&home)).time_zone(TimeZone::UTC);
    let complete = scan.run().total();
    assert_eq!(complete.requests, 8);
    let mut between = 0;
    for millisecond in (0..5000).step_by(37) {
        let start: Timestamp = "2026-11-22T19:01:41Z".parse().unwrap();
        let at = start + jiff::SignedDuration::from_millis(millisecond);
        let early = scan.clone().until(at).run().total();
        // The files' own times are those of the checkout.
        let mut late = Accounts::new(Some(at), None, TimeZone::UTC);
        let mut sources = Sources::new(None);
        Provider::Claude.sources(&Locations::of_home(&home), &mut sources);
        for source in sources.found {
            read(&source, &mut |found| late.take(found));
        }
        let late = late.total();
        assert_eq!(early.requests + late.requests, complete.requests, "{at}");
        assert_eq!(early.usage.plus(late.usage), complete.usage, "{at}");
        between += u32::from(early.requests > 0 && late.requests > 0);
    }
    assert!(between > 50, "{between}");
}

#[test]
fn unreadable_files_are_reported_and_the_rest_is_counted() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&project).unwrap();
    // Handwritten lines: invalid JSON, a missing time, another kind, and an answer.
    let lines = [
        r#"{"type":"assistant","usage":{"#,
        r#"{"type":"assistant","sessionId":"s","message":{"id":"m","usage":{"output_tokens":1}}}"#,
        r#"{"type":"assistant","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"id":"m","usage":{"output_tokens":-1}}}"#,
        r#"{"type":"user","toolUseResult":"Error","x":{"usage":{}}}"#,
        r#"{"type":"system","message":"text","x":{"usage":{}}}"#,
        r#"{"type":"assistant","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"id":"m","model":"<synthetic>","usage":{"output_tokens":0}}}"#,
        r#"{"type":"assistant","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"id":"m","model":"n","usage":{"output_tokens":7}}}"#,
        r#"{"type":"assistant","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"id":"m2","usage":{"outp"#,
    ];
    fs::write(project.join("s.jsonl"), lines.join("\n")).unwrap();
    fs::write(project.join("binary.jsonl"), [0xff, 0, b'\n', b'"']).unwrap();
    fs::create_dir(project.join("folder.jsonl")).unwrap();
    std::os::unix::fs::symlink("/nowhere", project.join("gone.jsonl")).unwrap();
    let accounts = Scan::new(Locations::of_home(home.path())).run();
    let total = accounts.total();
    assert_eq!((total.requests, total.usage.output_tokens), (1, Some(7)));
    // The cost was not reported.
    assert_eq!(
        (total.usage.input_tokens, total.reported_cost_usd),
        (None, None)
    );
    assert_eq!(
        (total.estimated_cost_usd, total.unpriced_requests),
        (None, 1)
    );
    let found = accounts.diagnostics();
    assert_eq!((found.files, found.malformed_lines), (2, 3));
    assert_eq!(found.unreadable, 0);
}

#[test]
fn a_machine_without_agents_has_used_nothing() {
    let home = tempfile::tempdir().unwrap();
    let accounts = Scan::new(Locations::of_home(home.path())).run();
    assert!(accounts.is_empty());
    assert_eq!(accounts.total(), Figures::default());
    assert_eq!(*accounts.diagnostics(), Diagnostics::default());
    assert_eq!(
        Scan::new(Locations::default()).run().total(),
        Figures::default()
    );
}

#[test]
fn files_older_than_the_requested_period_are_not_read() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&project).unwrap();
    let old = fs::File::create(project.join("old.jsonl")).unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    fs::write(project.join("new.jsonl"), "{}\n").unwrap();
    let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let accounts = Scan::new(Locations::of_home(home.path()))
        .since(since)
        .run();
    let found = accounts.diagnostics();
    assert_eq!((found.files, found.old_files), (1, 1));
}

#[test]
fn a_folder_behind_a_link_is_read_by_a_scan_as_by_a_meter() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/claude/2.1.197/text/home");
    let project = data.join(".claude/projects/-tmp-box-ws");
    let known = Scan::new(Locations::of_home(&data)).run();
    let session = known.by(Dimension::Session)[0].name.clone().unwrap();
    let home = tempfile::tempdir().unwrap();
    let projects = home.path().join(".claude/projects");
    fs::create_dir_all(&projects).unwrap();
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, projects.join(name)).unwrap();
    };
    link(&project, "-tmp-box-ws");
    let locations = Locations::of_home(home.path());
    let accounts = Scan::new(locations.clone()).run();
    assert_eq!(accounts.total(), known.total());
    let mut sources = Sources::new(None);
    Provider::Claude.of_session(&locations, &session, &mut sources);
    assert_eq!(sources.found.len(), 1);
    // A folder that contains itself, and a link to a missing one.
    link(&projects, "circle");
    link(Path::new("/nowhere"), "gone");
    let accounts = Scan::new(locations).run();
    assert_eq!(accounts.total(), known.total());
    assert_eq!(accounts.diagnostics().unreadable, 0);
}
