//! What the standard variables of OpenTelemetry turn on. The exporter itself reads those about the connection.

use std::time::Duration;

/// Time limit of a request, unless a variable sets it: that of the specification.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The only supported protocol.
const PROTOCOL: &str = "http/protobuf";

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Prompts, answers, and arguments and results of tools are sent.
    pub(crate) content: bool,
    /// Time limit of a request with spans.
    pub(crate) timeout: Duration,
    /// Reason for which nothing can be sent although it is turned on.
    pub(crate) problem: Option<String>,
}

impl Settings {
    /// Reads the settings of traces. `None` if these are not turned on.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        // An empty value counts as unset.
        let variable = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let of_signal = |name: &str| {
            let (own, common) = (
                format!("OTEL_EXPORTER_OTLP_TRACES_{name}"),
                format!("OTEL_EXPORTER_OTLP_{name}"),
            );
            let own = variable(&own).map(|value| (own, value));
            own.or_else(|| variable(&common).map(|value| (common, value)))
        };
        if variable("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return None;
        }
        let is_on = match variable("OTEL_TRACES_EXPORTER") {
            Some(exporters) => exporters.split(',').any(|it| it.trim() == "otlp"),
            None => of_signal("ENDPOINT").is_some(),
        };
        if !is_on {
            return None;
        }
        let problem = of_signal("PROTOCOL")
            .filter(|(_, protocol)| protocol != PROTOCOL)
            .map(|(name, _)| {
                format!(
                    "only the protocol {PROTOCOL} is supported: set {name} to it, and the endpoint to the collector's port for HTTP"
                )
            });
        let timeout = of_signal("TIMEOUT").and_then(|(_, ms)| ms.parse().ok());
        let content = variable("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        Some(Self {
            content: content.is_some_and(|it| {
                ["true", "span_only", "span_and_event"].contains(&&*it.to_ascii_lowercase())
            }),
            timeout: timeout.map_or(TIMEOUT, Duration::from_millis),
            problem,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Settings> {
        Settings::read(|name| {
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
    }
}
