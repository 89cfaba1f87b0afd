//! Runs of a fleet on a real server on loopback. Without `nats-server`, these tests are skipped.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]
#![expect(clippy::print_stderr, reason = "a skipped test names its reason")]

/// Starts a server, or ends the test where there is no program.
macro_rules! server_or_skip {
    () => {{
        let Some(server) = crate::server::Server::start() else {
            return;
        };
        server
    }};
}

mod accounts;
mod bad;
mod chaos;
mod clocks;
mod contract;
mod figures;
mod forged;
mod given_up;
mod homes;
mod janitor;
mod large;
mod listing;
mod login;
mod machine;
mod machines;
mod newer;
mod operator;
mod placement;
mod roles;
mod same_id;
mod server;
mod simulate;
mod status;
mod submitter;
mod unknown;

async fn next<S: futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context)).await
}
