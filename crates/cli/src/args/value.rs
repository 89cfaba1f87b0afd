//! Parsers of argument values.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use teamster::AgentError;

/// Returns a parser for a fixed set of values, each with its help text.
pub(super) fn named_values<T>(values: &'static [(T, &str)]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = AgentError> + Display + Clone + Send + Sync + 'static,
{
    let values = values.iter();
    let values = values.map(|(value, help)| PossibleValue::new(value.to_string()).help(*help));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}

/// Parses a time limit such as `90s`, `5m` or `1h30m`.
///
/// Plain numbers are seconds. `0` and `off` mean no limit, which is [`Duration::MAX`].
pub(super) fn limit(text: &str) -> Result<Duration, String> {
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

/// Parses a waiting time such as `30m`; `0` is no wait, and `off` is [`Duration::MAX`].
pub(super) fn wait_time(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        text => limit(text),
    }
}

/// Parses an age such as `30d`; `0` is any age.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    match text {
        "off" => Err("expected a time such as 12h or 30d".to_owned()),
        "0" => Ok(Duration::ZERO),
        text => limit(text),
    }
}

/// Parses a number of bytes such as `500M` or `2G`; the units are powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
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

/// Parses an amount of USD above zero.
pub(super) fn usd(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("expected an amount above 0, such as 0.50".to_owned()),
    }
}

/// Parses a playback speed, which is finite and not negative.
pub(super) fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed >= 0.0 => Ok(speed),
        _ => Err("expected a number from 0".to_owned()),
    }
}

/// An environment variable for the agent. `Debug` leaves the value out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EnvVar {
    /// Name of the variable.
    pub(crate) name: String,
    /// Value of the variable; `None` takes it from teamster's own environment.
    pub(crate) value: Option<String>,
}

impl std::fmt::Debug for EnvVar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvVar")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Parses `KEY=VALUE` or `KEY`.
///
/// Never fails: clap's error would print the whole argument, whose value may be a secret.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a value parser")]
pub(super) fn env_var(text: &str) -> Result<EnvVar, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    Ok(EnvVar {
        name: name.to_owned(),
        value,
    })
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

    #[test]
    fn amounts() {
        assert_eq!(usd("0.5"), Ok(0.5));
        assert_eq!(usd("$2"), Ok(2.0));
        for wrong in ["0", "-1", "nan", "inf", "much"] {
            assert!(usd(wrong).is_err(), "{wrong}");
        }
        assert_eq!(speed("0"), Ok(0.0));
        assert!(speed("-1").is_err());
    }

    #[test]
    fn a_value_may_hold_equals_signs_and_is_not_shown() {
        let var = env_var("A=b=c").unwrap();
        assert_eq!((&*var.name, var.value.as_deref()), ("A", Some("b=c")));
        assert!(!format!("{var:?}").contains("b=c"));
        assert_eq!(env_var("A").unwrap().value, None);
        assert_eq!(env_var("A=").unwrap().value.as_deref(), Some(""));
    }
}
