//! Where the messages of all runs go: to the server's own callback, and to browsers.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::time::Duration;

use super::{Callbacks, LOOK};
use crate::token::hash;
use crate::web_push::BROWSER;

/// The interval of checks whether the server that sends to the same target has ended. A run that ends in between is not sent.
const RETRY: Duration = Duration::from_secs(1);

/// The targets of all runs that this server has. Of several servers with the same folder and target, the first one sends
/// there until it ends: otherwise each message would come twice.
#[derive(Debug, Default)]
pub(super) struct Targets {
    held: HashMap<String, File>,
    /// Whether another server has one of them.
    is_elsewhere: bool,
    /// Why some cannot be known, which is reported once.
    problem: Option<String>,
}

impl Targets {
    /// Returns the targets. `known` are those so far: the browsers among them stay if their file cannot be read.
    pub(super) fn now<'a>(
        &mut self,
        callbacks: &Callbacks,
        known: impl Iterator<Item = &'a String>,
    ) -> Vec<String> {
        let mut targets: Vec<_> = callbacks.config.callback.iter().cloned().collect();
        let mut problem = None;
        let browsers = callbacks.web_push.as_ref().map(|it| it.targets());
        match browsers.transpose() {
            Ok(browsers) => targets.extend(browsers.unwrap_or_default()),
            Err(error) => {
                problem = Some(format!("web push: {error}"));
                targets.extend(known.filter(|it| it.starts_with(BROWSER)).cloned());
            }
        }
        let count = targets.len();
        targets.retain(|target| {
            self.hold(callbacks, target).unwrap_or_else(|error| {
                problem = Some(format!("callbacks: {error}"));
                false
            })
        });
        self.is_elsewhere = targets.len() < count;
        self.held.retain(|target, _| targets.contains(target));
        if let Some(problem) = &problem
            && self.problem.as_ref() != Some(problem)
        {
            callbacks.warn(problem);
        }
        self.problem = problem;
        targets
    }

    /// Returns the time after which they are to be looked at again.
    pub(super) fn interval(&self) -> Duration {
        if self.is_elsewhere { RETRY } else { LOOK }
    }

    /// Returns whether this server sends to a target.
    fn hold(&mut self, callbacks: &Callbacks, target: &str) -> io::Result<bool> {
        if !self.held.contains_key(target) {
            let name = format!("target-{}", &hash(target)[..32]);
            let Some(lock) = callbacks.files.try_lock(&name)? else {
                return Ok(false);
            };
            self.held.insert(target.to_owned(), lock);
        }
        Ok(true)
    }
}
