//! Times and sizes as text.

use std::time::Duration;

/// Parses a time limit such as `90s`, `5m` or `1h30m`.
///
/// Plain numbers are seconds. `0` and `off` mean no limit, which is [`Duration::MAX`].
///
/// # Errors
///
/// Fails with a description of what was expected.
pub fn limit(text: &str) -> Result<Duration, String> {
    if text == "off" || text == "0" {
        return Ok(Duration::MAX);
    }
    let limit = match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        // "5M" is more likely a slip than five months.
        Err(_) if text.contains('M') => None,
        Err(_) => humantime::parse_duration(text).ok(),
    };
    // The description of a run has whole milliseconds, and 0 of them is no limit.
    let has_ms = |limit: &Duration| u64::try_from(limit.as_millis()).is_ok_and(|ms| ms > 0);
    limit
        .filter(has_ms)
        .ok_or_else(|| "expected a time such as 90s, 5m or 1h30m, or `off`".to_owned())
}

/// Parses an age such as `30d`; `0` is any age.
///
/// # Errors
///
/// Fails with a description of what was expected.
pub fn age(text: &str) -> Result<Duration, String> {
    match text {
        "off" => Err("expected a time such as 12h or 30d".to_owned()),
        "0" => Ok(Duration::ZERO),
        text => limit(text),
    }
}

/// Parses a number of bytes such as `500M` or `2G`; the units are powers of 1024.
///
/// # Errors
///
/// Fails with a description of what was expected.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a size such as 500M or 2G".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &*text[digits.len()..].to_ascii_uppercase() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits() {
        let ms = |ms| Ok(Duration::from_millis(ms));
        assert_eq!(limit("90s"), ms(90_000));
        assert_eq!(limit("90"), ms(90_000));
        assert_eq!(limit("5m"), ms(300_000));
        assert_eq!(limit("1h30m"), ms(5_400_000));
        assert_eq!(limit("250ms"), ms(250));
        assert_eq!(limit("2d"), ms(172_800_000));
        assert_eq!(limit("1.5s"), ms(1500));
        assert_eq!(age("2d"), ms(172_800_000));
        assert_eq!(age("0"), Ok(Duration::ZERO));
        assert!(age("off").is_err());
        assert_eq!(limit("0"), Ok(Duration::MAX));
        assert_eq!(limit("off"), Ok(Duration::MAX));
        for wrong in [
            "",
            "s",
            "5x",
            "5M",
            "1m30",
            "-1s",
            "0s",
            "999us",
            "18446744073709551615",
            "99999999999999999999h",
        ] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
