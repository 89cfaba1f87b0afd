//! Delays on a paused clock.

use std::time::Duration;

use teamster_core::AgentRuntime;
use teamster_testkit::mock_runtime::{MockRuntime, Script};
use tokio::time::Instant;

use super::params;

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test(start_paused = true)]
async fn a_delay_takes_its_time() {
    let script = Script::new().text("a").delay(HOUR).text("b").delay(HOUR);
    let mock = MockRuntime::new("claude").run(script);
    let start = Instant::now();
    let mut stream = mock.execute(params());
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        seen.push((event.type_name(), start.elapsed()));
        if let teamster_core::AgentEvent::Done(done) = event {
            assert_eq!(done.result.duration_ms, 2 * 3_600_000);
        }
    }
    assert_eq!(
        seen,
        [("text", Duration::ZERO), ("text", HOUR), ("done", 2 * HOUR)]
    );
}

#[tokio::test(start_paused = true)]
async fn the_starts_of_runs_are_reported() {
    let mock = MockRuntime::new("claude")
        .run(Script::new().delay(HOUR))
        .repeat_last();
    let start = Instant::now();
    let first = mock.execute(params());
    // Created, but not polled: not started.
    tokio::time::sleep(HOUR).await;
    first.result().await;
    mock.execute(params()).result().await;
    let started: Vec<_> = mock.runs().iter().map(|run| run.started - start).collect();
    assert_eq!(started, [HOUR, 2 * HOUR]);
}

#[test]
fn a_script_without_delays_needs_no_tokio() {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    let mock = MockRuntime::new("claude").run(Script::new().text("a"));
    let mut result = pin!(mock.execute(params()).result());
    let Poll::Ready(result) = result
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("it waits for something");
    };
    assert_eq!(result.text, "a");
}
