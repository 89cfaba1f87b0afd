//! What the comparison of `compare.py` needs in Rust: the fake CLI, the floor, and the driver of `teamster`.
//!
//! ```text
//! compare floor                 spawns the fake CLI and splits its output
//! compare library PROVIDER      runs a provider of the library with the fake CLI
//! compare program COMMAND...    runs a program that prints events, and splits its output
//! ```
//!
//! `COMPARE_RUNS` is the number of runs, `COMPARE_TIMES` requests the latency of each line, and `COMPARE_AGENT` is
//! the path of the fake CLI: a copy of this program by the name `agent`. A driver prints a line of JSON for each run.
#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use teamster::{AgentEvent, ExecuteParams, RuntimeConfig, create_cli_runtime};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SESSION: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";
/// Text of a line whose latency is not measured.
const WORDS: &str = "a few words ";

fn main() -> Result<()> {
    let args: Vec<String> = env::args().collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [_, ref args @ ..] if env::current_exe()?.ends_with("agent") => agent(args),
        [_, "floor"] => bare(&[&env::var("COMPARE_AGENT")?, "-p"]),
        [_, "library", provider] => library(provider),
        [_, "program", ref command @ ..] => bare(command),
        _ => Err("see the head of this file".into()),
    }
}

/// Speaks as the CLI that the arguments are for: Claude Code, Codex, or an agent of the Agent Client Protocol.
fn agent(args: &[&str]) -> Result<()> {
    let has = |arg: &str| args.iter().any(|it| it.starts_with(arg));
    let stdin = std::io::stdin().lock().lines();
    if args == ["--version"] || args == ["-v"] {
        println!("2.1.197 (Claude Code)");
    } else if has("exec") {
        stdin.for_each(drop);
        println!(r#"{{"type":"thread.started","thread_id":"{SESSION}"}}"#);
        println!(r#"{{"type":"turn.started"}}"#);
        emit(|number, text| {
            format!(
                r#"{{"type":"item.completed","item":{{"id":"item_{number}","type":"agent_message","text":"{text}"}}}}"#
            )
        })?;
        println!(
            r#"{{"type":"turn.completed","usage":{{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}}}"#
        );
    } else if has("--print") || has("-p") || has("--output-format") {
        if !has("--input-format") {
            return claude();
        }
        for line in stdin {
            let message: Value = serde_json::from_str(&line?)?;
            if message["type"] == "user" {
                claude()?;
            } else if message["type"] == "control_request" {
                let id = &message["request_id"];
                let response = json!({"subtype": "success", "request_id": id, "response": {}});
                println!(
                    "{}",
                    json!({"type": "control_response", "response": response})
                );
            }
        }
    } else {
        for line in stdin {
            let message: Value = serde_json::from_str(&line?)?;
            let result = match message["method"].as_str() {
                Some("initialize") => {
                    json!({"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
                }
                Some("session/new") => json!({"sessionId": SESSION}),
                Some("session/prompt") => {
                    emit(|_, text| {
                        format!(
                            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{SESSION}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
                        )
                    })?;
                    json!({"stopReason": "end_turn"})
                }
                _ => json!({}),
            };
            if let Some(id) = message.get("id") {
                println!("{}", json!({"jsonrpc": "2.0", "id": id, "result": result}));
            }
        }
    }
    Ok(())
}

/// Prints a session of Claude Code.
fn claude() -> Result<()> {
    println!(r#"{{"type":"system","subtype":"init","session_id":"{SESSION}","model":"m"}}"#);
    emit(|_, text| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"ad2e5fef-3f54-4bd7-8082-516ca8c0beb7"}}"#
        )
    })?;
    println!(
        r#"{{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"session_id":"{SESSION}"}}"#
    );
    Ok(())
}

/// Prints the lines that the file `plan` beside this program requests: their number, and the microseconds between
/// them. Then writes the processor time of this process to the file `spent`.
fn emit(line: impl Fn(u32, &str) -> String) -> Result<()> {
    let itself = env::current_exe()?;
    let plan = fs::read_to_string(itself.with_file_name("plan"))?;
    let (lines, pause) = plan.split_once(' ').ok_or("no plan")?;
    let pause = Duration::from_micros(pause.parse()?);
    let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    for number in 0..lines.parse()? {
        if pause.is_zero() {
            writeln!(out, "{}", line(number, WORDS))?;
        } else {
            std::thread::sleep(pause);
            writeln!(out, "{}", line(number, &now().to_string()))?;
            out.flush()?;
        }
    }
    out.flush()?;
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let spent = usage.user_time() + usage.system_time();
    Ok(fs::write(
        itself.with_file_name("spent"),
        spent.num_microseconds().to_string(),
    )?)
}

/// Counts lines or notes their latency.
struct Run {
    start: Instant,
    lines: u64,
    times: Option<Vec<i64>>,
}

impl Run {
    fn new() -> Self {
        let times = env::var_os("COMPARE_TIMES").map(|_| Vec::new());
        Self {
            start: Instant::now(),
            lines: 0,
            times,
        }
    }

    fn text(&mut self, text: &str) {
        let Some(times) = &mut self.times else {
            self.lines += u64::from(text == WORDS);
            return;
        };
        if let Ok(time) = text.parse::<i64>() {
            times.push(now() - time);
            self.lines += 1;
        }
    }

    fn print(self) {
        let ms = self.start.elapsed().as_secs_f64() * 1000.0;
        println!(
            "{}",
            json!({"ms": ms, "lines": self.lines, "times": self.times})
        );
    }
}

fn runs() -> Result<u32> {
    Ok(env::var("COMPARE_RUNS")?.parse()?)
}

/// Runs a command and splits its output.
fn bare(command: &[&str]) -> Result<()> {
    let [program, args @ ..] = command else {
        return Err("no command".into());
    };
    for _ in 0..runs()? {
        let mut run = Run::new();
        let mut child = (Command::new(program).args(args))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut stdout = BufReader::with_capacity(64 << 10, child.stdout.take().ok_or("no pipe")?);
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line)? > 0 {
            if let Some(at) = memchr::memmem::find(&line, br#""text":""#) {
                let text = &line[at + 8..];
                let end = memchr::memchr(b'"', text).unwrap_or(text.len());
                run.text(std::str::from_utf8(&text[..end])?);
            }
            line.clear();
        }
        if !child.wait()?.success() {
            return Err(format!("{program} failed").into());
        }
        run.print();
    }
    Ok(())
}

/// Runs a provider of the library with the fake CLI.
fn library(provider: &str) -> Result<()> {
    let mut cli = RuntimeConfig::default();
    cli.program = Some(env::var_os("COMPARE_AGENT").ok_or("no agent")?.into());
    let runtime = create_cli_runtime(provider, cli)?;
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    for _ in 0..runs()? {
        let mut run = Run::new();
        tokio.block_on(async {
            let mut stream = runtime.execute(ExecuteParams::new("x"));
            while let Some(event) = stream.next().await {
                match event {
                    AgentEvent::Text(text) => run.text(&text.text),
                    AgentEvent::Error(error) => return Err(error.error.message),
                    _ => {}
                }
            }
            Ok(())
        })?;
        run.print();
    }
    Ok(())
}

fn now() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds())
}
