//! Prints the requests to the mock server.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use teamster_mock_model::{Cli, MockModel, Request};

use crate::words;

/// Prints requests to stderr, a log file, or both.
#[derive(Debug)]
pub(super) struct RequestPrinter {
    reported: usize,
    stderr: bool,
    log: Option<File>,
}

impl RequestPrinter {
    pub(super) fn new(stderr: bool, log: Option<&Path>) -> anyhow::Result<Self> {
        let log = log
            .map(|path| {
                let file = File::options().create(true).append(true).open(path);
                file.with_context(|| format!("cannot write {}", path.display()))
            })
            .transpose()?;
        Ok(Self {
            reported: 0,
            stderr,
            log,
        })
    }

    /// Prints requests as they arrive. Never returns. Cancel-safe.
    pub(super) async fn report(&mut self, model: &MockModel) {
        loop {
            model.wait_for_requests(self.reported + 1).await;
            self.catch_up(model);
        }
    }

    /// Prints the requests that have arrived.
    pub(super) fn catch_up(&mut self, model: &MockModel) {
        for request in model.requests_from(self.reported) {
            self.reported += 1;
            if self.stderr {
                // The server runs without a reader of stderr as well.
                let _ = writeln!(anstream::stderr(), "{}", line(&request));
            }
            if let Some(log) = &mut self.log
                && let Err(error) = writeln!(log, "{}", request.to_json())
            {
                self.log = None;
                let why = format!("stopped writing requests: {error}");
                crate::report::warn(&[why]);
            }
        }
    }
}

/// Formats a request for people. Turns and attempts count from 1.
fn line(request: &Request) -> String {
    let dim = Style::new().dimmed();
    let color = if request.status < 400 {
        AnsiColor::Green
    } else {
        AnsiColor::Red
    };
    let status = color.on_default();
    let who = request.cli.map_or("?", Cli::id);
    let what = match (request.turn, request.attempt) {
        (Some(turn), Some(attempt @ 1..)) => format!("turn {}, attempt {}", turn + 1, attempt + 1),
        (Some(turn), _) => format!("turn {}", turn + 1),
        // A request beside the conversation, such as for its title.
        (None, _) if request.protocol.is_some() => "beside".to_owned(),
        (None, _) => "other".to_owned(),
    };
    let path = request.path.split('?').next().unwrap_or_default();
    let model = request.model.as_deref().unwrap_or_default();
    format!(
        "{who:<9}{what:<17} {status}{}{status:#}  {}  {dim}{} {}{dim:#}",
        request.status,
        words::one_line(model),
        words::one_line(&request.method),
        words::one_line(path),
    )
}
