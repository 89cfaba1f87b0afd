//! Input of a stand-in: messages and control requests.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

/// A line from stdin, or the prompt of the arguments.
#[derive(Debug)]
pub(super) enum Input {
    Message {
        uuid: Option<String>,
        text: String,
    },
    Request {
        id: String,
        subtype: String,
        uuid: Option<String>,
    },
    Garbage(String),
}

/// Reads stdin in a separate thread, so that an interrupt is received within a turn.
pub(super) fn read() -> Receiver<Input> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if let Some(input) = input(&line)
                && sender.send(input).is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// Returns the only message of a process without `--input-format`: the words after `--`, or all of stdin.
pub(super) fn prompt(args: &[String]) -> Result<Receiver<Input>, String> {
    let mut text = match args.iter().position(|arg| arg == "--") {
        Some(at) => args[at + 1..].join(" "),
        None => String::new(),
    };
    if text.is_empty() {
        (io::stdin().read_to_string(&mut text))
            .map_err(|error| format!("cannot read the prompt: {error}"))?;
    }
    let (sender, receiver) = channel();
    // The receiver is here.
    let _ = sender.send(Input::Message { uuid: None, text });
    Ok(receiver)
}

/// Parses a line. Returns `None` for an unknown type.
fn input(line: &str) -> Option<Input> {
    let Ok(value) = serde_json::from_str::<Value>(line) else {
        return Some(Input::Garbage(line.to_owned()));
    };
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    match value["type"].as_str()? {
        "user" => {
            let text = match &value["message"]["content"] {
                Value::String(text) => text.clone(),
                blocks => blocks
                    .as_array()?
                    .iter()
                    .filter_map(|block| block["text"].as_str())
                    .collect(),
            };
            Some(Input::Message {
                uuid: text_of(&value["uuid"]),
                text,
            })
        }
        "control_request" => Some(Input::Request {
            id: text_of(&value["request_id"])?,
            subtype: text_of(&value["request"]["subtype"])?,
            uuid: text_of(&value["request"]["message_uuid"]),
        }),
        _ => None,
    }
}
