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
