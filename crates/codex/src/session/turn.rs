//! The turn that is being played.

use std::collections::HashMap;

use serde_json::Value;
use teamster_core::Turn;
use teamster_core::provider::OrderId;

use super::errors::Failure;
use crate::decoder::items::Items;

/// A turn that was given to the CLI, or that it began by itself.
#[derive(Debug, Default)]
pub(super) struct Playing {
    /// Which one it is, in this process.
    pub(super) number: u64,
    /// The CLI's id of it, as soon as that is known.
    pub(super) id: Option<String>,
    /// The CLI has said that it plays it. Before that it can be neither interrupted nor steered.
    pub(super) started: bool,
    pub(super) interrupt: Interrupt,
    pub(super) prompt: Prompt,
    pub(super) items: Items,
    /// The parts of a summary of the model's reasoning, by the item that they are of.
    pub(super) parts: HashMap<String, u64>,
    /// Requests that the CLI made again.
    pub(super) retries: u32,
    /// What the CLI said failed, until the end of the turn tells whether it did.
    pub(super) pending: Option<Failure>,
    /// Changes of files with their texts, by the item that they are of.
    pub(super) changes: HashMap<String, Value>,
    /// Another model that has answered.
    pub(super) model: Option<String>,
}

/// What became of a turn's prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Prompt {
    #[default]
    Given,
    /// A hook does not let it through, and says this. The CLI calls such a turn completed.
    HeldBack(String),
    /// It is part of the conversation.
    Taken,
}

/// Whether a turn is to be interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Interrupt {
    #[default]
    No,
    /// As soon as that can be.
    Wanted,
    /// The CLI got the request.
    Told,
}

/// What was wanted in a turn that does not take it yet.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// A turn that was not given to the CLI yet.
    pub(super) turn: Option<Turn>,
    /// What is to be said in the turn as soon as that can be.
    pub(super) steers: Vec<(OrderId, String)>,
}

/// How the last turn ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended {
    pub(super) is_error: bool,
    pub(super) interrupted: bool,
    pub(super) stop_reason: Option<String>,
    /// The last message, if it ended well.
    pub(super) answer: Option<String>,
}
