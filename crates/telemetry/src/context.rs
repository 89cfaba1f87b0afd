//! The place of a run in a trace, as environment variables have it.

use std::collections::HashMap;

use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// The variables, and the headers of the W3C in which they are defined.
const VARIABLES: [(&str, &str); 2] = [("TRACEPARENT", "traceparent"), ("TRACESTATE", "tracestate")];

/// Reads a context. `None` without a valid one.
pub(crate) fn context_of(variable: impl Fn(&str) -> Option<String>) -> Option<Context> {
    let variables = VARIABLES.into_iter();
    let headers: HashMap<String, String> = variables
        .filter_map(|(name, header)| Some((header.to_owned(), variable(name)?)))
        .collect();
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    let is_valid = context.span().span_context().is_valid();
    is_valid.then_some(context)
}

pub(crate) fn variables(context: &Context) -> Vec<(String, String)> {
    let mut headers: HashMap<String, String> = HashMap::new();
    TraceContextPropagator::new().inject_context(context, &mut headers);
    let variables = VARIABLES.into_iter().filter_map(|(name, header)| {
        let value = headers.remove(header)?;
        (!value.is_empty()).then(|| (name.to_owned(), value))
    });
    variables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_variables_are_a_context_and_it_is_them() {
        let given = [
            (
                "TRACEPARENT",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ),
            ("TRACESTATE", "a=b"),
        ];
        let of = |given: &[(&str, &str)]| {
            context_of(|name| {
                let found = given.iter().find(|(own, _)| *own == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let context = of(&given).unwrap();
        let span = context.span().span_context().clone();
        assert_eq!(
            span.trace_id().to_string(),
            "0af7651916cd43dd8448eb211c80319c"
        );
        assert_eq!(span.span_id().to_string(), "b7ad6b7169203331");
        assert!(span.is_remote() && span.is_sampled());
        let read = variables(&context);
        let read: Vec<_> = read.iter().map(|(name, it)| (&**name, &**it)).collect();
        assert_eq!(read, given);
        for invalid in ["", "x", "00-0-0-01"] {
            assert!(of(&[("TRACEPARENT", invalid)]).is_none(), "{invalid}");
        }
    }
}
