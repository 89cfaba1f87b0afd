//! The figures of a server, as a collector receives them.

use teamster_testkit::proc::wait_until;

use super::Served;
use crate::cli::otlp::collector::Collector;
use crate::cli::{Claude, LIMIT};

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
