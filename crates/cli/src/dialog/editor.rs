//! The line editor at a terminal.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Behavior, Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor,
    Event, EventContext, EventHandler, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};

use super::command;
use super::input::{Entry, Source};
use super::offered;
use super::terminal::EditorGuard;
use crate::completion;

/// Maximum number of messages in the history.
const MAX_HISTORY: usize = 1000;

/// Options of a [`LineEditor`].
#[derive(Debug, Clone)]
pub(crate) struct EditorOptions {
    pub(crate) prompt: String,
    /// Id of the agent, whose models are completed.
    pub(crate) agent: String,
    /// The agent's directory, whose files are completed.
    pub(crate) directory: PathBuf,
    pub(crate) colour: bool,
    /// Use `/dev/tty`, because stdout is not a terminal.
    pub(crate) tty: bool,
    pub(crate) history: Option<PathBuf>,
}

/// A source of messages with line editing, history and completion.
pub(crate) struct LineEditor {
    editor: Editor<CommandCompleter, FileHistory>,
    prompt: (String, String),
    history: Option<PathBuf>,
    /// The message contains pasted text.
    pasted: Arc<AtomicBool>,
    history_error: Option<String>,
}

impl LineEditor {
    pub(crate) fn new(options: &EditorOptions) -> rustyline::Result<Self> {
        let config = Config::builder()
            .max_history_size(MAX_HISTORY)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .color_mode(if options.colour {
                ColorMode::Enabled
            } else {
                ColorMode::Disabled
            })
            .behavior(if options.tty {
                Behavior::PreferTerm
            } else {
                Behavior::Stdio
            })
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(CommandCompleter {
            agent: options.agent.clone(),
            directory: options.directory.clone(),
        }));
        let enter = KeyEvent(KeyCode::Enter, Modifiers::NONE);
        editor.bind_sequence(enter, EventHandler::Conditional(Box::new(ContinueLine)));
        let pasted = Arc::new(AtomicBool::new(false));
        let paste = KeyEvent(KeyCode::BracketedPasteStart, Modifiers::NONE);
        let record_paste = RecordPaste(pasted.clone());
        editor.bind_sequence(paste, EventHandler::Conditional(Box::new(record_paste)));
        let mut this = Self {
            editor,
            prompt: (
                options.prompt.clone(),
                format!("\u{1b}[1m{}\u{1b}[0m", options.prompt),
            ),
            history: options.history.clone(),
            pasted,
            history_error: None,
        };
        this.load_history();
        Ok(this)
    }

    fn load_history(&mut self) {
        let Some(file) = &self.history else { return };
        let loaded = prepare_history_file(file).and_then(|exists| {
            if exists {
                self.editor.load_history(file)?;
            }
            Ok(())
        });
        if let Err(error) = loaded {
            self.history_error = Some(format!(
                "cannot read the message history {}: {error:#}",
                file.display()
            ));
            self.history = None;
        }
    }

    fn save(&mut self, text: &str) {
        let Some(file) = &self.history else {
            // The entry is still available in memory.
            let _ = self.editor.add_history_entry(text);
            return;
        };
        let saved =
            (self.editor.add_history_entry(text)).and_then(|_| self.editor.append_history(file));
        if let Err(error) = saved {
            self.history_error = Some(format!(
                "cannot write the message history {}: {error}",
                file.display()
            ));
            self.history = None;
        }
    }
}

/// Creates the folder of the history file and returns whether the file exists.
fn prepare_history_file(file: &Path) -> anyhow::Result<bool> {
    if let Some(folder) = file.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .context("cannot create its folder")?;
    }
    match fs::metadata(file) {
        // Opening a FIFO would block forever.
        Ok(meta) if !meta.is_file() => bail!("not a regular file"),
        Ok(_) => Ok(true),
        Err(_) => Ok(false),
    }
}

impl Source for LineEditor {
    fn read(&mut self) -> Entry {
        if let Some(why) = self.history_error.take() {
            return Entry::Invalid(why);
        }
        self.pasted.store(false, Ordering::Relaxed);
        let guard = EditorGuard::begin();
        let line = self.editor.readline(&self.prompt);
        drop(guard);
        match line {
            Ok(mut text) => {
                // Pasted text is saved as it is: the backslash may be part of it.
                if !self.pasted.load(Ordering::Relaxed) {
                    text = text.replace("\\\n", "\n");
                }
                self.save(&text);
                Entry::Text(text)
            }
            Err(ReadlineError::Interrupted) => Entry::Cleared,
            Err(ReadlineError::Eof) => Entry::End,
            Err(error) => Entry::Failed(format!("cannot read the terminal: {error}")),
        }
    }
}

/// An editor that may have failed to start.
impl<E: std::fmt::Display> Source for Result<LineEditor, E> {
    fn read(&mut self) -> Entry {
        match self {
            Ok(editor) => editor.read(),
            Err(error) => Entry::Failed(format!("cannot use the terminal: {error}")),
        }
    }
}

/// Handler of Enter: after a trailing `\` it inserts a newline.
struct ContinueLine;

impl ConditionalEventHandler for ContinueLine {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext) -> Option<Cmd> {
        let continues = at.pos() == at.line().len() && at.line().ends_with('\\');
        continues.then(|| Cmd::Insert(1, "\n".to_owned()))
    }
}

/// Handler of a paste: records it and keeps the default action.
struct RecordPaste(Arc<AtomicBool>);

impl ConditionalEventHandler for RecordPaste {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        None
    }
}

/// Completion of chat commands and of files.
struct CommandCompleter {
    agent: String,
    directory: PathBuf,
}

impl Completer for CommandCompleter {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let models = || match offered::models() {
            none if none.is_empty() => completion::models_at_prompt(&self.agent),
            models => models.into_iter().map(|model| model.id).collect(),
        };
        Ok(command::completions(&line[..pos], models, &self.directory))
    }
}

impl Hinter for CommandCompleter {
    type Hint = String;
}

impl Highlighter for CommandCompleter {}
impl Validator for CommandCompleter {}
impl Helper for CommandCompleter {}
