//! The HTTP API over a service of runs in memory.
#![expect(clippy::unwrap_used, reason = "a test")]

mod it {
    mod callbacks;
    mod came;
    mod constraints;
    mod document;
    mod faulty;
    mod feed;
    mod fleet;
    mod login;
    mod page;
    mod refusals;
    mod rights;
    mod runs;
    mod scopes;
    mod served;
    mod sessions;
    mod streams;
    mod triggers;
    mod web_push;
}
