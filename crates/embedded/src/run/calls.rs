//! Tool calls of one answer.

use serde_json::Value;
use teamster_core::sync::caught;
use teamster_core::text::excerpt;
use teamster_core::{
    Decision, FileChange, Id, PermissionAnswer, PermissionEvent, PermissionPolicy,
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
            let mut result = CallResult::none(call);
            if halt.is_none() {
                match self.one(context, emit, call, end).await {
                    Ok(output) => {
                        result.content = output.content();
                        result.is_error = output.is_error;
                        match guard.note(call, &result) {
                            Advice::None => {}
                            Advice::Hint(text) => result.content.push(Input::text(text)),
                            Advice::Enough(error) => halt = Some(Halt::Failed(error)),
                        }
                    }
                    Err(why) => halt = Some(why),
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
        emit.event(tool_use).await;
        let called = Called {
            call,
            id,
            kind,
            server_tool,
        };
        let output = self.decided(context, emit, &called, end).await?;
        if let Some((path, change)) = &output.change {
            let change = FileChange::new(path.clone(), *change).tool_id(called.id.clone());
            emit.event(change).await;
        }
        if let Some(entries) = &output.plan {
            let entries = entries.iter().cloned();
            emit.event(Plan::new(entries)).await;
        }
        let result =
            ToolResult::new(called.id, output.text.clone()).is_error(Some(output.is_error));
        emit.event(result).await;
        Ok(output)
    }

    async fn decided(
        &self,
        context: &mut Context,
        emit: &mut Emitter,
        called: &Called<'_>,
        end: &mut End,
    ) -> Result<Output, Halt> {
        let (call, kind) = (called.call, called.kind);
        let specs = context.specs();
        let Some(spec) = specs.iter().find(|spec| spec.name == call.name) else {
            return Ok(called.not_offered(context, emit).await);
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
            Verdict::Deny(why) => return Ok(called.deny(emit, why).await),
            Verdict::Ask(why) => Some(why),
        };
        // There is nothing to ask about if the tool cannot use the path.
        if let Some(problem) = subject.problem() {
            return Ok(Output::error(problem));
        }
        if let Some(why) = asks_why {
            let answer = self.permitted(context, emit, called, &subject, why);
            match answer.await? {
                Ok(None) => {}
                Ok(Some(changed)) => {
                    if let Some(misfit) = schema::misfit(&spec.schema, &changed) {
                        let why = format!("the changed input does not fit: {misfit}");
                        return Ok(called.deny(emit, why).await);
                    }
                    input = changed;
                    subject = Subject::new(&roots, &call.name, kind, &input);
                    if let Verdict::Deny(why) = verdict(context, &subject) {
                        return Ok(called.deny(emit, why).await);
                    }
                    if let Some(problem) = subject.problem() {
                        return Ok(Output::error(problem));
                    }
                }
                Err(why) => return Ok(called.deny(emit, why).await),
            }
        }
        self.carried_out(context, called, &input, &subject).await
    }

    /// Requests permission for a call. Returns a changed input if the answer has one, or the reason for the denial.
    async fn permitted(
        &self,
        context: &mut Context,
        emit: &mut Emitter,
        called: &Called<'_>,
        subject: &Subject,
        why: Option<String>,
    ) -> Result<Result<Option<Value>, String>, Halt> {
        let call = called.call;
        let ask = match self.policy {
            PermissionPolicy::Allow => return Ok(Ok(None)),
            PermissionPolicy::Ask(ask) => ask.clone(),
            _ => {
                let why = why.unwrap_or_else(|| format!("no permission handler for {}", call.name));
                return Ok(Err(why));
            }
        };
        let (number, kind) = (emit.next_request(), called.kind);
        let mut request =
            PermissionRequest::new(number, call.name.clone(), kind, call.input.clone());
        request.tool_id = Some(called.id.clone());
        request.takes_input = true;
        called.permission(emit, Decision::Requested, None).await;
        let answer = caught(async move { ask(request).await });
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
        called.permission(emit, Decision::Allowed, None).await;
        Ok(Ok(changed))
    }

    /// Runs a tool within its time limit. Its processes have ended when this returns.
    async fn carried_out(
        &self,
        context: &Context,
        called: &Called<'_>,
        input: &Value,
        subject: &Subject,
    ) -> Result<Output, Halt> {
        let name = &called.call.name;
        let cancel = self.abort.token();
        let call = async {
            match &called.server_tool {
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
        tokio::select! {
            biased;
            output = &mut call => {
                return if self.abort.is_aborted() { Err(Halt::Aborted) } else { Ok(output) };
            }
            () = sleep(self.limits.tool) => {}
        }
        cancel.cancel();
        call.await;
        Err(Halt::Late(self.limits.tool_error(name)))
    }
}

/// A call with its tool.
struct Called<'a> {
    call: &'a Call,
    /// Id in the stream.
    id: Id,
    kind: ToolKind,
    server_tool: Option<ServerTool>,
}

impl Called<'_> {
    /// Returns the output for a tool that the model was not offered: it is denied or does not exist.
    async fn not_offered(&self, context: &Context, emit: &mut Emitter) -> Output {
        let name = excerpt(&self.call.name, 100);
        if context.settings.rules.hides(&self.call.name) && self.kind != ToolKind::Other {
            return self
                .deny(emit, format!("{name} is denied in this run"))
                .await;
        }
        let known: Vec<_> = context.specs().into_iter().map(|spec| spec.name).collect();
        Output::error(format!(
            "unknown tool `{name}`; available: {}",
            known.join(", ")
        ))
    }

    async fn deny(&self, emit: &mut Emitter, why: String) -> Output {
        let reason = Some(why.clone());
        self.permission(emit, Decision::Denied, reason).await;
        Output::error(format!("denied: {why}"))
    }

    async fn permission(&self, emit: &mut Emitter, decision: Decision, reason: Option<String>) {
        let event = PermissionEvent::new(self.call.name.clone(), decision)
            .tool_id(self.id.clone())
            .reason(reason);
        emit.event(event).await;
    }
}
