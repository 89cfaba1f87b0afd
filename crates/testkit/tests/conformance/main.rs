//! Each check of the suite finds what it looks for, in a provider that is wrong on purpose.
#![cfg(test)]
