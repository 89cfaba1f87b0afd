//! `teamster answer`: answers a request of a detached run.

pub(crate) mod args;

use anyhow::{Context, bail};
use teamster_api::{Answer, PendingRequest, ServiceError, ViewState, typed_answer};

use crate::detached::Run;
use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use crate::{exit_code, words};
use args::AnswerArgs;

/// Answers the request and returns the exit code.
pub(crate) fn main(args: &AnswerArgs, machine: &Machine) -> anyhow::Result<u8> {
    let id = &*args.id;
    let (number, word) = match &*args.words {
        [word] => (None, word),
        [number, word] => (Some(&**number), word),
        _ => bail!("expected an answer"),
    };
    // A request's id is RUN/NUMBER. The run's id may be a prefix.
    let (run, own) = match id.rsplit_once('/') {
        Some((run, number)) => (run, Some(number)),
        None => (id, None),
    };
    if own.is_some() && number.is_some() {
        bail!("name the request once: {id}, or {run} and its number");
    }
    // The second argument may be the whole id, as `teamster requests` prints it.
    let number = number.map(|it| it.rsplit('/').next().unwrap_or(it));
    tokio_runtime()?.block_on(async {
        let run = Run::find(machine, run).await?;
        let waiting = run.handle.requests().await?;
        let request_id = match own.or(number) {
            Some(number) => format!("{}/{number}", run.id()),
            None => only(&run, &waiting).await?,
        };
        let request = waiting.iter().find(|it| it.request_id == request_id);
        let answer = answer(args, word, request)?;
        run.handle.answer(request_id, answer).await?;
        anyhow::Ok(exit_code::SUCCESS)
    })
}

/// Returns the id of the only pending request.
async fn only(run: &Run, waiting: &[PendingRequest]) -> anyhow::Result<String> {
    match waiting {
        [only] => Ok(only.request_id.clone()),
        [] => {
            if run.handle.outline().await?.summary.state == ViewState::Ended {
                return Err(ServiceError::ended(run.id()).into());
            }
            bail!(
                "run {} has no pending request: `{} requests` lists those of all runs",
                run.id(),
                crate::global::typed(),
            )
        }
        several => {
            let ids: Vec<_> = several.iter().map(|it| &*it.request_id).collect();
            bail!("several requests are pending, name one: {}", ids.join(", "))
        }
    }
}

/// Converts the argument to an answer for this request.
fn answer(
    args: &AnswerArgs,
    word: &str,
    request: Option<&PendingRequest>,
) -> anyhow::Result<Answer> {
    let reason = args.reason.clone();
    let is_deny = word == "deny";
    if reason.is_some() && !is_deny {
        bail!("--reason requires the answer deny");
    }
    if args.input.is_some() && word != "allow" {
        bail!("--input requires the answer allow");
    }
    let schema = request.and_then(|request| request.schema.as_ref());
    Ok(match (word, &args.input) {
        ("deny", _) => Answer::Deny { reason },
        ("allow", Some(input)) => Answer::AllowWith {
            input: serde_json::from_str(input).context("--input: expected JSON")?,
        },
        ("allow", None) => Answer::Allow,
        ("always", _) => Answer::AllowAlways,
        (text, _) => Answer::AllowWith {
            input: match schema {
                Some(schema) => typed_answer(text, schema)?,
                None => bail!(
                    "`{}` is not a valid answer: expected allow, always or deny",
                    words::one_line(text)
                ),
            },
        },
    })
}
