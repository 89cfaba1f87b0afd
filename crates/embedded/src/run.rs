//! A run: requests to the model and tool calls, until the model is done.

mod calls;
mod compact;
mod guard;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use teamster_core::provider::{DecodedResult, Exit, RunAssembler, Stop};
use teamster_core::sync::lock;
use teamster_core::time::millis;
use teamster_core::{
    AbortHandle, AgentError, BudgetKind, Capabilities, CostSource, ErrorCode, ErrorDetail,
    ErrorKind, EventStream, ExecuteParams, Image, ImageSource, LogEntry, ModelUsage,
    PermissionPolicy, Text, Timeouts, TurnEnd, Usage, UsageReport,
};
use tokio::sync::mpsc;

use crate::config::EmbeddedConfig;
use crate::context::Context;
use crate::conversation::{Answer, Block, Input, Message, Origin};
use crate::emit::{Emitter, WAITING};
use crate::limits::Limits;
use crate::request::{Asking, NoAnswer, Progress};
use crate::tools::STRUCTURED_OUTPUT;
use crate::wire::{Completed, ModelRequest, StopReason};
use guard::LoopGuard;

/// Default maximum number of answers of a run.
const MOST_ANSWERS: u32 = 500;
/// Maximum number of prompts for an answer that follows the output schema.
const ASKED_FOR_FORM: u32 = 2;

/// Messages to the agent during a turn.
pub(crate) type Steering = Arc<Mutex<Vec<String>>>;

/// Returns the stream of a run with its own conversation.
pub(crate) fn stream(
    config: Arc<EmbeddedConfig>,
    can: Arc<Capabilities>,
    params: ExecuteParams,
    policy: PermissionPolicy,
    abort: AbortHandle,
) -> EventStream {
    let handle = abort.clone();
    streamed(abort, move |to| async move {
        let begun = Instant::now();
        let timeouts = params.timeouts.or(config.process.timeouts);
        let directory = params.working_directory.as_deref();
        let images = read_images(params.images.clone(), directory, timeouts, &handle);
        let opened = match images.await {
            Ok(images) => Context::open(config, &can, params).map(|context| (context, images)),
            Err(error) => Err(error),
        };
        let (mut context, images) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let _ = to.send(refused(error)).await;
                return;
            }
        };
        let mut emit = Emitter::new(to, context.settings.secrets.clone());
        let turn = Turn {
            prompt: context.params.prompt.clone(),
            images,
            limits: context.settings.limits,
            abort: &handle,
            policy: &policy,
            steering: &Steering::default(),
        };
        let end = turn.run(&mut context, &mut emit).await;
        context.end().await;
        let (exit, summary) = end.into_result();
        // Unlock the session before the end is emitted, so that the next run can resume it.
        drop(context);
        emit.finish(exit, summary, millis(begun.elapsed())).await;
    })
}

/// Returns the stream that a task fills. It is a task, so that the model's answer is read even if the consumer does
/// not poll.
pub(crate) fn streamed<T: Future<Output = ()> + Send + 'static>(
    abort: AbortHandle,
    task: impl FnOnce(mpsc::Sender<Vec<LogEntry>>) -> T + Send + 'static,
) -> EventStream {
    let handle = abort.clone();
    let batches = async_stream::stream! {
        if handle.is_aborted() {
            yield refused(RunAssembler::aborted_error());
            return;
        }
        let (to, mut from) = mpsc::channel(WAITING);
        match teamster_process::engine() {
            Ok(engine) => drop(engine.spawn(task(to))),
            Err(error) => {
                let message = format!("no asynchronous runtime could be started for the run: {error}");
                yield refused(AgentError::new(ErrorCode::Io, ErrorKind::Internal, message));
                return;
            }
        }
        while let Some(batch) = from.recv().await {
            yield batch;
        }
    };
    EventStream::of_batches(batches, abort)
}

/// Returns the whole stream of a rejected run.
pub(crate) fn refused(error: AgentError) -> Vec<LogEntry> {
    RunAssembler::refuse(error).map(Into::into).into()
}

/// Reads the images of a run or turn. Their paths are relative to the working directory.
pub(crate) async fn read_images(
    mut images: Vec<Image>,
    working_directory: Option<&Path>,
    timeouts: Timeouts,
    abort: &AbortHandle,
) -> Result<Vec<Input>, AgentError> {
    for image in &mut images {
        if let (ImageSource::Path(path), Some(base)) = (&mut image.source, working_directory) {
            *path = base.join(&*path);
        }
    }
    let images = teamster_process::load_images(images, timeouts, abort).await?;
    images.iter().map(input).collect()
}

fn input(image: &Image) -> Result<Input, AgentError> {
    Ok(Input::Image {
        media_type: image.media_type.clone(),
        data: STANDARD.encode(image.in_memory()?),
    })
}

/// One turn: a prompt and its answer.
pub(crate) struct Turn<'a> {
    pub(crate) prompt: String,
    pub(crate) images: Vec<Input>,
    pub(crate) limits: Limits,
    pub(crate) abort: &'a AbortHandle,
    pub(crate) policy: &'a PermissionPolicy,
    pub(crate) steering: &'a Steering,
}

/// End of a turn, with its usage.
#[derive(Default)]
pub(crate) struct End {
    stop: Option<Stop>,
    failed: bool,
    usage: Usage,
    cost: Option<f64>,
    /// True if any answer had no price.
    unpriced: bool,
    by_model: BTreeMap<String, ModelUsage>,
    answers: u32,
    stop_reason: Option<StopReason>,
    api: Duration,
    model: Option<String>,
    session: Option<teamster_core::Id>,
    structured: Option<Value>,
}

impl End {
    pub(crate) fn into_result(self) -> (Exit, DecodedResult) {
        let exit = Exit {
            code: None,
            stop: self.stop,
            ..Exit::default()
        };
        let cost = self.cost.filter(|_| !self.unpriced);
        let summary = DecodedResult {
            ended_with_error: Some(self.failed),
            session_id: self.session,
            model: self.model,
            api_duration_ms: Some(millis(self.api)).filter(|_| self.answers > 0),
            usage: Some(self.usage),
            usage_by_model: self.by_model,
            cost: cost.map(|cost| (cost, CostSource::Estimated)),
            num_turns: Some(self.answers).filter(|answers| *answers > 0),
            stop_reason: self.stop_reason.map(|it| it.as_str().to_owned()),
            structured_output: self.structured,
            ..DecodedResult::default()
        };
        (exit, summary)
    }
}

/// Reason why a turn ended early.
pub(super) enum Halt {
    Aborted,
    Late(AgentError),
    Failed(AgentError),
}

impl From<AgentError> for Halt {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

impl Turn<'_> {
    pub(crate) async fn run(&self, context: &mut Context, emit: &mut Emitter) -> End {
        let mut end = End {
            model: Some(context.settings.target.name()),
            session: Some(context.file.id().into()),
            ..End::default()
        };
        match self.ask_until_done(context, emit, &mut end).await {
            Ok(()) => {}
            Err(Halt::Aborted) => end.stop = Some(Stop::Aborted),
            Err(Halt::Late(error)) => end.stop = Some(Stop::Timeout(error)),
            Err(Halt::Failed(error)) => {
                end.failed = true;
                emit.event(error).await;
            }
        }
        if end.stop.is_none() {
            let reason = end.stop_reason.map(|it| it.as_str().to_owned());
            let turn_end = TurnEnd::new(end.failed)
                .stop_reason(reason)
                .usage(Some(end.usage).filter(|usage| !usage.is_empty()))
                .cost_usd(end.cost.filter(|_| !end.unpriced));
            emit.event(turn_end).await;
        }
        end
    }

    async fn ask_until_done(
        &self,
        context: &mut Context,
        emit: &mut Emitter,
        end: &mut End,
    ) -> Result<(), Halt> {
        tokio::select! {
            biased;
            () = self.abort.aborted() => return Err(Halt::Aborted),
            () = context.begin(emit) => {}
        }
        let mut content = self.images.clone();
        if !self.prompt.trim().is_empty() {
            content.insert(0, Input::text(&*self.prompt));
        }
        context.push(Message::User { content })?;
        let mut progress = Progress::default();
        let mut guard = LoopGuard::default();
        let mut asked_for_form = 0;
        let mut was_empty = false;
        let mut was_compacted = false;
        let mut forced = None;
        loop {
            Self::check_limits(context, end)?;
            let steered = std::mem::take(&mut *lock(self.steering));
            for text in steered {
                context.push(Message::user(text))?;
            }
            let asked = self.ask(context, emit, end, &mut progress, forced).await;
            let half = std::mem::take(&mut progress.text);
            let half = Some(half).filter(|half| asked.is_err() && !half.trim().is_empty());
            if !was_compacted && compact::make_room(context, emit, &asked, half.is_some()).await {
                was_compacted = true;
                if let Ok(completed) = &asked {
                    self.count(context, emit, end, completed).await?;
                }
                continue;
            }
            was_compacted = false;
            if let Some(text) = half {
                // The text so far is part of the conversation.
                let answer = Answer::new(vec![Block::text(text)]);
                context.push(Message::Assistant(answer))?;
            }
            let completed = asked?;
            let stop = completed.stop;
            end.stop_reason = Some(stop);
            self.count(context, emit, end, &completed).await?;
            let answer = completed.answer;
            let calls: Vec<_> = answer.calls().cloned().collect();
            let is_empty = answer.is_empty();
            if !is_empty {
                context.push(Message::Assistant(answer))?;
            }
            refuse_cut(stop, context.settings.max_tokens)?;
            if stop == StopReason::Pause && !is_empty {
                continue;
            }
            if calls.is_empty() {
                if !lock(self.steering).is_empty() {
                    continue;
                }
                if is_empty && end.structured.is_none() {
                    if std::mem::replace(&mut was_empty, true) {
                        return Err(no_answer().into());
                    }
                    context.push(Message::user(
                        "That answer was empty. Go on with what is left to do, or say what you did.",
                    ))?;
                    continue;
                }
                if context.params.output_schema.is_none() || end.structured.is_some() {
                    return Ok(());
                }
                if asked_for_form == ASKED_FOR_FORM {
                    return Err(no_form().into());
                }
                asked_for_form += 1;
                forced = Some(STRUCTURED_OUTPUT);
                context.push(Message::user(
                    "Give the answer by calling the tool StructuredOutput.",
                ))?;
                continue;
            }
            forced = None;
            was_empty = false;
            let results = self.carry_out(context, emit, &calls, &mut guard, end).await;
            let (results, halt) = results;
            context.push(Message::Tool { results })?;
            if let Some(halt) = halt {
                return Err(halt);
            }
            if let Some(structured) = &end.structured {
                let text = structured.to_string();
                let message = emit.next_message();
                emit.event(Text::new(text).message_id(message)).await;
                return Ok(());
            }
        }
    }

    fn check_limits(context: &Context, end: &End) -> Result<(), AgentError> {
        let params = &context.params;
        let most = params.max_turns.unwrap_or(MOST_ANSWERS);
        if end.answers >= most {
            let message = format!(
                "the model was asked {most} times and is not done; allow more turns, or ask for less"
            );
            return Err(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::MaxTurns,
                message,
            ));
        }
        if let (Some(limit), Some(spent)) = (params.max_budget_usd, end.cost)
            && spent >= limit
        {
            let message = format!("the run has cost {spent:.4} USD; its limit is {limit}");
            let error = AgentError::new(ErrorCode::CliError, ErrorKind::Budget, message);
            return Err(error.detail(ErrorDetail::budget(BudgetKind::Usd, Some(limit))));
        }
        Ok(())
    }

    async fn ask(
        &self,
        context: &Context,
        emit: &mut Emitter,
        end: &mut End,
        progress: &mut Progress,
        forced_tool: Option<&str>,
    ) -> Result<Completed, Halt> {
        let tools = context.specs();
        let settings = &context.settings;
        let request = ModelRequest {
            model: &settings.target.model,
            system: &context.system,
            messages: &context.messages,
            tools: &tools,
            forced_tool,
            effort: settings.effort,
            max_tokens: settings.max_tokens,
        };
        let asking = Asking {
            http: &context.http,
            target: &settings.target,
            limits: self.limits,
            retries: settings.retries,
            abort: self.abort,
        };
        let answer = asking.ask(&request, emit, progress).await;
        end.api = progress.spent;
        match answer {
            Ok(mut completed) => {
                completed.answer.origin = Some(Origin {
                    wire: settings.target.wire(),
                    model: settings.target.model.clone(),
                });
                Ok(completed)
            }
            Err(NoAnswer::Aborted) => Err(Halt::Aborted),
            Err(NoAnswer::Late(error)) => Err(Halt::Late(error)),
            Err(NoAnswer::Failed(error)) => Err(Halt::Failed(error)),
        }
    }

    /// Adds the usage of an answer.
    async fn count(
        &self,
        context: &mut Context,
        emit: &mut Emitter,
        end: &mut End,
        completed: &Completed,
    ) -> Result<(), AgentError> {
        let usage = completed.usage;
        let cost = context.cost(&usage);
        end.answers += 1;
        end.usage = end.usage.plus(usage);
        end.unpriced |= cost.is_none();
        end.cost = Some(end.cost.unwrap_or_default() + cost.unwrap_or_default());
        let model = context.settings.target.name();
        let by_model = end.by_model.entry(model.clone()).or_default();
        by_model.usage = by_model.usage.plus(usage);
        by_model.cost_usd = match (by_model.cost_usd, cost) {
            (Some(before), Some(cost)) => Some(before + cost),
            (before, cost) => before.or(cost),
        };
        if !end.usage.is_empty() {
            let total = end.cost.filter(|_| !end.unpriced);
            let report = UsageReport::new(end.usage)
                .cost_usd(total)
                .cost_source(total.map(|_| CostSource::Estimated));
            emit.event(report).await;
        }
        context.file.usage(&model, usage, cost)
    }
}

/// Returns an error for an answer that was cut off or refused.
fn refuse_cut(stop: StopReason, max_tokens: u32) -> Result<(), AgentError> {
    let message = match stop {
        StopReason::End | StopReason::ToolUse | StopReason::Pause => return Ok(()),
        StopReason::ContextWindow => {
            return Err(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::ContextWindow,
                "the answer was cut because the conversation fills the model's context window; begin a new session, \
                 or use a model that takes more",
            ));
        }
        StopReason::MaxTokens => format!(
            "the answer was cut at the limit of output tokens ({max_tokens}); raise it \
             (--max-tokens N among the extra arguments), or ask for less at a time"
        ),
        StopReason::Refusal => "the model refused to answer; ask in another way".to_owned(),
    };
    Err(AgentError::new(
        ErrorCode::CliError,
        ErrorKind::Invalid,
        message,
    ))
}

fn no_answer() -> AgentError {
    AgentError::new(
        ErrorCode::CliError,
        ErrorKind::Protocol,
        "the model answered twice with nothing: no text, no reasoning and no call; ask again, or use another model",
    )
    .retryable(true)
}

fn no_form() -> AgentError {
    AgentError::new(
        ErrorCode::CliError,
        ErrorKind::Invalid,
        "the model gave no answer in the form of the output schema; make the schema simpler, or use \
         another model",
    )
    .retryable(true)
}
