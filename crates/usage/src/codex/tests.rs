use super::*;

#[test]
fn an_id_of_version_7_tells_its_time() {
    // Of a recorded thread, whose file names the time 2026-11-22T19:01:29.
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

#[test]
fn compressed_rollouts_are_told_unless_they_are_there_as_they_were() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".codex/sessions/2026/11/22");
    std::fs::create_dir_all(&folder).unwrap();
    for name in [
        "rollout-a.jsonl.zst",
        "rollout-b.jsonl.zst",
        "rollout-b.jsonl",
        "rollout-c.zst",
    ] {
        std::fs::write(folder.join(name), "").unwrap();
    }
    let accounts = crate::Scan::new(Places::of_home(home.path())).run();
    let found = accounts.diagnostics();
    assert_eq!((found.files, found.unreadable), (1, 1));
    assert_eq!(
        found.unreadable_examples,
        [folder.join("rollout-a.jsonl.zst")]
    );
}
