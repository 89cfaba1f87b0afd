//! The CLI.

use super::{Call, Place, Pointing};
use crate::Part;

pub(super) fn point_at(_url: &str) -> Pointing {
    Pointing::default()
}

pub(super) fn is_asking(_user_agent: &str, _tools: &[String]) -> bool {
    false
}

pub(super) fn call(_part: &Part, _place: &Place<'_>) -> Option<Call> {
    None
}
