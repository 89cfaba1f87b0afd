//! Checks of a CLI's launch.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use teamster_core::provider::{LARGEST_PROMPT_ARGUMENT, Launch, Stdin};
use teamster_core::text::excerpt;
use teamster_core::{AgentError, ErrorCode, ExecuteParams};

use super::arbitrary::{ArbitraryRun, SECRET, prompt};
use super::output::{is_completed, location};
use super::verdict::property;
use super::{Failures, Sent, Suite, Understood, Verdict};

/// Size of an argument that Linux refuses, in bytes with the closing NUL. The engine refuses it too.
const TOO_LARGE: usize = 128 * 1024;

/// A unique prompt.
const MARK: &str = "the prompt 5d41402abc4b";

impl Suite {
    /// Checks that the prompt is an argument or on stdin, as its size allows, but never both. Stdin must never be left
    /// open.
    pub fn delivery(&self) -> Verdict {
        let mut wrong = Failures::of("delivery");
        let can = self.provider.capabilities();
        let large = format!("{MARK}{}", "x".repeat(150_000));
        for (how, prompt, on_stdin) in [
            ("short", MARK, false),
            ("large", &*large, true),
            ("over the limit", &large[..=LARGEST_PROMPT_ARGUMENT], true),
            ("at the limit", &large[..LARGEST_PROMPT_ARGUMENT], false),
        ] {
            let params = self.plain_params(prompt);
            let location = format!("a prompt, {how}");
            // A CLI that reads no prompt from stdin gets an argument, unless that is impossible.
            let on_stdin = on_stdin && (can.prompt_on_stdin || prompt.len() >= TOO_LARGE);
            match self.provider.launch(&params) {
                Ok(launch) => {
                    let check = check_delivery(&launch, prompt, on_stdin, can.prompt_on_stdin);
                    wrong.add_if_err(&location, check);
                    wrong.add_if_err(&location, self.check_launch(&params, &launch));
                }
                Err(error) if on_stdin == can.prompt_on_stdin => {
                    wrong.add(&location, format!("refused: {error}"));
                }
                Err(error) => wrong.add_if_err(&location, is_refusal(&error)),
            }
        }
        wrong.verdict()
    }

    /// Checks that any prompt without other parameters is accepted, and that the CLI gets exactly that
    /// prompt. Tries each tricky text and runs a property test.
    pub fn prompts(&self) -> Verdict {
        let on_stdin = self.provider.capabilities().prompt_on_stdin;
        let check = |prompt: &str| {
            let params = self.plain_params(prompt);
            match self.provider.launch(&params) {
                Ok(launch) if is_refused_by_engine(&launch) => {
                    Err("an argument that the system does not take".into())
                }
                Ok(launch) => self.check_launch(&params, &launch),
                Err(error) if on_stdin => Err(format!("refused: {error}")),
                Err(error) => is_refusal(&error),
            }
        };
        let mut wrong = Failures::of("prompts");
        let words = self.words();
        for word in words.iter().filter(|word| !word.trim().is_empty()) {
            wrong.add_if_err(format!("the prompt {word:?}"), check(word));
        }
        let outcome = property(&prompt(&words), |prompt| check(&prompt));
        wrong.add_if_err("any prompt", outcome);
        wrong.verdict()
    }

    /// Checks that any parameters within the capabilities are either refused as invalid or understood by the
    /// CLI as intended.
    ///
    /// No value may become a flag, a sub-command or another value, and no value of the caller's environment
    /// may be visible to other users. Tries each parameter with each tricky text and runs a property test of
    /// combinations.
    pub fn arguments(&self) -> Verdict {
        let (asked, taken) = (Cell::new(0), Cell::new(0));
        let check = |run: &ArbitraryRun| {
            let params = run.params(self);
            asked.set(asked.get() + 1);
            match self.provider.launch(&params) {
                Ok(launch) => {
                    taken.set(taken.get() + 1);
                    self.check_launch(&params, &launch)
                }
                Err(error) => is_refusal(&error),
            }
        };
        let mut wrong = Failures::of("arguments");
        for word in self.words() {
            for ask in self.each_with(&word) {
                let run = ArbitraryRun::only(ask);
                wrong.add_if_err(format!("{run:?}"), check(&run));
            }
        }
        asked.set(0);
        taken.set(0);
        let outcome = property(&self.asked(), |run| check(&run));
        wrong.add_if_err("any parameters", outcome);
        let (asked, taken) = (asked.get(), taken.get());
        if taken * 10 < asked {
            let what = format!("only {taken} of {asked} runs are not refused: this checks nothing");
            wrong.add("any parameters", what);
        }
        wrong.verdict()
    }

    /// Checks the model of the command line against the recorded runs. It must parse those that succeeded and
    /// had their prompt in the arguments, and find the recorded prompt.
    pub fn recorded(&self) -> Verdict {
        let mut wrong = Failures::of("recorded");
        for fixture in &self.fixtures {
            let meta = &fixture.meta;
            let closed = matches!(meta.stdin.as_deref(), None | Some("devnull"));
            // Some recorders shorten long arguments.
            let is_complete = meta.argv.iter().any(|arg| arg.contains(&meta.prompt));
            if !closed
                || !is_complete
                || meta.prompt.is_empty()
                || !is_completed(&self.replay(fixture))
            {
                continue;
            }
            let params = ExecuteParams::new(&meta.prompt);
            let launch = Launch {
                args: meta.argv.iter().skip(1).map(OsString::from).collect(),
                env: meta.env.clone().into_iter().collect(),
                ..Launch::default()
            };
            let prompt = self.understand(&params, &launch).map(|read| read.prompt);
            let changed = self.changed_prompts.contains(&meta.scenario.as_str());
            let what = match prompt {
                Ok(prompt) if (prompt == meta.prompt) != changed => continue,
                Ok(prompt) if !changed => {
                    let (expected, prompt) = (&meta.prompt, excerpt(&prompt, 300));
                    format!("expected the prompt {expected:?}, got {prompt:?}")
                }
                Ok(_) => "listed in `changes_prompts`, the prompt is unchanged".to_owned(),
                Err(error) => error,
            };
            wrong.add(location(fixture), what);
        }
        wrong.verdict()
    }

    /// Returns parameters with this prompt and the environment that the provider needs.
    pub(super) fn plain_params(&self, prompt: &str) -> ExecuteParams {
        let mut params = ExecuteParams::new(prompt);
        let env = self.plain.env.iter();
        params.env = env
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        params
    }

    /// Checks that the CLI understands the request, and nothing else.
    pub(super) fn check_launch(
        &self,
        params: &ExecuteParams,
        launch: &Launch,
    ) -> Result<(), String> {
        if matches!(launch.stdin, Stdin::Open(_)) {
            return Err("stdin is left open".into());
        }
        if launch.args.iter().any(|arg| contains(arg, SECRET)) {
            return Err("a value of the caller's environment is in the arguments".into());
        }
        if is_refused_by_engine(launch) {
            return Ok(());
        }
        let can = self.provider.capabilities();
        let too_large = params.prompt.len() > LARGEST_PROMPT_ARGUMENT;
        let blank = params.prompt.trim().is_empty();
        if too_large && can.prompt_on_stdin && !blank && launch.stdin == Stdin::Closed {
            return Err("the prompt is not on stdin, where it belongs".into());
        }
        let prompt = (self.prompt_becomes)(params);
        self.understand(params, launch)
            .and_then(|understood| understood.check(params, &prompt))
            .map_err(|error| format!("{error}; from {}", shown(launch)))
    }

    pub(super) fn understand(
        &self,
        params: &ExecuteParams,
        launch: &Launch,
    ) -> Result<Understood, String> {
        let Some(line) = &self.command_line else {
            panic!("the suite needs `command_line`");
        };
        let sent = Sent::read(&line.model, launch, params)?;
        Ok((line.understand)(&sent))
    }
}

fn check_delivery(
    launch: &Launch,
    prompt: &str,
    on_stdin: bool,
    reads_stdin: bool,
) -> Result<(), String> {
    let in_args = launch.args.iter().any(|arg| contains(arg, prompt));
    let in_stdin = match &launch.stdin {
        Stdin::Bytes(bytes) | Stdin::Open(bytes) => contains(OsStr::from_bytes(bytes), prompt),
        _ => false,
    };
    match (in_args, in_stdin) {
        (true, true) => Err("it is in the arguments and on stdin".into()),
        (false, false) => Err("it is neither in the arguments nor on stdin".into()),
        (true, false) if on_stdin => Err("it is in the arguments, not on stdin".into()),
        (false, true) if !reads_stdin => Err("it is on stdin, which the CLI does not read".into()),
        // Stdin may carry more than the requested prompt.
        _ => Ok(()),
    }
}

fn contains(arg: &OsStr, text: &str) -> bool {
    let (arg, text) = (arg.as_bytes(), text.as_bytes());
    arg.windows(text.len()).any(|window| window == text)
}

fn is_refused_by_engine(launch: &Launch) -> bool {
    let refused = |arg: &[u8]| arg.len() >= TOO_LARGE || arg.contains(&0);
    launch.args.iter().any(|arg| refused(arg.as_bytes()))
}

/// Checks that an error refuses a parameter.
pub(super) fn is_refusal(error: &AgentError) -> Result<(), String> {
    match error.code {
        ErrorCode::PromptTooLarge => Ok(()),
        ErrorCode::InvalidParams if names_a_parameter(&error.message) => Ok(()),
        ErrorCode::InvalidParams => Err(format!(
            "an error that does not begin with the name of a parameter: {error}"
        )),
        code => Err(format!("an error of code {code:?}: {error}")),
    }
}

fn names_a_parameter(message: &str) -> bool {
    let name = message.split(':').next().unwrap_or_default();
    ExecuteParams::NAMES.contains(&name)
}

fn shown(launch: &Launch) -> String {
    let args: Vec<_> = launch
        .args
        .iter()
        .map(|arg| excerpt(&arg.to_string_lossy(), 100))
        .collect();
    format!("{args:?}")
}
