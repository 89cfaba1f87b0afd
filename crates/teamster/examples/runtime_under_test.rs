//! A custom runtime, and tests of it and of code that uses runtimes, without a CLI, processes or real time.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use teamster::{
    AbortHandle, AgentError, AgentRuntime, Capabilities, ErrorCode, ErrorKind, EventStream,
    ExecuteParams, RunStatus,
};
use teamster_core::provider::grammar;
use teamster_testkit::mock_runtime::{MockRuntime, Script};

/// Runtime that repeats a run of another runtime when its answer is empty.
struct Insisting<R> {
    inner: R,
}

impl<R: AgentRuntime + Clone + 'static> AgentRuntime for Insisting<R> {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let abort = AbortHandle::new(&params.cancel);
        let inner = self.inner.clone();
        let mut params = params;
        params.cancel = abort.token();
        let events = async_stream::stream! {
            let first = inner.execute(params.clone()).await;
            let mut again = match first.answer() {
                None if first.is_success() => inner.execute(params),
                _ => {
                    yield teamster::AgentEvent::Done(teamster::Done::new(first));
                    return;
                }
            };
            while let Some(event) = again.next().await {
                yield event;
            }
        };
        EventStream::new(events, abort)
    }
}

/// Code of an application, for any runtime.
async fn summary(runtime: &dyn AgentRuntime) -> Result<String, AgentError> {
    let params = ExecuteParams::new("Summarise README.md").max_turns(3);
    let result = runtime.execute(params).await.into_result()?;
    Ok(result.answer().unwrap_or_default().to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AgentError> {
    // The simulated hour takes no real time.
    tokio::time::pause();
    let mock = MockRuntime::new("claude")
        .run(Script::new().delay(Duration::from_hours(1)).completed())
        .run(
            Script::new()
                .session("s-1")
                .text("It is a library.")
                .completed(),
        );
    let runtime = Insisting {
        inner: mock.clone(),
    };
    let text = summary(&runtime).await?;
    println!("{text}");
    assert_eq!(text, "It is a library.");
    let runs = mock.runs();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1].params.max_turns, Some(3));
    assert!(runs[1].started - runs[0].started >= Duration::from_hours(1));

    // The stream follows the grammar that consumers rely on.
    let script = Script::new()
        .text_in("m1", "Half")
        .retract("m1")
        .text("Whole")
        .completed();
    let runtime = Insisting {
        inner: MockRuntime::new("claude").run(Script::new()).run(script),
    };
    let mut stream = runtime.execute(ExecuteParams::new("hi"));
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    assert_eq!(grammar::check(&events), Ok(()));

    // A failure keeps its code and kind.
    let error = AgentError::new(ErrorCode::CliNotFound, ErrorKind::NotFound, "not installed");
    let failing = MockRuntime::new("claude").run(Script::new().failed(error.clone()));
    let failing = Insisting { inner: failing };
    assert_eq!(summary(&failing).await, Err(error));

    let silent = MockRuntime::new("claude").run(Script::new().incomplete());
    let result = silent.execute(ExecuteParams::new("hi")).await;
    assert_eq!(result.status, RunStatus::Incomplete);
    Ok(())
}

#[cfg(test)]
#[test]
fn the_example_runs() {
    main().unwrap();
}
