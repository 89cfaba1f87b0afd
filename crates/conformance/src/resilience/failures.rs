//! Failures of a model after which a CLI, and with it the run, gives up soon.

use std::path::Path;

use anyhow::bail;
use serde_json::{Value, json};
use teamster_mock_model::{Cli, ErrorKind, HttpError, Part, Pointing, Turn};

use super::answers::only;

/// Number of retries by the CLI itself, if configurable.
pub(crate) const CLI_RETRIES: u32 = 0;

/// Adds the settings file that makes a CLI give up after one request, if it needs one.
pub(crate) fn impatient(cli: Cli, pointing: &mut Pointing) -> anyhow::Result<()> {
    const PATIENT: &str = "\"maxAttempts\": 3";
    if cli == Cli::Pi {
        let name = Path::new(".pi/agent/settings.json");
        let Some(file) = pointing.files.iter_mut().find(|file| file.path == name) else {
            bail!("{cli} has no settings any more");
        };
        // For both the CLI's own retries and those of the service's library.
        let mut settings: Value = serde_json::from_str(&file.content)?;
        settings["retry"] = json!({"enabled": false, "provider": {"maxRetries": 0}});
        file.content = settings.to_string();
    }
    if cli == Cli::Gemini {
        let Some(settings) =
            (pointing.files.iter_mut()).find(|file| file.content.contains(PATIENT))
        else {
            bail!("the settings of {cli} have no {PATIENT} any more");
        };
        settings.content = settings.content.replace(PATIENT, "\"maxAttempts\": 1");
    }
    Ok(())
}

/// Number of OpenCode's requests before it gives up, which is not configurable.
const OPENCODE_REQUESTS: u32 = 6;

/// Returns an answer after which a CLI gives up within seconds. The error is always transient, so that the
/// decision table retries the run.
pub(crate) fn passing(cli: Cli) -> Turn {
    let server = |header: Option<(&str, &str)>| failed(ErrorKind::Server, header);
    match cli {
        // Codex does not retry after an event of an overloaded service.
        Cli::Codex => only(1, Turn::new(vec![Part::Error(ErrorKind::Overloaded)])),
        // Copilot gives up immediately if the service forbids a retry.
        Cli::Copilot => only(1, server(Some(("x-should-retry", "false")))),
        // Gemini CLI does not retry after a broken connection.
        Cli::Gemini => only(
            1,
            Turn::new(vec![Part::Text("This will be cut".into()), Part::Cut]),
        ),
        // OpenCode always sends six requests, with the delay that the service requests.
        Cli::OpenCode => only(OPENCODE_REQUESTS, server(Some(("retry-after-ms", "10")))),
        // Configured to send one request: Pi by its settings, the others by `cli_retries`.
        _ => only(1, server(None)),
    }
}

/// Returns a throttling error for one attempt of the run. [`reported_wait`] is the delay that the CLI reports.
pub(crate) fn rate_limit(cli: Cli) -> Turn {
    let turn = match cli {
        Cli::Copilot => failed(ErrorKind::RateLimit, Some(("x-should-retry", "false"))),
        Cli::OpenCode => failed(ErrorKind::RateLimit, Some(("retry-after-ms", "300"))),
        // Codex would retry by itself after an error with a delay.
        Cli::Codex => failed(ErrorKind::RateLimit, None),
        _ => failed(ErrorKind::RateLimit, Some(("retry-after", "1"))),
    };
    let requests = match cli {
        Cli::OpenCode => OPENCODE_REQUESTS,
        _ => 1,
    };
    only(requests, turn)
}

/// Returns the delay that the service requests in [`rate_limit`], in milliseconds.
pub(crate) fn reported_wait(cli: Cli) -> Option<u64> {
    match cli {
        Cli::OpenCode => Some(300),
        Cli::Gemini => Some(1000),
        _ => None,
    }
}

fn failed(kind: ErrorKind, header: Option<(&str, &str)>) -> Turn {
    let mut error = HttpError::new(kind);
    if let Some((name, value)) = header {
        error.headers.insert(name.to_owned(), value.to_owned());
    }
    Turn::failed(error)
}
