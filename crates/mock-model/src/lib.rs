//! A loopback server that plays a scripted model in the wire protocols of coding-agent CLIs: Anthropic
//! Messages, OpenAI Responses, OpenAI Chat Completions and Gemini `streamGenerateContent`, all streamed.
//!
//! It runs real CLIs without a network or a key, with a model that always gives the same answers, to try and
//! to test programs that drive such CLIs. One [`Script`] serves all CLIs: it names actions (`shell`,
//! `read_file`, `write_file`, `mcp`), and each CLI gets a call of its own tool.
//!
//! ```
//! use teamster_mock_model::{Cli, MockModel};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = "[[turn]]\nparts = [{ text = [\"Hello, \", \"world.\"] }]".parse()?;
//! let model = MockModel::start(script).await?;
//!
//! // The variables, flags and files with which a CLI asks this model only.
//! let pointing = Cli::Claude.point_at(&model.url());
//! assert!(pointing.env.contains(&("ANTHROPIC_BASE_URL".to_owned(), model.url())));
//!
//! // … run the CLI, then check its requests.
//! assert!(model.requests().is_empty());
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod cli;
mod home;
mod json;
mod protocol;
mod script;
mod server;
mod wire;

pub use cli::{Cli, HomeFile, Pointing};
pub use home::{HomeVariables, PointedHome, URL_VARIABLE};
pub use protocol::Protocol;
pub use script::{
    ErrorKind, HttpError, Part, Pieces, Script, ScriptError, Stop, SubAgent, Tokens, Turn,
};
pub use server::{MockModel, MockModelSettings, Request};
