use super::*;

#[test]
fn an_id_of_version_7_has_its_time() {
    // The id of a recorded thread, whose file name has the time 2026-11-22T19:01:29.
    let at = millisecond("01a204a2-8403-7a30-9650-c17576ec5177").unwrap();
    let at = Timestamp::from_millisecond(i64::try_from(at).unwrap()).unwrap();
    assert_eq!(at.to_string(), "2026-11-22T19:01:29.219Z");
    for other in [
        "",
        "7",
        "01a204a2-8403-4a30-9650-c17576ec5177",
        "zza204a2-8403-7a30-9650-c17576ec5177",
    ] {
        assert_eq!(millisecond(other), None, "{other}");
    }
}

#[cfg(repository)]
#[test]
fn compressed_rollouts_are_read_unless_the_original_exists() {
    // A recorded run, compressed by the program `zstd`.
    const COMPRESSED: &[u8] = include_bytes!("../../tests/rollout.jsonl.zst");
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".codex/sessions/2026/11/22");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, content) in [
        ("rollout-a.jsonl.zst", COMPRESSED),
        ("rollout-b.jsonl.zst", COMPRESSED),
        ("rollout-b.jsonl", b""),
        ("rollout-c.zst", COMPRESSED),
        ("rollout-d.jsonl.zst", b"no such thing"),
        ("rollout-e.jsonl.zst", &COMPRESSED[..COMPRESSED.len() / 2]),
    ] {
        std::fs::write(folder.join(name), content).unwrap();
    }
    let accounts = crate::Scan::new(Locations::of_home(home.path())).run();
    let found = accounts.diagnostics();
    assert_eq!(
        found.unreadable_examples,
        ["d", "e"].map(|name| folder.join(format!("rollout-{name}.jsonl.zst")))
    );
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/codex/0.169.0/text/home");
    let plain = crate::Scan::new(Locations::of_home(&plain)).run();
    assert_eq!(accounts.total().usage, plain.total().usage);
    assert_eq!(accounts.total().requests, plain.total().requests);
    assert!(plain.total().requests > 0);
}
