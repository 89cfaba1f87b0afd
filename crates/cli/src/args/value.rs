//! Parsers of argument values.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use teamster::agent_loop::supervisor::FILE_NAME;
use teamster::{AgentError, Container, ErrorDetail, Mount};
pub(crate) use teamster_host::value::{age, limit, size};

/// Returns a parser for a fixed set of values, each with its help text.
pub(crate) fn named_values<T>(values: &'static [(T, &str)]) -> impl TypedValueParser<Value = T>
where
    T: Display + Clone + Send + Sync + 'static,
{
    let names = values.iter();
    let names = names.map(|(value, help)| PossibleValue::new(value.to_string()).help(*help));
    PossibleValuesParser::new(names).try_map(|name| {
        let found = values.iter().find(|(value, _)| value.to_string() == name);
        found
            .map(|(value, _)| value.clone())
            .ok_or("an unknown value")
    })
}

/// Parses `docker:IMAGE` or `podman:IMAGE`.
pub(crate) fn container(text: &str) -> Result<Container, String> {
    text.parse().map_err(problem)
}

/// Parses `HOST:CONTAINER` or `HOST:CONTAINER:ro`.
pub(crate) fn mount(text: &str) -> Result<Mount, String> {
    text.parse().map_err(problem)
}

/// Returns the message of an error without the name of its parameter.
fn problem(error: AgentError) -> String {
    match error.detail.as_deref() {
        Some(ErrorDetail::Parameter { problem, .. }) => problem.clone(),
        _ => error.message,
    }
}

/// Parses a waiting time such as `30m`; `0` is no wait, and `off` is [`Duration::MAX`].
pub(crate) fn wait_time(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        text => limit(text),
    }
}

/// Parses an amount of USD above zero.
pub(crate) fn usd(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("expected an amount above 0, such as 0.50".to_owned()),
    }
}

/// Parses a playback speed, which is finite and not negative.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed >= 0.0 => Ok(speed),
        _ => Err("expected a number from 0".to_owned()),
    }
}

/// Parses the path of a file. An empty path, as from an empty variable, is the default one.
pub(crate) fn config_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(|path: OsString| {
        if path.is_empty() {
            FILE_NAME.into()
        } else {
            path.into()
        }
    })
}

/// An environment variable for the agent. `Debug` leaves the value out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EnvVar {
    /// Name of the variable.
    pub(crate) name: String,
    /// Value of the variable; `None` takes it from teamster's own environment.
    pub(crate) value: Option<String>,
}

teamster_core::debug_fields!(EnvVar { name });

/// Parses `KEY=VALUE` or `KEY`.
///
/// Never fails: clap's error would print the whole argument, whose value may be a secret.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a value parser")]
pub(crate) fn env_var(text: &str) -> Result<EnvVar, String> {
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
    fn no_wait_is_not_an_unlimited_one() {
        assert_eq!(wait_time("0"), Ok(Duration::ZERO));
        assert_eq!(wait_time("off"), Ok(Duration::MAX));
        assert_eq!(wait_time("90s"), Ok(Duration::from_secs(90)));
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
