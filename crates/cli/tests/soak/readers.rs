//! Others who read the loop's files all the time: no file is ever half of one.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

/// Files of the agent's, which it does not replace as a whole.
const OF_THE_AGENT: &[&str] = &["tools.json"];

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// How often each file.
    pub(crate) files: BTreeMap<String, u64>,
    /// What should not have been.
    pub(crate) wrong: Vec<String>,
    /// The largest that log was, in bytes.
    pub(crate) log_bytes: u64,
}

pub(crate) struct Readers {
    ended: Arc<AtomicBool>,
    read: Arc<Mutex<Read>>,
    thread: Option<JoinHandle<()>>,
}

impl Readers {
    /// Begins to read everything in this folder.
    pub(crate) fn begin(folder: PathBuf) -> Self {
        let (ended, read) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Read>>::default());
        let thread = thread::spawn({
            let (ended, read) = (Arc::clone(&ended), Arc::clone(&read));
            move || {
                while !ended.load(Ordering::Relaxed) {
                    look(&folder, &mut read.lock().unwrap());
                    thread::sleep(Duration::from_millis(2));
                }
            }
        });
        Self {
            ended,
            read,
            thread: Some(thread),
        }
    }

    pub(crate) fn end(&mut self) -> Read {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        std::mem::take(&mut self.read.lock().unwrap())
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn look(folder: &PathBuf, read: &mut Read) {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        let path = folder.join(&name);
        if name.starts_with("agent-loop.log") {
            let size = fs::metadata(&path).map_or(0, |file| file.len());
            read.log_bytes = read.log_bytes.max(size);
        }
        // New ones are being written under another name.
        let is_json = path.extension().is_some_and(|it| it == "json") && !name.starts_with('.');
        if !is_json || OF_THE_AGENT.contains(&&*name) {
            continue;
        }
        // It may have been removed meanwhile.
        let Ok(text) = fs::read(&path) else { continue };
        *read.files.entry(name.clone()).or_default() += 1;
        let wrong = match serde_json::from_slice::<Value>(&text) {
            Err(error) => Some(error.to_string()),
            Ok(value) if name == "sleep.json" => sleep(&value),
            Ok(value) => (!value.is_object()).then(|| "no object".to_owned()),
        };
        if let Some(wrong) = wrong {
            let text = String::from_utf8_lossy(&text).into_owned();
            read.wrong.push(format!("{name}: {wrong}: {text}"));
        }
    }
}

/// What is wrong with what dashboards read.
fn sleep(value: &Value) -> Option<String> {
    let state = value["state"].as_str();
    let numbers = ["current_sleep_seconds", "updated_at_epoch"];
    if let Some(name) = numbers.iter().find(|name| !value[**name].is_u64()) {
        return Some(format!("{name} is no whole number"));
    }
    if !value["reason"].is_string() {
        return Some("no reason".to_owned());
    }
    match (state, value["sleep_until_epoch"].is_u64()) {
        (Some("sleeping"), true) | (Some("tick"), false) => None,
        other => Some(format!("state and sleep_until_epoch: {other:?}")),
    }
}
