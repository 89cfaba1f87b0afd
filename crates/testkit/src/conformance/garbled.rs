//! Checks with garbled lines: no panic, and a stream with a valid grammar.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};
use teamster_core::provider::{Exit, Stop};

use super::output::check_stream;
use super::verdict::property;
use super::{Failures, Suite, Verdict};
use crate::fixture::Fixture;

/// Largest fixture that is played, in bytes. Each is played hundreds of times.
const LARGEST: usize = 40_000;

type Lines = Vec<Vec<u8>>;

/// Recorded lines, and the words in them that decoders look for.
#[derive(Debug, Clone)]
pub struct Corpus {
    runs: Vec<Lines>,
    records: Vec<String>,
    keys: Vec<String>,
    strings: Vec<String>,
}

impl Corpus {
    /// Creates a corpus from the lines of these fixtures. Fixtures that are too large to be played often are
    /// skipped.
    pub fn new<'a>(fixtures: impl IntoIterator<Item = &'a Fixture>) -> Self {
        let mut corpus = Self {
            runs: Vec::new(),
            records: vec!["{}".into()],
            keys: vec!["type".into()],
            strings: vec![String::new()],
        };
        for fixture in fixtures {
            let lines = fixture.stdout.split(|b| *b == b'\n');
            let lines: Lines = lines
                .filter(|l| !l.is_empty())
                .map(<[u8]>::to_vec)
                .collect();
            if fixture.stdout.len() < LARGEST && !lines.is_empty() {
                corpus.runs.push(lines);
            }
            let record = fixture.record.iter().filter(|line| line.len() < LARGEST);
            corpus.records.extend(record.cloned());
        }
        let printed = corpus.runs.iter().flatten().map(Vec::as_slice);
        for line in printed.chain(corpus.records.iter().map(String::as_bytes)) {
            if let Ok(value) = serde_json::from_slice(line) {
                collect_words(&value, &mut corpus.keys, &mut corpus.strings);
            }
        }
        for list in [&mut corpus.keys, &mut corpus.strings] {
            list.sort();
            list.dedup();
        }
        if corpus.runs.is_empty() {
            corpus.runs.push(vec![b"{}".to_vec()]);
        }
        corpus
    }

    fn recorded(&self) -> BoxedStrategy<Lines> {
        select(self.runs.clone()).boxed()
    }

    fn key(&self) -> BoxedStrategy<String> {
        select(self.keys.clone()).boxed()
    }

    fn string(&self) -> BoxedStrategy<String> {
        select(self.strings.clone()).boxed()
    }

    fn any_json(&self) -> BoxedStrategy<Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            self.string().prop_map(Value::from),
        ];
        let key = self.key();
        leaf.prop_recursive(4, 24, 6, move |inner| {
            let entry = (key.clone(), inner.clone());
            prop_oneof![
                vec(inner, 0..4).prop_map(Value::Array),
                vec(entry, 0..6).prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
        .boxed()
    }

    /// Generates an object that resembles a line: a known type, with any other fields.
    fn any_line(&self) -> BoxedStrategy<Value> {
        let entries = vec((self.key(), self.any_json()), 0..6);
        (self.string(), self.string(), entries)
            .prop_map(|(kind, subtype, entries)| {
                let mut line = Map::from_iter(entries);
                line.insert("type".into(), kind.into());
                line.insert("subtype".into(), subtype.into());
                Value::Object(line)
            })
            .boxed()
    }

    fn values_changed(&self) -> BoxedStrategy<Lines> {
        let changes = vec((any::<Index>(), any::<Index>(), self.any_json()), 1..8);
        let change = |(lines, changes): (Lines, Vec<(Index, Index, Value)>)| {
            let mut lines = values(&lines);
            for (line, position, with) in &changes {
                let line = line.get_mut(&mut lines);
                // Never the line itself: a line that is not an object does not reach a decoder.
                let mut nth = 1 + position.index(count(line));
                replace_nth(line, &mut nth, with);
            }
            lines.iter().map(bytes_of).collect()
        };
        (self.recorded(), changes).prop_map(change).boxed()
    }

    fn fields_removed(&self) -> BoxedStrategy<Lines> {
        let positions = vec((any::<Index>(), any::<Index>()), 1..8);
        let remove = |(lines, positions): (Lines, Vec<(Index, Index)>)| {
            let mut lines = values(&lines);
            for (line, position) in &positions {
                let line = line.get_mut(&mut lines);
                let fields = count_fields(line);
                if fields > 0 {
                    remove_nth(line, &mut position.index(fields));
                }
            }
            lines.iter().map(bytes_of).collect()
        };
        (self.recorded(), positions).prop_map(remove).boxed()
    }

    fn cut_inside(&self) -> BoxedStrategy<Lines> {
        let cuts = vec((any::<Index>(), any::<Index>()), 1..4);
        let cut = |(mut lines, cuts): (Lines, Vec<(Index, Index)>)| {
            for (line, position) in &cuts {
                let line = line.get_mut(&mut lines);
                if !line.is_empty() {
                    line.truncate(position.index(line.len()));
                }
            }
            lines
        };
        (self.recorded(), cuts).prop_map(cut).boxed()
    }

    /// Generates an exit of the process, with lines of the CLI's own record of the session.
    fn exit(&self) -> BoxedStrategy<Exit> {
        let code = prop_oneof![
            Just(Some(0)),
            Just(Some(1)),
            Just(None),
            any::<Option<i32>>()
        ];
        let signal = prop_oneof![3 => Just(None), 1 => Just(Some("SIGKILL".to_owned()))];
        let stderr = prop_oneof![Just(String::new()), ".{0,40}"];
        let stop = prop_oneof![
            3 => Just(None),
            1 => Just(Some(Stop::Aborted)),
            1 => Just(Some(Stop::Lingering)),
        ];
        let record = prop_oneof![
            4 => select(self.records.clone()),
            1 => self.any_line().prop_map(|line| line.to_string()),
            1 => any::<String>(),
        ];
        (code, signal, stderr, stop, vec(record, 0..5))
            .prop_map(|(code, signal, stderr, stop, record)| Exit {
                code,
                signal,
                stderr,
                stop,
                record,
            })
            .boxed()
    }

    /// Returns every kind of garbled output, by name.
    fn kinds(&self) -> Vec<(&'static str, BoxedStrategy<Lines>)> {
        let bytes = vec(vec(any::<u8>(), 0..60), 0..12);
        let like_json = bytes.clone().prop_map(|mut lines| {
            for line in &mut lines {
                line.insert(0, b'{');
            }
            lines
        });
        let objects = vec(self.any_line(), 0..12)
            .prop_map(|lines| lines.iter().map(bytes_of).collect::<Lines>());
        let times = vec(
            prop_oneof![4 => Just(1_usize), 1 => Just(0), 1 => Just(2)],
            100,
        );
        let dropped = (self.recorded(), times).prop_map(|(lines, times)| {
            let lines = lines.into_iter().zip(times.into_iter().cycle());
            lines.flat_map(|(line, times)| vec![line; times]).collect()
        });
        let two_runs = (self.recorded(), self.recorded()).prop_map(|(a, b)| [a, b].concat());
        vec![
            ("bytes", bytes.boxed()),
            ("bytes that begin like JSON", like_json.boxed()),
            ("objects", objects.boxed()),
            (
                "recorded lines, shuffled",
                self.recorded().prop_shuffle().boxed(),
            ),
            ("recorded lines, dropped and doubled", dropped.boxed()),
            ("recorded lines of two runs", two_runs.boxed()),
            ("recorded lines with other values", self.values_changed()),
            ("recorded lines without some fields", self.fields_removed()),
            ("recorded lines, some of them cut", self.cut_inside()),
        ]
    }
}

/// Plays garbled output of every kind. `play` returns the problem of the result.
pub fn check_garbled(corpus: &Corpus, play: impl Fn(&[u8], Exit) -> Result<(), String>) -> Verdict {
    let mut wrong = Failures::of("garbled");
    for (kind, lines) in corpus.kinds() {
        let output = (lines, corpus.exit()).prop_map(|(lines, exit)| Output { lines, exit });
        let outcome = property(&output, |Output { lines, exit }| {
            play(&[lines.join(&b'\n'), b"\n".to_vec()].concat(), exit)
        });
        wrong.add_if_err(kind, outcome);
    }
    wrong.verdict()
}

impl Suite {
    /// Checks, as a property test, that lines which no CLI prints do not make the decoder panic, and that
    /// they decode to a valid stream, whose events are read back. The lines are made from this provider's fixtures.
    pub fn garbled(&self) -> Verdict {
        check_garbled(&Corpus::new(&self.fixtures), |stdout, exit| {
            let replay = self.play([stdout], exit);
            check_stream(&replay)?;
            replay.read_back()
        })
    }
}

#[derive(Clone)]
struct Output {
    lines: Lines,
    exit: Exit,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<_> = self
            .lines
            .iter()
            .map(|l| String::from_utf8_lossy(l))
            .collect();
        write!(f, "{:?} and the lines {lines:#?}", self.exit)
    }
}

fn collect_words(value: &Value, keys: &mut Vec<String>, strings: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                keys.push(key.clone());
                collect_words(value, keys, strings);
            }
        }
        Value::Array(items) => items.iter().for_each(|v| collect_words(v, keys, strings)),
        Value::String(text) if text.len() < 30 => strings.push(text.clone()),
        _ => {}
    }
}

fn values(lines: &Lines) -> Vec<Value> {
    let parse = |line: &Vec<u8>| serde_json::from_slice(line).unwrap_or_else(|_| json!({}));
    lines.iter().map(parse).collect()
}

fn bytes_of(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Visits every value of a tree, outer values first, and replaces the `nth`.
fn replace_nth(value: &mut Value, nth: &mut usize, with: &Value) -> bool {
    if *nth == 0 {
        *value = with.clone();
        return true;
    }
    *nth -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|v| replace_nth(v, nth, with)),
        Value::Object(object) => object.values_mut().any(|v| replace_nth(v, nth, with)),
        _ => false,
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0,
    }
}

fn count_fields(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_fields).sum(),
        Value::Object(object) => object.len() + object.values().map(count_fields).sum::<usize>(),
        _ => 0,
    }
}

/// Visits every field of every object of a tree and removes the `nth`.
fn remove_nth(value: &mut Value, nth: &mut usize) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().any(|v| remove_nth(v, nth)),
        Value::Object(object) => {
            if *nth < object.len() {
                let key = object.keys().nth(*nth).cloned();
                return key.is_some_and(|key| object.remove(&key).is_some());
            }
            *nth -= object.len();
            object.values_mut().any(|v| remove_nth(v, nth))
        }
        _ => false,
    }
}
