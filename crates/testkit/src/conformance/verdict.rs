//! Results of checks.

use std::fmt;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestError, TestRunner};

/// The result of a check. A `#[test]` returns it as it is.
pub type Verdict = Result<(), Failures>;

/// Failures shown of one check; after so many the rest is more of the same.
const SHOWN: usize = 20;

/// All failures of a check. Its `Debug` is the message of the failing test.
#[derive(Clone, PartialEq, Eq)]
pub struct Failures {
    check: &'static str,
    list: Vec<String>,
}

impl Failures {
    /// None so far.
    pub(super) fn of(check: &'static str) -> Self {
        let list = Vec::new();
        Self { check, list }
    }

    /// `place` is the fixture, the parameter or another place to look at.
    pub(super) fn add(&mut self, place: impl fmt::Display, what: impl fmt::Display) {
        self.list.push(format!("{place}: {what}"));
    }

    pub(super) fn add_if_err(&mut self, place: impl fmt::Display, result: Result<(), String>) {
        if let Err(what) = result {
            self.add(place, what);
        }
    }

    pub(super) fn verdict(self) -> Verdict {
        if self.list.is_empty() {
            Ok(())
        } else {
            Err(self)
        }
    }

    /// One line for each thing that is wrong: where it is and what was expected.
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

/// Runs a property test; what it returns, if it fails, names the smallest failing value.
pub(super) fn property<S: Strategy>(
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), String>,
) -> Result<(), String> {
    let config = Config {
        // The suite is no file of the provider's tests, so there is none to keep seeds beside.
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
