//! A small MCP server on stdin and stdout, for tests and trials.
//!
//! It has five tools: `echo` returns its `text`, `fail` always fails, `slow` answers after `seconds`, `env`
//! returns the value of an environment variable, and `draw` returns an image. For a client that supports
//! elicitation it also has `ask`, which asks the user a `question` and returns the answer. With a [`Fault`],
//! it misbehaves as real servers do.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

/// The help text.
pub const HELP: &str = "\
An MCP server for tests, on stdin and stdout, with the tools echo, fail, slow, env, draw and ask.

Usage: teamster-fake-mcp-server [FAULT]

Faults:
  --exit        ends at once with code 3 and a line on stderr
  --hang        never answers
  --garbage     prints lines that are no JSON-RPC, and answers all the same
  --die         ends when a tool is called
  --no-tools    has no tools
  --refuse      answers `initialize` with an error
  --ignore-eof  runs on for an hour after the end of its input
";

/// A fault of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Exits immediately with code 3 and a line on stderr.
    Exit,
    /// Never answers.
    Hang,
    /// Prints lines that are not JSON-RPC, and still answers.
    Garbage,
    /// Ends when a tool is called.
    Die,
    /// Has no tools.
    NoTools,
    /// Answers `initialize` with an error.
    Refuse,
    /// Runs for another hour after the end of its input.
    IgnoreEof,
}

impl Fault {
    /// Returns the fault of a command-line flag, or `None` for an unknown flag.
    pub fn of_flag(flag: &str) -> Option<Self> {
        Some(match flag {
            "--exit" => Self::Exit,
            "--hang" => Self::Hang,
            "--garbage" => Self::Garbage,
            "--die" => Self::Die,
            "--no-tools" => Self::NoTools,
            "--refuse" => Self::Refuse,
            "--ignore-eof" => Self::IgnoreEof,
            _ => return None,
        })
    }
}

/// Runs the program. The arguments exclude the program's name.
#[expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "it is the main function of a program"
)]
pub fn main(args: impl Iterator<Item = String>) -> ExitCode {
    let mut fault = None;
    for arg in args {
        if matches!(&*arg, "-h" | "--help") {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        match Fault::of_flag(&arg) {
            Some(asked) => fault = Some(asked),
            None => {
                eprintln!("teamster-fake-mcp-server: unknown fault {arg:?}: --help lists them");
                return ExitCode::from(2);
            }
        }
    }
    if fault == Some(Fault::Exit) {
        eprintln!("broken on purpose");
        return ExitCode::from(3);
    }
    let served = serve(io::stdin().lock(), &mut io::stdout().lock(), fault);
    if fault == Some(Fault::IgnoreEof) {
        sleep(Duration::from_hours(1));
    }
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Answers requests until the end of the input.
///
/// # Errors
///
/// Errors of reading and writing, and `UnexpectedEof` when [`Fault::Die`] ends it.
pub fn serve(input: impl BufRead, output: &mut impl Write, fault: Option<Fault>) -> io::Result<()> {
    let mut can_ask = false;
    // The call that waits for the user's answer.
    let mut asking = None;
    for line in input.lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        if request["id"] == QUESTION && request.get("method").is_none() {
            if let Some(call) = asking.take() {
                let answer = answered(&call, &request["result"]);
                writeln!(output, "{answer}")?;
                output.flush()?;
            }
            continue;
        }
        if fault == Some(Fault::Garbage) {
            writeln!(output, "starting up...\n{{\"half\": ")?;
        }
        let (Some(id), Some(method)) = (request.get("id"), request["method"].as_str()) else {
            // A notification.
            continue;
        };
        if fault == Some(Fault::Hang) {
            continue;
        }
        if fault == Some(Fault::Die) && method == "tools/call" {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if method == "initialize" {
            can_ask = request["params"]["capabilities"]["elicitation"].is_object();
        }
        if can_ask && method == "tools/call" && request["params"]["name"] == "ask" {
            asking = Some(id.clone());
            let question = question(&request["params"]["arguments"]["question"]);
            writeln!(output, "{question}")?;
            output.flush()?;
            continue;
        }
        let mut answer = json!({"jsonrpc": "2.0", "id": id});
        match result(method, &request["params"], fault, can_ask) {
            Ok(result) => answer["result"] = result,
            Err((code, message)) => answer["error"] = json!({"code": code, "message": message}),
        }
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

/// Id of the question to the user.
const QUESTION: &str = "question";

/// Returns the request to the client to ask the user.
fn question(message: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": QUESTION, "method": "elicitation/create", "params": {
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {"answer": {"type": "string"}},
            "required": ["answer"],
        },
    }})
}

/// Returns the result of `ask`: the client's answer.
fn answered(call: &Value, result: &Value) -> Value {
    let action = result["action"].as_str().unwrap_or("an error");
    let answer = result["content"]["answer"].as_str().unwrap_or_default();
    let text = format!("{action} {answer}");
    json!({"jsonrpc": "2.0", "id": call, "result": {
        "content": [{"type": "text", "text": text.trim_end()}],
        "isError": false,
    }})
}

fn result(
    method: &str,
    params: &Value,
    fault: Option<Fault>,
    can_ask: bool,
) -> Result<Value, (i32, String)> {
    match method {
        "initialize" if fault == Some(Fault::Refuse) => {
            Err((-32000, "refused on purpose".to_owned()))
        }
        "initialize" => Ok(json!({
            "protocolVersion": params["protocolVersion"].as_str().unwrap_or("2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "teamster-fake-mcp-server", "version": env!("CARGO_PKG_VERSION")},
        })),
        "ping" => Ok(json!({})),
        "tools/list" if fault == Some(Fault::NoTools) => Ok(json!({"tools": []})),
        "tools/list" => Ok(json!({"tools": tools(can_ask)})),
        "tools/call" => call(&params["name"], &params["arguments"]),
        _ => Err((-32601, format!("there is no method {method}"))),
    }
}

/// A PNG image of one pixel, in Base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn tools(can_ask: bool) -> Value {
    let tool = |name: &str, description: &str, argument: &str, kind: &str| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {argument: {"type": kind}},
                "required": [argument],
            },
        })
    };
    let mut tools = vec![
        tool("echo", "Gives the text back", "text", "string"),
        tool("fail", "Fails always", "why", "string"),
        tool("slow", "Answers after some seconds", "seconds", "number"),
        tool(
            "env",
            "Gives the value of an environment variable",
            "name",
            "string",
        ),
        tool("draw", "Gives an image", "title", "string"),
    ];
    if can_ask {
        tools.push(tool(
            "ask",
            "Asks the user a question",
            "question",
            "string",
        ));
    }
    tools.into()
}

fn call(name: &Value, arguments: &Value) -> Result<Value, (i32, String)> {
    let text = |key: &str| arguments[key].as_str().unwrap_or_default();
    if name == "draw" {
        return Ok(json!({"content": [
            {"type": "text", "text": text("title")},
            {"type": "image", "mimeType": "image/png", "data": PIXEL},
        ]}));
    }
    let (text, is_error) = match name.as_str() {
        Some("echo") => (format!("echo: {}", text("text")), false),
        Some("fail") => (format!("failed on purpose: {}", text("why")), true),
        Some("slow") => {
            let seconds = arguments["seconds"].as_f64().unwrap_or(1.0);
            sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default());
            (format!("slept {seconds} s"), false)
        }
        Some("env") => match std::env::var(text("name")) {
            Ok(value) => (format!("{}={value}", text("name")), false),
            Err(_) => (format!("{} is not set", text("name")), true),
        },
        _ => return Err((-32602, format!("there is no tool {name}"))),
    };
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(requests: &[Value], fault: Option<Fault>) -> Vec<Value> {
        let lines: Vec<_> = requests.iter().map(Value::to_string).collect();
        let input = lines.join(
            "
",
        );
        let mut output = Vec::new();
        let _ = serve(input.as_bytes(), &mut output, fault);
        let text = String::from_utf8(output).unwrap();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    fn request(id: u32, method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    #[test]
    fn fake_server_answers_according_to_the_protocol() {
        let answers = answers(
            &[
                request(1, "initialize", &json!({"protocolVersion": "2025-11-25"})),
                json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                request(2, "tools/list", &json!({})),
                request(
                    3,
                    "tools/call",
                    &json!({"name": "echo", "arguments": {"text": "né"}}),
                ),
                request(
                    4,
                    "tools/call",
                    &json!({"name": "fail", "arguments": {"why": "x"}}),
                ),
                request(5, "nothing", &json!({})),
                request(
                    6,
                    "tools/call",
                    &json!({"name": "draw", "arguments": {"title": "a"}}),
                ),
            ],
            None,
        );
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(answers[1]["result"]["tools"].as_array().unwrap().len(), 5);
        assert_eq!(answers[2]["result"]["content"][0]["text"], "echo: né");
        assert_eq!(answers[2]["result"]["isError"], false);
        assert_eq!(
            answers[3]["result"]["content"][0]["text"],
            "failed on purpose: x"
        );
        assert_eq!(answers[3]["result"]["isError"], true);
        assert_eq!(answers[4]["id"], 5);
        assert_eq!(answers[4]["error"]["code"], -32601);
        let picture = &answers[5]["result"]["content"];
        assert_eq!(picture[0]["text"], "a");
        assert_eq!(picture[1]["mimeType"], "image/png");
        assert_eq!(picture[1]["data"], PIXEL);
        assert_eq!(answers.len(), 6);
    }

    #[test]
    fn fake_server_asks_a_client_that_supports_questions() {
        let call = request(
            2,
            "tools/call",
            &json!({"name": "ask", "arguments": {"question": "Which?"}}),
        );
        let reply = json!({"jsonrpc": "2.0", "id": "question", "result": {"action": "accept", "content": {"answer": "blue"}}});
        let can = json!({"capabilities": {"elicitation": {}}});
        let asked = answers(&[request(1, "initialize", &can), call.clone(), reply], None);
        assert_eq!(asked[1]["method"], "elicitation/create");
        assert_eq!(asked[1]["params"]["message"], "Which?");
        assert_eq!(asked[2]["id"], 2);
        assert_eq!(asked[2]["result"]["content"][0]["text"], "accept blue");
        let cannot = answers(&[request(1, "initialize", &json!({})), call], None);
        assert_eq!(cannot[1]["error"]["code"], -32602);
    }

    #[test]
    fn faults() {
        let call = request(1, "tools/call", &json!({"name": "echo", "arguments": {}}));
        let list = request(2, "tools/list", &json!({}));
        let of = |fault| answers(&[list.clone(), call.clone()], Some(fault)).len();
        assert_eq!(of(Fault::Hang), 0);
        assert_eq!(of(Fault::Die), 1);
        assert_eq!(of(Fault::Garbage), 2);
        let none = answers(std::slice::from_ref(&list), Some(Fault::NoTools));
        assert_eq!(none[0]["result"]["tools"], json!([]));
        let refused = answers(&[request(1, "initialize", &json!({}))], Some(Fault::Refuse));
        assert_eq!(refused[0]["error"]["message"], "refused on purpose");
    }
}
