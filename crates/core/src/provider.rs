//! API for authors of providers: launching a CLI and decoding its output.
//!
//! Applications do not need this module, and the facade does not export it. The traits
//! [`CliProvider`](crate::CliProvider) and [`SessionProvider`](crate::SessionProvider) are at the root, because
//! applications can register providers.
//!
//! - [`Launch`]: the launch of a CLI, with [`Args`] for its arguments;
//! - [`Decoder`] and [`Events`]: lines to events, with [`json_line`], [`mixed_line`] and [`surrogates`] for CLIs that
//!   print JSON;
//! - [`SessionProtocol`] and [`Outbox`]: communication with a live session;
//! - [`RunAssembler`] and [`SessionAssembler`]: the pure code between a decoder and the stream, which every live
//!   run, replay, test and benchmark uses;
//! - [`grammar`]: a checker of streams.
//!
//! # Making events
//!
//! An event is made with the `new` of its payload and converted with `into`. Each optional field of a payload, a
//! result, its figures and an [`AgentError`](crate::AgentError) has a setter of its name, which takes the value or an
//! option of it. They are here and not at the types, which show what readers of events need.
//!
//! ```
//! use teamster_core::{AgentEvent, Id, Text};
//!
//! let missing: Option<Id> = None;
//! let text = Text::new("hi").message_id("m1").parent_tool_id(missing);
//! assert_eq!(text.message_id.as_deref(), Some("m1"));
//! let event: AgentEvent = text.into();
//! # assert!(matches!(event, AgentEvent::Text(_)));
//! ```

mod args;
mod assemble;
mod begun_calls;
mod check;
mod classify;
mod content;
mod decoder;
mod folders;
mod form;
pub mod grammar;
pub mod json_line;
mod launch;
mod live_output;
pub mod mixed_line;
mod offers_query;
mod secrets;
mod session;
pub mod surrogates;
mod unique_ids;

pub use crate::cli_info::{
    COMMON_INSTRUCTIONS, CredentialFile, Credentials, FileLocation, LoopContext, LoopSettings,
    LoopSupport, Sign,
};
pub use crate::mcp::{MCP_VARIABLES, mcp_variable, without_credentials};
pub use args::Args;
pub use assemble::{Phase, RunAssembler};
pub use begun_calls::BegunCalls;
pub use check::{LARGEST_PROMPT_ARGUMENT, is_uuid};
pub use content::{mcp_content, media_placeholder};
pub use decoder::{
    Activity, DecodedResult, Decoder, Events, Exit, OtherRecordFiles, RecordFiles, Stop,
};
pub use folders::base_directory;
pub use form::{ChoiceField, choice_form, form_names};
pub use launch::{
    ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable, DisplacedFile, EventsOn,
    LOCAL_GIT_VARIABLES, Launch, PathLocation, PrivateFile, PrivateHome, RUN_ID_VARIABLE, Signal,
    Stdin, StopStep,
};
pub use live_output::LiveOutput;
pub use offers_query::{OffersProtocol, OffersQuery};
pub use secrets::Secrets;
pub use session::{
    CommandId, Outbox, SessionAssembler, SessionCommand, SessionProtocol, TurnOrigin,
};
pub use unique_ids::UniqueIds;
