//! Checks of output into whose lines another program wrote.

use serde_json::Value;
use teamster_core::{AgentEvent, Diagnostics};

use super::output::location;
use super::{Failures, Suite, Verdict};
use crate::replay::Replay;

/// Output of another program before and after each JSON line.
const BESIDE: [(&str, &str); 6] = [
    ("\u{1b}[2K\u{1b}]0;title\u{7}", "\u{1b}[?25h"),
    ("checked {x} [y]… ", ""),
    ("{\"level\":\"info\"} ", ""),
    ("\u{feff}10%\r100%\r", "\0"),
    ("", " and so on"),
    ("[{\"type\":\"text\",\"text\":\"no\"}] ", "{}"),
];

impl Suite {
    /// Checks that text of another program in the lines of the output changes no event, except that it is a notice.
    pub fn mixed(&self) -> Verdict {
        let mut wrong = Failures::of("mixed");
        for fixture in &self.fixtures {
            let expected = essence(self.play([fixture.stdout.as_slice()], fixture.exit()));
            let mut same = |stdout: &[u8], how: &str| {
                let mixed = essence(self.play([stdout], fixture.exit()));
                if let Some(at) = (0..mixed.len().max(expected.len()))
                    .find(|at| mixed.get(*at) != expected.get(*at))
                {
                    let (is, right) = (mixed.get(at), expected.get(at));
                    wrong.add(
                        location(fixture),
                        format!("{how}: event {at} is {is:?}, without the text {right:?}"),
                    );
                }
            };
            let lines: Vec<_> = fixture.stdout.split(|b| *b == b'\n').collect();
            for (before, after) in BESIDE {
                let mut stdout = Vec::new();
                for line in &lines {
                    if is_json(line) {
                        stdout.extend([before.as_bytes(), *line, after.as_bytes()].concat());
                    } else {
                        stdout.extend(*line);
                    }
                    stdout.push(b'\n');
                }
                same(&stdout, &format!("{before:?} … {after:?}"));
            }
            let mut joined = Vec::new();
            for (number, line) in lines.iter().enumerate() {
                joined.extend(*line);
                let next = lines.get(number + 1);
                if number % 3 == 0 || !is_json(line) || !next.is_some_and(|next| is_json(next)) {
                    joined.push(b'\n');
                }
            }
            same(&joined, "up to three values in a line");
        }
        wrong.verdict()
    }
}

fn is_json(line: &[u8]) -> bool {
    line.starts_with(b"{") && serde_json::from_slice::<Value>(line).is_ok()
}

/// Returns the events without notices and counts of lines.
fn essence(replay: Replay) -> Vec<AgentEvent> {
    let mut events = replay.events;
    events.retain(|event| !matches!(event, AgentEvent::Notice(_)));
    if let Some(AgentEvent::Done(done)) = events.last_mut() {
        done.result.diagnostics = Diagnostics::default();
    }
    events
}
