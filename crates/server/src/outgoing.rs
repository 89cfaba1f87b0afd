//! Requests to the addresses of others: webhooks, and push services of browsers.

mod post;
mod public_address;

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

pub(crate) use post::{Failure, Poster, check_target};

/// Returns the delays between this number of attempts.
pub(crate) fn delays(attempts: usize) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_secs(1))
        .with_max_delay(Duration::from_mins(15))
        .with_factor(3.0)
        .with_jitter()
        .with_max_times(attempts - 1)
        .build()
}
