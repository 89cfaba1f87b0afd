//! Telemetry of a server and its runs, as a collector receives it.

use teamster_testkit::proc::wait_until;

use super::Served;
use crate::cli::otlp::collector::Collector;
use crate::cli::{Claude, LIMIT, run, teamster};

#[test]
fn server_sends_its_figures_to_a_collector() {
    let collector = Collector::start();
    let claude = Claude::plays("text", 0);
    let (program, url) = (claude.path("claude"), collector.url());
    let served = Served::start(&[], &claude.path("state"), |command| {
        command
            .env("TEAMSTER_CLAUDE_BIN", &program)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
            .env("OTEL_METRIC_EXPORT_INTERVAL", "100");
    });
    // Without a request: runs of before are not counted.
    let is_current = || collector.figure("teamster_runs_current", &[]) == Some(1.0);
    assert!(wait_until(LIMIT, is_current), "no figures");
    let id = served.detach();
    assert_eq!(served.ended(&id)["status"], "completed");
    let ended = [("agent", "claude"), ("status", "completed")];
    let is_counted = || collector.figure("teamster_runs_ended", &ended) == Some(1.0);
    assert!(wait_until(LIMIT, is_counted), "the run is not counted");
    let text = served.get("/metrics").body;
    let line = "teamster_runs_ended_total{agent=\"claude\",status=\"completed\"} 1\n";
    assert!(text.contains(line), "{text}");
    served.end();
}

#[test]
fn remote_run_is_a_part_of_the_trace_of_its_command() {
    let collector = Collector::start();
    let claude = Claude::plays("text", 0);
    let (program, url) = (claude.path("claude"), collector.url());
    let args = ["--allow-env", "TRACEPARENT"];
    let served = Served::start(&args, &claude.path("state"), |command| {
        command
            .env("TEAMSTER_CLAUDE_BIN", &program)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
            .env("OTEL_METRICS_EXPORTER", "none");
    });
    let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let mut command = teamster(["run", "claude", "x"]);
    command
        .env("TEAMSTER_REMOTE", format!("http://{}", served.address))
        .env("TEAMSTER_REMOTE_TOKEN", &served.token)
        .env("TRACEPARENT", format!("00-{trace}-{parent}-01"));
    run(&mut command).ok();
    let is_sent = || !collector.spans().is_empty();
    assert!(wait_until(LIMIT, is_sent), "the runner sent nothing");
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace == trace), "{spans:#?}");
    let roots: Vec<_> = spans.iter().filter(|span| span.parent == parent).collect();
    assert_eq!(roots.len(), 1, "{spans:#?}");
    served.end();
}
