//! Places of runs in traces.

use std::collections::BTreeMap;
use std::env;

use serde::{Deserialize, Serialize};

/// Longest value of a header, in bytes. Longer ones are not those of a tracer.
const LONGEST: usize = 1024;

/// The place of a run in a trace of OpenTelemetry: the span that becomes its parent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceContext {
    parent: String,
    state: Option<String>,
}

impl TraceContext {
    /// Variable with the header `traceparent` of the W3C.
    pub const PARENT: &'static str = "TRACEPARENT";
    /// Variable with the header `tracestate` of the W3C.
    pub const STATE: &'static str = "TRACESTATE";

    /// Creates the place with these values of the headers. `None` if `parent` is not the value of a header.
    pub fn new(parent: impl Into<String>, state: Option<String>) -> Option<Self> {
        let parent = parent.into();
        is_value(&parent).then_some(Self { parent, state })
    }

    /// Returns the place that the variables of this process name.
    pub fn from_environment() -> Option<Self> {
        Self::new(env::var(Self::PARENT).ok()?, env::var(Self::STATE).ok())
    }

    /// Removes the place from the variables of a run. A state without a parent is none.
    pub fn take(variables: &mut BTreeMap<String, String>) -> Option<Self> {
        let state = variables.remove(Self::STATE);
        Self::new(variables.remove(Self::PARENT)?, state)
    }

    /// Returns the variables.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let parent = Some((Self::PARENT, self.parent.clone()));
        let state = self.state.clone().map(|state| (Self::STATE, state));
        let variables = [parent, state].into_iter().flatten();
        // They may have come from another process.
        let valid = variables.filter(|(_, value)| is_value(value));
        valid.map(|(name, value)| (name.to_owned(), value))
    }
}

fn is_value(value: &str) -> bool {
    let is_visible = |byte: u8| (b' '..=b'~').contains(&byte);
    !value.is_empty() && value.len() <= LONGEST && value.bytes().all(is_visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_place_is_taken_from_variables_and_is_them() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let place = [pair("TRACEPARENT", PARENT), pair("TRACESTATE", "a=b")];
        let mut variables = BTreeMap::from(place.clone());
        variables.insert("CI".to_owned(), "1".to_owned());
        let trace = TraceContext::take(&mut variables).unwrap();
        assert_eq!(variables, BTreeMap::from([pair("CI", "1")]));
        assert_eq!(trace.variables().collect::<Vec<_>>(), place);
        assert!(TraceContext::take(&mut variables).is_none());
    }

    #[test]
    fn values_that_no_header_can_have_are_left_out() {
        for invalid in ["", "a\nb", "\0", &"x".repeat(1025)] {
            assert!(TraceContext::new(invalid, None).is_none(), "{invalid:?}");
            let trace = TraceContext::new(PARENT, Some(invalid.to_owned())).unwrap();
            let variables: Vec<_> = trace.variables().map(|(name, _)| name).collect();
            assert_eq!(variables, ["TRACEPARENT"], "{invalid:?}");
        }
    }
}
