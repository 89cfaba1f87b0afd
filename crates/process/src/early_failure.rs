//! Cause of a failure before the first line of a CLI.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use teamster_core::ErrorDetail;
use teamster_core::provider::Stop;

use crate::driver::Driver;
use crate::node::node_problem;
use crate::program::not_found;
use crate::reading::Reader;

impl<R: Reader> Driver<R> {
    /// Returns what a CLI that failed before its first line has printed.
    pub(crate) fn early_failure(&self) -> Option<String> {
        let has_failed = self.tree.status().is_some_and(|status| !status.success());
        (has_failed && !self.clock.has_line).then(|| self.tail.text())
    }

    /// Returns the reason of an early failure, if it is a container that was not started or a Node.js that is too old, or a
    /// request to stop the run, which does not wait for the answer of Node.js.
    pub(crate) async fn explained(&mut self, stderr: &str) -> Option<Stop> {
        if let Some(container) = &self.container {
            let code = self.tree.status().and_then(|status| status.code());
            let error = code.and_then(|code| container.not_started(code, stderr));
            return error.map(Stop::Failed);
        }
        let (program, path) = self.program.clone();
        let problem = {
            // Dropping it ends the process that it has asked.
            let mut problem = pin!(node_problem(&program, stderr, path.as_deref()));
            poll_fn(|cx| {
                if self.reader.poll(cx) {
                    // Only a poll without news registers the task.
                    cx.waker().wake_by_ref();
                }
                if self.stop_wanted().is_some() || self.reader.is_interrupting() {
                    return Poll::Ready(None);
                }
                problem.as_mut().poll(cx)
            })
            .await
        };
        let explained = problem.map(|problem| {
            let error = not_found(format!("{} {problem}", program.display()));
            Stop::Failed(error.detail(ErrorDetail::missing_program("node", "")))
        });
        explained.or_else(|| self.stop_wanted())
    }
}
