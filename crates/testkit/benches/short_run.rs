//! A whole short run of a fake agent, beside the floor: spawning it and reading its output.
#![expect(
    clippy::expect_used,
    reason = "without its input a benchmark has nothing to measure"
)]

use std::hint::black_box;
use std::io::Read;
use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};
use teamster::{AgentRuntime, ExecuteParams, RunStatus, RuntimeConfig, claude::Claude};
use teamster_process::CliRuntime;
use teamster_testkit::fake_agent::{Play, Script};

/// A run of Claude Code with a short answer.
const RECORDED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/claude/2.1.197/text/stdout.ndjson"
);
const FAKE_AGENT: &str = env!("CARGO_BIN_EXE_teamster-fake-agent");

fn short_run(c: &mut Criterion) {
    let script = Script::new().play(Play::new(RECORDED));
    let env = script.env().expect("a script of one step can be written");
    let mut group = c.benchmark_group("short run");
    group.bench_function("floor: spawn and read", |b| {
        b.iter(|| {
            let mut child = Command::new(FAKE_AGENT)
                .envs(env.clone())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the fake agent starts");
            let mut output = Vec::new();
            let mut stdout = child.stdout.take().expect("it is a pipe");
            stdout.read_to_end(&mut output).expect("it can be read");
            child.wait().expect("it ends");
            black_box(output)
        });
    });

    let mut config = RuntimeConfig::default();
    config.program = Some(FAKE_AGENT.into());
    let runtime = CliRuntime::with_config(Claude, config);
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    group.bench_function("CliRuntime", |b| {
        b.iter(|| {
            let mut params = ExecuteParams::new("hello");
            params
                .env
                .extend(env.clone().map(|(name, value)| (name.to_owned(), value)));
            let result = tokio.block_on(runtime.execute(params).result());
            assert_eq!(result.status, RunStatus::Completed, "{:?}", result.errors);
        });
    });
    group.finish();
}

criterion_group!(benches, short_run);
criterion_main!(benches);
