//! The client against servers that fail, are slow, or are another program. What they send is made by hand.

mod calls;
mod fake;
mod log;
mod once;
mod requests;
mod strangers;
