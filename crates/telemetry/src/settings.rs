//! What the standard variables of OpenTelemetry turn on. The exporter itself reads those about the connection.

use std::time::Duration;

/// Time limit of a request, unless a variable sets it: that of the specification.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the value 0, which means none in the specification. Not the longest duration, with which no time can be
/// calculated.
const NO_LIMIT: Duration = Duration::from_millis(u64::MAX);
/// The only supported protocol.
const PROTOCOL: &str = "http/protobuf";

/// A kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Prompts, answers, and arguments and results of tools are sent.
    pub(crate) content: bool,
    /// Time limit of a request.
    pub(crate) timeout: Duration,
    /// Reason for which nothing can be sent although it is turned on.
    pub(crate) problem: Option<String>,
}

impl Settings {
    /// Reads the settings of a signal. `None` if it is not turned on.
    pub(crate) fn read(signal: Signal, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        // An empty value counts as unset.
        let variable = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let of_signal = |name: &str| {
            let (own, common) = (
                format!("OTEL_EXPORTER_OTLP_{}_{name}", signal.name()),
                format!("OTEL_EXPORTER_OTLP_{name}"),
            );
            let own = variable(&own).map(|value| (own, value));
            own.or_else(|| variable(&common).map(|value| (common, value)))
        };
        if variable("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return None;
        }
        let is_on = match variable(&format!("OTEL_{}_EXPORTER", signal.name())) {
            Some(exporters) => exporters.split(',').any(|it| it.trim() == "otlp"),
            None => of_signal("ENDPOINT").is_some(),
        };
        if !is_on {
            return None;
        }
        // A value may be secret, so only its variable is named.
        let problem = of_signal("PROTOCOL")
            .filter(|(_, protocol)| protocol != PROTOCOL)
            .map(|(name, _)| {
                format!(
                    "only the protocol {PROTOCOL} is supported: set {name} to it, and the endpoint to the collector's port for HTTP"
                )
            });
        let problem = problem.or_else(|| {
            let (name, url) = of_signal("ENDPOINT")?;
            let is_url = ["http://", "https://"].iter().any(|it| url.starts_with(it));
            (!is_url)
                .then(|| format!("{name} is no URL: set it to one such as http://127.0.0.1:4318"))
        });
        let timeout = of_signal("TIMEOUT").and_then(|(_, ms)| ms.parse::<u64>().ok());
        let timeout = timeout.map_or(TIMEOUT, |ms| match ms {
            0 => NO_LIMIT,
            ms => Duration::from_millis(ms),
        });
        let content = variable("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        Some(Self {
            content: content.is_some_and(|it| {
                ["true", "span_only", "span_and_event"].contains(&&*it.to_ascii_lowercase())
            }),
            timeout,
            problem,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Settings> {
        read_signal(Signal::Traces, variables)
    }

    fn read_signal(signal: Signal, variables: &[(&str, &str)]) -> Option<Settings> {
        Settings::read(signal, |name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

    #[test]
    fn traces_are_on_with_an_endpoint_or_exporter_only() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("OTEL_SERVICE_NAME", "x")]), None);
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
        let own = [(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://127.0.0.1:4318/v1/traces",
        )];
        for on in [
            &[ENDPOINT][..],
            &own,
            &[("OTEL_TRACES_EXPORTER", "console, otlp")],
        ] {
            let settings = read(on).unwrap();
            assert_eq!(settings.timeout, Duration::from_secs(10));
            assert!(!settings.content);
            assert_eq!(settings.problem, None);
        }
        for off in [
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_TRACES_EXPORTER", "console"),
            ("OTEL_SDK_DISABLED", "TRUE"),
        ] {
            assert_eq!(read(&[ENDPOINT, off]), None, "{off:?}");
        }
        assert!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "1")]).is_some());
    }

    #[test]
    fn signals_are_turned_on_and_off_one_by_one() {
        let metrics = |variables: &[(&str, &str)]| {
            let settings = read_signal(Signal::Metrics, variables);
            (read(variables).is_some(), settings.is_some())
        };
        assert_eq!(metrics(&[ENDPOINT]), (true, true));
        let only = [(
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            "http://127.0.0.1:1/m",
        )];
        assert_eq!(metrics(&only), (false, true));
        let off = [ENDPOINT, ("OTEL_METRICS_EXPORTER", "none")];
        assert_eq!(metrics(&off), (true, false));
    }

    #[test]
    fn other_protocols_are_a_problem_that_names_the_variable() {
        let grpc = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap();
        let problem = grpc.problem.unwrap();
        assert!(
            problem.contains("set OTEL_EXPORTER_OTLP_PROTOCOL to it"),
            "{problem}"
        );
        let own = [
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ];
        assert_eq!(read(&own).unwrap().problem, None);
    }

    #[test]
    fn endpoint_without_a_scheme_is_a_problem() {
        let endpoint = [("OTEL_EXPORTER_OTLP_ENDPOINT", "user:secret@host:4318")];
        let problem = read(&endpoint).unwrap().problem.unwrap();
        assert!(
            problem.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT is no URL"),
            "{problem}"
        );
        assert!(!problem.contains("secret"), "{problem}");
    }

    #[test]
    fn content_and_timeout_are_of_their_variables() {
        let content = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
        for (value, expected) in [
            ("true", true),
            ("SPAN_ONLY", true),
            ("span_and_event", true),
            ("event_only", false),
            ("false", false),
        ] {
            let settings = read(&[ENDPOINT, (content, value)]).unwrap();
            assert_eq!(settings.content, expected, "{value}");
        }
        let own = [
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "500"),
        ];
        assert_eq!(read(&own).unwrap().timeout, Duration::from_millis(500));
        assert_eq!(read(&own[..2]).unwrap().timeout, Duration::from_secs(2));
        for (value, expected) in [("0", NO_LIMIT), ("-1", Duration::from_secs(10))] {
            let settings = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TIMEOUT", value)]).unwrap();
            assert_eq!(settings.timeout, expected, "{value}");
        }
    }
}
