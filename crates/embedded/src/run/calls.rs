//! Tool calls of one answer.

use std::panic::AssertUnwindSafe;

use serde_json::Value;
use teamster_core::text::excerpt;
use teamster_core::{
    AgentEvent, Decision, FileChange, Id, PermissionAnswer, PermissionEvent, PermissionPolicy,
    PermissionRequest, Plan, ToolKind, ToolResult, ToolUse,
};

use super::guard::{Advice, LoopGuard};
use super::{End, Halt, Turn};
use crate::context::Context;
use crate::conversation::{Call, CallResult, Input};
use crate::emit::Emitter;
use crate::mcp::ServerTool;
use crate::permission::{Subject, Verdict};
use crate::request::sleep;
use crate::schema;
use crate::tools::{self, Output, STRUCTURED_OUTPUT};

impl Turn<'_> {
    /// Runs the calls of an answer sequentially. Each call gets a result, even if the turn halts.
    pub(super) async fn carry_out(
        &self,
        context: &mut Context,
        emit: &mut Emitter,
        calls: &[Call],
        guard: &mut LoopGuard,
        end: &mut End,
    ) -> (Vec<CallResult>, Option<Halt>) {
        let mut results = Vec::with_capacity(calls.len());
        let mut halt = None;
        for call in calls {
            let mut result = CallResult {
                id: call.id.clone(),
                name: call.name.clone(),
                content: Vec::new(),
                is_error: true,
            };
            let output = match halt {
                Some(_) => None,
                None => match self.one(context, emit, call, end).await {
                    Ok(output) => Some(output),
                    Err(why) => {
                        halt = Some(why);
                        None
                    }
                },
            };
            match output {
                Some(output) => {
                    result.content = output.content();
                    result.is_error = output.is_error;
                }
                None => result.content.push(Input::Text {
                    text: "The run ended before this call had a result.".to_owned(),
                }),
            }
            if halt.is_none() {
                match guard.note(call, &result) {
                    Advice::None => {}
                    Advice::Hint(text) => result.content.push(Input::Text { text }),
                    Advice::Enough(error) => halt = Some(Halt::Failed(error)),
                }
            }
            results.push(result);
        }
        (results, halt)
    }

    /// Emits, decides and executes one call.
    async fn one(
        &self,
        context: &mut Context,
        emit: &mut Emitter,
        call: &Call,
        end: &mut End,
    ) -> Result<Output, Halt> {
        let server_tool = context.servers.tool(&call.name).cloned();
        let kind = match &server_tool {
            Some(_) => ToolKind::Mcp,
            None => tools::kind(&call.name),
        };
        // A service may reuse an id in another answer.
        let id: Id = emit.tool_id(&call.id);
        let tool_use = ToolUse::new(call.name.clone(), id.clone(), kind, call.input.clone())
            .mcp(server_tool.as_ref().map(|tool| tool.mcp.clone()));
        emit.event(AgentEvent::ToolUse(Box::new(tool_use))).await;
        let output = self
            .decided(context, emit, call, &id, kind, server_tool.as_ref(), end)
            .await?;
        if let Some((path, change)) = &output.change {
            let change = FileChange::new(path.clone(), *change).tool_id(id.clone());
            emit.event(AgentEvent::FileChange(Box::new(change))).await;
        }
        if let Some(entries) = &output.plan {
            let entries = entries.iter().cloned();
            emit.event(AgentEvent::Plan(Plan::new(entries))).await;
        }
        let result = ToolResult::new(id, output.text.clone()).is_error(Some(output.is_error));
        emit.event(AgentEvent::ToolResult(Box::new(result))).await;
        Ok(output)
    }

    #[expect(clippy::too_many_arguments, reason = "all of them are one call")]
    async fn decided(
        &self,
        context: &mut Context,
        emit: &mut Emitter,
        call: &Call,
        id: &Id,
        kind: ToolKind,
        server_tool: Option<&ServerTool>,
        end: &mut End,
    ) -> Result<Output, Halt> {
        let specs = context.specs();
        let Some(spec) = specs.iter().find(|spec| spec.name == call.name) else {
            return Ok(self.not_offered(context, emit, call, id, kind).await);
        };
        let mut input = call.input.clone();
        if let Value::String(text) = &input {
            return Ok(Output::error(format!(
                "the arguments are not a JSON object: {}",
                excerpt(text, 200)
            )));
        }
        if let Some(misfit) = schema::misfit(&spec.schema, &input) {
            return Ok(Output::error(format!(
                "the arguments do not fit the tool's schema: {misfit}"
            )));
        }
        if call.name == STRUCTURED_OUTPUT {
            end.structured = Some(input);
            return Ok(Output::text("The answer is taken."));
        }
        let roots = context.tools.roots.clone();
        let mut subject = Subject::new(&roots, &call.name, kind, &input);
        let verdict = |context: &Context, subject: &Subject| {
            let rules = &context.settings.rules;
            rules.verdict(context.mode, &call.name, kind, &roots, subject)
        };
        let asks_why = match verdict(context, &subject) {
            Verdict::Allow => None,
            Verdict::Deny(why) => return Ok(deny(emit, call, id, why).await),
            Verdict::Ask(why) => Some(why),
        };
        // There is nothing to ask about if the tool cannot use the path.
        if let Some(problem) = subject.problem() {
            return Ok(Output::error(problem));
        }
        if let Some(why) = asks_why {
            let answer = self.permitted(context, emit, call, id, kind, &subject, why);
            match answer.await? {
                Ok(None) => {}
                Ok(Some(changed)) => {
                    if let Some(misfit) = schema::misfit(&spec.schema, &changed) {
                        let why = format!("the changed input does not fit: {misfit}");
                        return Ok(deny(emit, call, id, why).await);
                    }
                    input = changed;
                    subject = Subject::new(&roots, &call.name, kind, &input);
                    if let Verdict::Deny(why) = verdict(context, &subject) {
                        return Ok(deny(emit, call, id, why).await);
                    }
                    if let Some(problem) = subject.problem() {
                        return Ok(Output::error(problem));
                    }
                }
                Err(why) => return Ok(deny(emit, call, id, why).await),
            }
        }
        self.carried_out(context, &call.name, server_tool, &input, &subject)
            .await
    }

    /// Returns the output for a tool that the model was not offered: it is denied or does not exist.
    async fn not_offered(
        &self,
        context: &Context,
        emit: &mut Emitter,
        call: &Call,
        id: &Id,
        kind: ToolKind,
    ) -> Output {
        let name = excerpt(&call.name, 100);
        if context.settings.rules.hides(&call.name) && kind != ToolKind::Other {
            return deny(emit, call, id, format!("{name} is denied in this run")).await;
        }
        let known: Vec<_> = context.specs().into_iter().map(|spec| spec.name).collect();
        Output::error(format!(
            "unknown tool `{name}`; available: {}",
            known.join(", ")
        ))
    }

    /// Requests permission for a call. Returns a changed input if the answer has one, or the reason for the denial.
    #[expect(clippy::too_many_arguments, reason = "all of them are one call")]
    async fn permitted(
        &self,
        context: &mut Context,
        emit: &mut Emitter,
        call: &Call,
        id: &Id,
        kind: ToolKind,
        subject: &Subject,
        why: Option<String>,
    ) -> Result<Result<Option<Value>, String>, Halt> {
        let ask = match self.policy {
            PermissionPolicy::Allow => return Ok(Ok(None)),
            PermissionPolicy::Ask(ask) => ask.clone(),
            _ => {
                let why = why.unwrap_or_else(|| format!("no permission handler for {}", call.name));
                return Ok(Err(why));
            }
        };
        let number = emit.next_request();
        let mut request =
            PermissionRequest::new(number, call.name.clone(), kind, call.input.clone());
        request.tool_id = Some(id.clone());
        request.takes_input = true;
        permission(emit, call, id, Decision::Requested, None).await;
        let answer = futures::catch(AssertUnwindSafe(async move { ask(request).await }));
        let answer = tokio::select! {
            biased;
            () = self.abort.aborted() => return Err(Halt::Aborted),
            answer = answer => answer,
        };
        let changed = match answer {
            None => return Ok(Err("the permission handler panicked".to_owned())),
            Some(PermissionAnswer::Deny(why)) => {
                return Ok(Err(why.unwrap_or_else(|| "the user denied it".to_owned())));
            }
            Some(PermissionAnswer::AllowWith(input)) => Some(input),
            Some(PermissionAnswer::AllowAlways) => {
                let rules = &mut context.settings.rules;
                rules.allow_always(&call.name, &context.tools.roots, subject);
                None
            }
            Some(_) => None,
        };
        permission(emit, call, id, Decision::Allowed, None).await;
        Ok(Ok(changed))
    }

    /// Runs a tool within its time limit. Its processes have ended when this returns.
    async fn carried_out(
        &self,
        context: &Context,
        name: &str,
        server_tool: Option<&ServerTool>,
        input: &Value,
        subject: &Subject,
    ) -> Result<Output, Halt> {
        let cancel = self.abort.token();
        let call = async {
            match server_tool {
                Some(tool) => tokio::select! {
                    output = context.servers.call(tool, input) => output,
                    () = cancel.cancelled() => Output::default(),
                },
                None => {
                    let rules = &context.settings.rules;
                    tools::call(&context.tools, rules, name, input, subject.real(), &cancel).await
                }
            }
        };
        tokio::pin!(call);
        let is_late = tokio::select! {
            biased;
            output = &mut call => {
                return if self.abort.is_aborted() { Err(Halt::Aborted) } else { Ok(output) };
            }
            () = sleep(self.limits.tool) => true,
        };
        debug_assert!(is_late);
        cancel.cancel();
        call.await;
        Err(Halt::Late(self.limits.tool_error(name)))
    }
}

async fn deny(emit: &mut Emitter, call: &Call, id: &Id, why: String) -> Output {
    permission(emit, call, id, Decision::Denied, Some(why.clone())).await;
    Output::error(format!("denied: {why}"))
}

async fn permission(
    emit: &mut Emitter,
    call: &Call,
    id: &Id,
    decision: Decision,
    reason: Option<String>,
) {
    let event = PermissionEvent::new(call.name.clone(), decision)
        .tool_id(id.clone())
        .reason(reason);
    emit.event(AgentEvent::Permission(Box::new(event))).await;
}

mod futures {
    //! Catches panics of a future.

    use std::future::{Future, poll_fn};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::task::Poll;

    /// Returns the output of a future. `None` if it panics.
    pub(super) async fn catch<F: Future>(future: AssertUnwindSafe<F>) -> Option<F::Output> {
        let mut future = pin!(future.0);
        poll_fn(
            |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
                Err(_) => Poll::Ready(None),
            },
        )
        .await
    }
}
