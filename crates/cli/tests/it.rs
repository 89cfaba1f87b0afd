//! The tests of the program as a whole, in one program.

mod agents;
mod cli;
mod soak;
