//! Integration tests, in one program.

mod agent;
mod day;
mod supervisor;
