use super::*;

/// A Friday, noon in UTC.
fn now() -> Zoned {
    "2026-11-27T12:00:00[UTC]".parse().unwrap()
}

fn found(message: &str) -> Option<String> {
    let time = find_at(message, &now())?;
    let time = Timestamp::from_millisecond(i64::try_from(time).unwrap()).unwrap();
    Some(time.to_string())
}

#[test]
fn the_time_at_which_a_limit_resets() {
    for (message, expected) in [
        // Anthropic's API: the cap of a key.
        (
            "API Error: 400 You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC.",
            "2027-01-01T00:00:00Z",
        ),
        // Claude Code.
        (
            "You've hit your session limit · resets 3pm (UTC)",
            "2026-11-27T15:00:00Z",
        ),
        (
            "You've hit your limit · resets 3:45pm (UTC) · /upgrade",
            "2026-11-27T15:45:00Z",
        ),
        (
            "You've hit your session limit · resets 12am (UTC)",
            "2026-11-28T00:00:00Z",
        ),
        ("5-hour limit reached ∙ resets 11am", "2026-11-28T11:00:00Z"),
        ("limit · resets Nov 30, 9am (UTC)", "2026-11-30T09:00:00Z"),
        ("limit · resets Nov 30 at 9am (UTC)", "2026-11-30T09:00:00Z"),
        (
            "limit · resets Jan 2, 2028, 12:30pm (UTC)",
            "2028-01-02T12:30:00Z",
        ),
        ("Weekly limit · resets Jan 2", "2027-01-02T00:00:00Z"),
        (
            "Your weekly limit resets Monday at 08:00.",
            "2026-11-30T08:00:00Z",
        ),
        (
            "Claude AI usage limit reached|1796000000",
            "2026-11-30T00:53:20Z",
        ),
        // Codex.
        (
            "You’ve hit your usage limit. Visit https://x.test/a or try again at 9:44 PM.",
            "2026-11-27T21:44:00Z",
        ),
        (
            "or try again at Dec 3rd, 2026 9:44 PM.",
            "2026-12-03T21:44:00Z",
        ),
        // Others.
        (
            "quota exceeded, resets at 2026-12-01T00:00:00Z.",
            "2026-12-01T00:00:00Z",
        ),
        (
            "Daily limit: it resets at midnight UTC",
            "2026-11-28T00:00:00Z",
        ),
        ("It resets tomorrow at 7:05 am.", "2026-11-28T07:05:00Z"),
        ("resets at 15:00 (UTC)", "2026-11-27T15:00:00Z"),
        // Made by hand, as the next ones.
        ("resets at 1796000000", "2026-11-30T00:53:20Z"),
        ("Please wait until 3:00 PM.", "2026-11-27T15:00:00Z"),
        ("Your plan renews on Dec 1.", "2026-12-01T00:00:00Z"),
        ("next reset: 2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        // The zone as JavaScript writes it, a time without a zone, LiteLLM's colon, and the field of OpenAI's error.
        ("Access resets at 5:47 PM GMT+2.", "2026-11-27T15:47:00Z"),
        ("resets at 5:47 PM GMT-3:30", "2026-11-27T21:17:00Z"),
        ("resets at 5:47 PM GMT", "2026-11-27T17:47:00Z"),
        (
            "Your limit will reset at 2026-12-01T11:07:55",
            "2026-12-01T11:07:55Z",
        ),
        (
            "Limit resets at: 2026-12-01 11:07 UTC",
            "2026-12-01T11:07:00Z",
        ),
        (
            r#"Codex error: {"error":{"type":"usage_limit_reached","resets_at":1796000000,"resets_in_seconds":9}}"#,
            "2026-11-30T00:53:20Z",
        ),
    ] {
        assert_eq!(found(message).as_deref(), Some(expected), "{message}");
    }
}

// Made by hand: the lengths of waits in the forms that services use.
#[test]
fn the_end_of_a_wait_counts_from_now() {
    for (message, expected) in [
        ("Usage limit: resets in 3 h", "2026-11-27T15:00:00Z"),
        ("You can try again in 2h 5m.", "2026-11-27T14:05:00Z"),
        (
            "limit reached, try again in 45 minutes",
            "2026-11-27T12:45:00Z",
        ),
        ("resets in 3 days", "2026-11-30T12:00:00Z"),
        (
            "usage limit; try again in 3 days 4 hours 5 minutes.",
            "2026-11-30T16:05:00Z",
        ),
        (
            "Try again in 1 hour and 30 minutes, or upgrade",
            "2026-11-27T13:30:00Z",
        ),
        ("Please try again in 6m0s. Visit x", "2026-11-27T12:06:00Z"),
        ("available again in about an hour", "2026-11-27T13:00:00Z"),
        // OpenCode's words.
        (
            "It will reset in less than a minute.",
            "2026-11-27T12:01:00Z",
        ),
        ("Please retry in 1.5s", "2026-11-27T12:00:01.5Z"),
        ("(resets in 2h14m) 5 left", "2026-11-27T14:14:00Z"),
        (
            "Your quota will reset after 18h30m12s.",
            "2026-11-28T06:30:12Z",
        ),
        ("Too many. Please wait 25 seconds.", "2026-11-27T12:00:25Z"),
        (
            "5-hour limit: resets in 90 min · /upgrade",
            "2026-11-27T13:30:00Z",
        ),
    ] {
        assert_eq!(found(message).as_deref(), Some(expected), "{message}");
    }
}

// The message is older than the time at which it is read.
#[test]
fn a_time_that_has_just_passed_is_not_tomorrow_s() {
    for (now, message, expected) in [
        (
            "2026-11-27T12:02[UTC]",
            "resets 12pm",
            "2026-11-27T12:00:00Z",
        ),
        (
            "2026-11-27T12:06[UTC]",
            "resets 12pm",
            "2026-11-28T12:00:00Z",
        ),
        (
            "2026-11-27T00:01[UTC]",
            "resets 11:59pm",
            "2026-11-26T23:59:00Z",
        ),
        (
            "2026-11-27T12:02[UTC]",
            "resets Friday at 12:00",
            "2026-11-27T12:00:00Z",
        ),
        (
            "2026-11-27T12:06[UTC]",
            "resets Friday at 12:00",
            "2026-12-04T12:00:00Z",
        ),
        (
            "2026-11-28T00:01[UTC]",
            "resets Friday at 23:58",
            "2026-11-27T23:58:00Z",
        ),
        (
            "2026-11-28T00:01[UTC]",
            "resets Nov 27, 11:59pm",
            "2026-11-27T23:59:00Z",
        ),
        (
            "2026-11-28T00:01[UTC]",
            "resets Nov 27, 11pm",
            "2027-11-27T23:00:00Z",
        ),
        (
            "2027-01-01T00:01[UTC]",
            "resets Dec 31, 11:59pm",
            "2026-12-31T23:59:00Z",
        ),
        (
            "2027-01-01T00:01[UTC]",
            "resets Dec 31, 11pm",
            "2027-12-31T23:00:00Z",
        ),
    ] {
        let time = find_at(message, &now.parse().unwrap()).unwrap();
        let time = Timestamp::from_millisecond(i64::try_from(time).unwrap()).unwrap();
        assert_eq!(time.to_string(), expected, "{message} at {now}");
    }
}

#[test]
fn a_time_that_has_just_passed_is_shortly_after_now() {
    let now = now();
    let at = |ms: i64| u64::try_from(now.timestamp().as_millisecond() + ms).unwrap();
    for (time, expected) in [
        (-300_001, -300_001),
        (-300_000, 1000),
        (0, 1000),
        (999, 1000),
        (60_000, 60_000),
    ] {
        assert_eq!(ahead(at(time), &now), at(expected), "{time}");
    }
}

#[test]
fn a_text_without_a_time_has_none() {
    for message in [
        "",
        "You've hit your limit",
        "The limit resets soon.",
        "resets 13pm",
        "resets at 25:00",
        "resets Feb 30",
        "resets in a while",
        "try again in 99999999999999999999 days",
        "retry in -3 h",
        "resets in 3",
        "resets in less than ideal ways",
        "resets 3pm (Nowhere/Atall)",
        "resets 1 2 3",
        "usage limit reached|",
        "resets é",
    ] {
        assert_eq!(found(message), None, "{message}");
    }
}

#[test]
fn a_time_is_in_its_own_zone_or_else_in_that_of_the_machine() {
    if TimeZone::get("Europe/Berlin").is_err() {
        // Minimal systems have no database of zones.
        return;
    }
    let berlin = "resets 3pm (Europe/Berlin)";
    assert_eq!(found(berlin).as_deref(), Some("2026-11-27T14:00:00Z"));
    for (message, expected) in [
        ("resets 3pm PST", "2026-11-27T23:00:00Z"),
        (
            "it resets at midnight Pacific time.",
            "2026-11-28T08:00:00Z",
        ),
        ("resets Dec 31 at 11:59 PM (EST)", "2027-01-01T04:59:00Z"),
        ("resets at 15:00 CET", "2026-11-27T14:00:00Z"),
    ] {
        assert_eq!(found(message).as_deref(), Some(expected), "{message}");
    }
    assert_eq!(found("resets at 15:00 Central European Time"), None);
    let now = now().in_tz("America/New_York").unwrap();
    let local = find_at("resets 3pm", &now).unwrap();
    assert_eq!(local, 1_795_809_600_000, "20:00 in UTC");
}
