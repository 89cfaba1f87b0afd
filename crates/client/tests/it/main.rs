//! The client against a server, and against servers that fail, are slow, or are another program. What these send is made
//! by hand.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

mod calls;
mod contract;
mod fake;
mod log;
mod once;
mod requests;
mod ssh;
mod strangers;
