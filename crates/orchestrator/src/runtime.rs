//! Orchestrated runs in the form of plain ones: a stream of agent events, and a runtime.

use teamster_core::provider::RunAssembler;
use teamster_core::{
    AgentError, AgentRuntime, Capabilities, ErrorCode, ErrorKind, EventStream, ExecuteParams,
};
use tokio::runtime::Handle;

use crate::log::{Part, View};
use crate::{Candidate, Orchestrator, RunLog, RunRequest};

impl Orchestrator {
    /// Starts a run and returns the events of its agents as one stream with the grammar of a single run (see
    /// [`teamster_core`]), as if from one [`AgentRuntime`].
    ///
    /// - A run with one attempt has the events of its runtime, except for the message ids described below.
    /// - The error of a failed attempt is an `error` event only if no attempt follows. Otherwise it is in the `retry`
    ///   event, or in the `notice` about the next candidate.
    /// - When the prompt is sent again, the text of the failed attempt is retracted. For that, text without a
    ///   message id gets one, unless the request allows only one attempt.
    /// - An id that an earlier attempt has used gets a suffix, such as `#2`.
    /// - `done` has the summed figures of all attempts, and everything else of the last one.
    /// - An error after which the agent continued is passed through.
    /// - Entries have their numbers in the run's [log](Self::start_log), which also numbers the events of the run itself.
    ///
    /// The run starts when the stream is first polled, on the Tokio runtime that polls it. Without a Tokio runtime the
    /// stream has an error and `done`. Dropping the stream, its `abort` and its handle stop the run.
    ///
    /// ```
    /// # use teamster_core::{AgentEvent, ExecuteParams, SharedRuntime};
    /// # use teamster_orchestrator::{Candidate, Orchestrator, RunRequest};
    /// async fn ask(orchestrator: &Orchestrator, claude: SharedRuntime, codex: SharedRuntime) {
    ///     let params = ExecuteParams::new("Which tests are flaky?");
    ///     let request = RunRequest::new(claude, params.clone())
    ///         .fallback(Candidate::new(codex, params));
    ///     let mut events = orchestrator.execute(request);
    ///     while let Some(event) = events.next().await {
    ///         if let AgentEvent::Text(text) = event {
    ///             print!("{}", text.text);
    ///         }
    ///     }
    /// }
    /// ```
    pub fn execute(&self, request: RunRequest) -> EventStream {
        let abort = request.abort_handle();
        let order = abort.clone();
        let orchestrator = self.clone();
        let events = async_stream::stream! {
            let cannot = if order.is_aborted() {
                Some(RunAssembler::aborted_error())
            } else {
                Handle::try_current().err().map(|_| no_tokio())
            };
            if let Some(error) = cannot {
                yield RunAssembler::refuse(error).map(Into::into).into();
                return;
            }
            let mut log = RunLog::new(orchestrator.run_stopped_by(request, order, View::Log));
            while let Some(part) = log.next_part().await {
                if let Part::Agents(entries) = part {
                    yield entries;
                }
            }
        };
        EventStream::of_batches(events, abort)
    }

    /// Starts a run and returns its whole log: the agents' entries as in [`execute`](Self::execute), and the `run:`
    /// events, in one order.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub fn start_log(&self, request: RunRequest) -> RunLog {
        let abort = request.abort_handle();
        RunLog::new(self.run_stopped_by(request, abort, View::Log))
    }
}

fn no_tokio() -> AgentError {
    AgentError::new(
        ErrorCode::Io,
        ErrorKind::Internal,
        "an orchestrated run needs a Tokio runtime: poll its stream within one",
    )
}

/// A runtime whose runs are retried and fall back. It applies the candidates, the policy and the limits of a
/// [`RunRequest`] to any parameters.
///
/// ```
/// use teamster_core::{AgentRuntime, ExecuteParams, SharedRuntime};
/// use teamster_orchestrator::{Candidate, OrchestratedRuntime, Orchestrator, RunRequest};
///
/// # fn example(orchestrator: Orchestrator, claude: SharedRuntime, codex: SharedRuntime) {
/// let none = || ExecuteParams::new("");
/// let request = RunRequest::new(claude, none())
///     .fallback(Candidate::new(codex, none()).model("gpt-5"));
/// let runtime: SharedRuntime =
///     std::sync::Arc::new(OrchestratedRuntime::new(orchestrator, request).unwrap());
/// let events = runtime.execute(ExecuteParams::new("Which tests are flaky?"));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OrchestratedRuntime {
    orchestrator: Orchestrator,
    template: RunRequest,
}

impl OrchestratedRuntime {
    /// Creates a runtime whose runs follow this request.
    ///
    /// The first candidate gets the parameters of the execution unchanged. Another candidate of the same provider gets
    /// them with its own model, if it names one. A candidate of another provider gets the portable parameters
    /// ([`Candidate::for_other_provider`]) and, from the request, its own model, effort, allowed tools and extra
    /// arguments. The request's other parameters and its run id are not used: each run gets its own id.
    ///
    /// # Errors
    ///
    /// [`InvalidParams`](ErrorCode::InvalidParams) if the request has no candidate.
    pub fn new(orchestrator: Orchestrator, template: RunRequest) -> Result<Self, AgentError> {
        if template.candidates.is_empty() {
            return Err(AgentError::refused("candidates", "at least one is needed"));
        }
        Ok(Self {
            orchestrator,
            template,
        })
    }

    fn request(&self, params: &ExecuteParams) -> Result<RunRequest, AgentError> {
        let mut request = self.template.clone();
        request.id = None;
        let mut first = None;
        for candidate in &mut request.candidates {
            let provider = candidate.provider().to_owned();
            let asked = match &first {
                None => params.clone(),
                Some(first) if *first == provider => {
                    let mut same = params.clone();
                    same.model = candidate.params.model.take().or(same.model);
                    same
                }
                Some(_) => other(candidate, params)?,
            };
            candidate.params = asked;
            first.get_or_insert(provider);
        }
        Ok(request)
    }
}

/// Builds the parameters of a candidate of another provider.
fn other(candidate: &mut Candidate, params: &ExecuteParams) -> Result<ExecuteParams, AgentError> {
    let own = &mut candidate.params;
    let mut asked = Candidate::for_other_provider(candidate.runtime.clone(), params)?.params;
    asked.model = own.model.take();
    asked.effort = own.effort.take();
    asked.allowed_tools = std::mem::take(&mut own.allowed_tools);
    asked.extra_args = std::mem::take(&mut own.extra_args);
    Ok(asked)
}

impl AgentRuntime for OrchestratedRuntime {
    fn id(&self) -> &str {
        self.first().provider()
    }

    fn capabilities(&self) -> &Capabilities {
        self.first().runtime.capabilities()
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        match self.request(&params) {
            Ok(request) => self.orchestrator.execute(request),
            Err(error) => EventStream::refused(error),
        }
    }
}

impl OrchestratedRuntime {
    /// Returns the first candidate. `new` refuses a request without one.
    fn first(&self) -> &Candidate {
        &self.template.candidates[0]
    }
}

#[cfg(test)]
mod tests;
