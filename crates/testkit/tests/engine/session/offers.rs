//! A process that is only asked what a session would offer.

use std::sync::Arc;

use serde_json::{Value, json};
use teamster_core::provider::OffersProtocol;
use teamster_core::{Offers, SessionRuntime, SlashCommand};
use teamster_process::CliRuntime;
use teamster_testkit::proc::{is_alive, wait_gone};
use tokio::sync::mpsc;

use super::talker::{Prepared, prepared};
use crate::engine::LIMIT;

/// An agent that offers a command with its process's id as the name, and the ids of the processes that got
/// `prompt`.
fn asked(prompt: &'static str) -> (Prepared, mpsc::UnboundedReceiver<u32>) {
    let mut prepared = prepared();
    let (pids, received) = mpsc::unbounded_channel();
    prepared.talker.query = Some(Arc::new(move || {
        let pids = pids.clone();
        OffersProtocol::new(&[json!({"prompt": prompt})], 1, move |line| {
            let line: Value = serde_json::from_slice(line).ok()?;
            let text = line["t"].as_str()?;
            let pid = text.strip_prefix("waiting ").unwrap_or(text);
            pids.send(pid.parse().unwrap()).unwrap();
            // One that waits has not answered.
            (pid == text).then(|| Offers::new().commands(vec![SlashCommand::new(pid)]))
        })
    }));
    (prepared, received)
}

#[tokio::test]
async fn an_agent_that_has_said_what_it_offers_has_ended() {
    let (prepared, mut pids) = asked("pid");
    let runtime = CliRuntime::with_config(prepared.talker, prepared.config);
    let offers = runtime.offers(prepared.options).await.unwrap().unwrap();
    let pid = pids.recv().await.unwrap();
    assert!(!is_alive(pid));
    let command = SlashCommand::new(pid.to_string());
    assert_eq!(offers, Offers::new().commands(vec![command]));
}

#[tokio::test]
async fn an_agent_that_is_not_asked_any_more_is_ended() {
    let (prepared, mut pids) = asked("wait");
    let runtime = CliRuntime::with_config(prepared.talker, prepared.config);
    let mut asking = runtime.offers(prepared.options);
    let pid = tokio::select! {
        offers = &mut asking => panic!("{offers:?}"),
        pid = pids.recv() => pid.unwrap(),
    };
    drop(asking);
    let gone = tokio::task::spawn_blocking(move || wait_gone(pid, LIMIT));
    assert!(gone.await.unwrap());
}

#[tokio::test]
async fn an_agent_that_ends_without_an_answer_is_an_error() {
    let (prepared, _pids) = asked("die");
    let runtime = CliRuntime::with_config(prepared.talker, prepared.config);
    let error = runtime.offers(prepared.options).await.unwrap_err();
    assert!(!error.message.is_empty(), "{error}");
}

#[tokio::test]
async fn an_agent_that_cannot_be_asked_is_not_started() {
    let mut prepared = prepared();
    prepared.config.program = Some("/nowhere/talker".into());
    let runtime = CliRuntime::with_config(prepared.talker, prepared.config);
    assert_eq!(runtime.offers(prepared.options).await.unwrap(), None);
}
