//! The tests of this crate that use it as others do, in one program.

mod agent;
mod day;
mod supervisor;
