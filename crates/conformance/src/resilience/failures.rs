//! Failures of a model after which a CLI gives up soon, and the run with it.

use anyhow::bail;
use teamster_mock_model::{Cli, ErrorKind, HomeFile, HttpError, Part, Pointing, Turn};

use super::answers::only;

/// How often the CLI itself asks again, where that can be set.
pub(crate) const CLI_RETRIES: u32 = 0;

/// Has a CLI give up after one request, where that needs a file of settings.
pub(crate) fn impatient(cli: Cli, pointing: &mut Pointing) -> anyhow::Result<()> {
    const PATIENT: &str = "\"maxAttempts\": 3";
    if cli == Cli::Pi {
        // Both what asks again and the library of the service that it asks by.
        let settings = r#"{"retry": {"enabled": false, "provider": {"maxRetries": 0}}}"#;
        let file = HomeFile::new(".pi/agent/settings.json", settings);
        pointing.files.push(file);
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

/// How often OpenCode asks before it gives up. No setting changes that.
const OPENCODE_REQUESTS: u32 = 6;

/// An answer after which a CLI gives up within seconds. It is always one that may pass, so that the
/// decision table has the run tried again.
pub(crate) fn passing(cli: Cli) -> Turn {
    let server = |header: Option<(&str, &str)>| failed(ErrorKind::Server, header);
    match cli {
        // The CLI does not retry after an event of an overloaded service.
        Cli::Codex => only(1, Turn::new(vec![Part::Error(ErrorKind::Overloaded)])),
        // It gives up at once if the service forbids a retry.
        Cli::Copilot => only(1, server(Some(("x-should-retry", "false")))),
        // It does not retry after a connection that was closed in the middle.
        Cli::Gemini => only(
            1,
            Turn::new(vec![Part::Text("This will be cut".into()), Part::Cut]),
        ),
        // It asks six times with any setting, and waits as long as the service requests.
        Cli::OpenCode => only(OPENCODE_REQUESTS, server(Some(("retry-after-ms", "10")))),
        // It is set to ask once: Pi by its settings, the others by `cli_retries`.
        _ => only(1, server(None)),
    }
}

/// Too many requests, in so many attempts of the run. What the CLI then knows about when to come
/// back is [`reported_wait`].
pub(crate) fn rate_limit(cli: Cli, attempts: u32) -> Turn {
    let mut turn = match cli {
        Cli::Copilot => failed(ErrorKind::RateLimit, Some(("x-should-retry", "false"))),
        Cli::OpenCode => failed(ErrorKind::RateLimit, Some(("retry-after-ms", "300"))),
        // With a word when to come back it would ask again by itself.
        Cli::Codex => failed(ErrorKind::RateLimit, None),
        _ => failed(ErrorKind::RateLimit, Some(("retry-after", "1"))),
    };
    let requests = match cli {
        Cli::OpenCode => OPENCODE_REQUESTS,
        _ => 1,
    };
    turn.times = Some(requests * attempts);
    turn
}

/// How long the service asks to wait after [`rate_limit`], in milliseconds.
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
