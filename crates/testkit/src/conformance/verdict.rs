//! Results of checks.

use std::fmt;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestError, TestRunner};

/// Result of a check, to be returned by a `#[test]`.
pub type Verdict = Result<(), Failures>;

/// Maximum number of failures that are shown for one check.
const SHOWN: usize = 20;

/// All failures of a check. Its `Debug` output is the message of the failing test.
#[derive(Clone, PartialEq, Eq)]
pub struct Failures {
    check: &'static str,
    list: Vec<String>,
}

impl Failures {
    /// Returns an empty list.
    pub(super) fn of(check: &'static str) -> Self {
        let list = Vec::new();
        Self { check, list }
    }

    /// Adds a failure. `location` is the fixture, the parameter or another location.
    pub(super) fn add(&mut self, location: impl fmt::Display, what: impl fmt::Display) {
        self.list.push(format!("{location}: {what}"));
    }

    pub(super) fn add_if_err(&mut self, location: impl fmt::Display, result: Result<(), String>) {
        if let Err(what) = result {
            self.add(location, what);
        }
    }

    pub(super) fn verdict(self) -> Verdict {
        if self.list.is_empty() {
            Ok(())
        } else {
            Err(self)
        }
    }

    /// Returns one line per failure: its location and the expectation.
    pub fn messages(&self) -> &[String] {
        &self.list
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} wrong", self.check, self.list.len())?;
        for message in self.list.iter().take(SHOWN) {
            writeln!(f, "- {message}")?;
        }
        if self.list.len() > SHOWN {
            writeln!(f, "- and {} more", self.list.len() - SHOWN)?;
        }
        Ok(())
    }
}

/// Runs a property test. Its error has the smallest failing value.
pub(super) fn property<S: Strategy>(
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), String>,
) -> Result<(), String> {
    let config = Config {
        // The suite has no test file in the provider's crate where seeds could be stored.
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(strategy, |value| {
        test(value).map_err(proptest::test_runner::TestCaseError::fail)
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, value)) => Err(format!("{reason}\n  with {value:?}")),
        Err(error) => Err(error.to_string()),
    }
}
