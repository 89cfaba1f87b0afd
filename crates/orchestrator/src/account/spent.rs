//! What a run has used.

use teamster_core::Usage;

/// What has been used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) usage: Usage,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) turns: u32,
}

/// The sum; what only one side has is kept as it is.
pub(super) fn sum<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (one, None) | (None, one) => one,
    }
}
