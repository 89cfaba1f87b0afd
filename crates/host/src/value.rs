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
    let wrong = || "expected a time such as 90s, 5m or 1h30m, or `off`".to_owned();
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let letters = tail.len()
            - tail
                .trim_start_matches(|c: char| c.is_ascii_alphabetic())
                .len();
        let (unit, tail) = tail.split_at(letters);
        let millis = match unit {
            "ms" => 1,
            // A number without a unit stands alone: "1m30" is more likely a slip than 90 seconds.
            "" if text.len() == digits => 1000,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let part = number.checked_mul(millis).ok_or_else(wrong)?;
        total = total
            .checked_add(Duration::from_millis(part))
            .ok_or_else(wrong)?;
        rest = tail;
    }
    if total.is_zero() {
        return Err(wrong());
    }
    Ok(total)
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
        assert_eq!(age("2d"), ms(172_800_000));
        assert_eq!(age("0"), Ok(Duration::ZERO));
        assert!(age("off").is_err());
        assert_eq!(limit("0"), Ok(Duration::MAX));
        assert_eq!(limit("off"), Ok(Duration::MAX));
        for wrong in [
            "",
            "s",
            "5x",
            "1m30",
            "-1s",
            "1.5s",
            "0s",
            "99999999999999999999h",
        ] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
