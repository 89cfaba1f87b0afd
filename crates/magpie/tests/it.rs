//! Features that a provider has without any code elsewhere.
#![cfg(test)]

mod by_name;
mod conformance;
mod guide;

teamster_testkit::snapshot_tests!(
    teamster_magpie::Magpie,
    concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")
);
