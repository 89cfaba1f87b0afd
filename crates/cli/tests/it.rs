//! Integration tests of the program, in one test binary.

mod agents;
mod cli;
mod soak;
