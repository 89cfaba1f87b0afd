//! Log lines about a loop's settings and the processes that it starts.

use std::path::Path;

use teamster_core::text::excerpt;
use teamster_process::{LineObserver, StartObserver};

use crate::instructions::has_instructions;
use crate::{Log, Settings};

impl Settings {
    /// Logs the settings of the loop in this directory, and warnings about missing files.
    pub(crate) fn report(&self, directory: &Path, has_variables: bool, log: &Log) {
        let pace = self.pace;
        log.line(format!(
            "agent-loop start pid={} cwd={} runtime={} adapter={} min={}s step={}s max={}s timeout={}s",
            std::process::id(),
            directory.display(),
            self.name(),
            self.adapter_kind(),
            pace.min_sleep,
            pace.idle_step,
            pace.max_sleep,
            self.turn_limit.as_secs(),
        ));
        if pace.max_sleep < pace.min_sleep {
            log.line("warning: MAX_SLEEP is less than MIN_SLEEP and is ignored");
        }
        if !has_variables {
            log.line("warning: no .env in the agent's directory");
        }
        if !has_instructions(directory, &self.instructions) {
            log.line(format!(
                "warning: no instructions: create {} in {}",
                self.instructions.join(" or "),
                directory.display()
            ));
        }
    }

    /// Returns an observer that logs the stderr of the agent's CLI.
    pub fn stderr_to(&self, log: &Log) -> LineObserver {
        let before = format!("{} stderr: ", self.name());
        let log = log.clone();
        LineObserver::new(move |line| log.lines(&before, line))
    }

    /// Returns an observer that logs each start of the agent's CLI.
    pub fn starts_to(&self, log: &Log) -> StartObserver {
        let name = self.name().to_owned();
        // The arguments of a user's own command may be secret.
        let with_args = !self.agent.id.contains(':');
        let log = log.clone();
        StartObserver::new(move |process| {
            let args = if with_args {
                short(&process.args)
            } else {
                String::new()
            };
            let program = process.program.display();
            log.line(format!("{name} pid={}: {program}{args}", process.pid));
        })
    }
}

/// Formats arguments for the log, each shortened to one line of 80 bytes.
fn short(args: &[String]) -> String {
    const LONGEST: usize = 80;
    let words = args.iter().map(|arg| {
        let words: Vec<&str> = arg.split_whitespace().collect();
        let words = excerpt(&words.join(" "), LONGEST);
        format!(" {}", shell_words::quote(&words))
    });
    words.collect()
}
