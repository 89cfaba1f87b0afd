//! Lines that no CLI prints: whatever comes, nothing panics and the stream is one.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};
use teamster::Exit;
use teamster_testkit::replay::replay_bytes;

use super::{FIXTURES, check_stream};

/// Lines of fixtures that are small enough to be played often, by fixture.
static LINES: LazyLock<Vec<Vec<&'static [u8]>>> = LazyLock::new(|| {
    let small = FIXTURES.iter().filter(|(f, _)| f.stdout.len() < 40_000);
    small
        .map(|(f, _)| {
            f.stdout
                .split(|b| *b == b'\n')
                .filter(|l| !l.is_empty())
                .collect()
        })
        .filter(|lines: &Vec<_>| !lines.is_empty())
        .collect()
});

/// Keys and short strings that occur in fixtures: what decoders look for.
static WORDS: LazyLock<(Vec<String>, Vec<String>)> = LazyLock::new(|| {
    let (mut keys, mut strings) = (Vec::new(), Vec::new());
    for line in LINES.iter().flatten() {
        if let Ok(value) = serde_json::from_slice(line) {
            collect_words(&value, &mut keys, &mut strings);
        }
    }
    for list in [&mut keys, &mut strings] {
        list.sort();
        list.dedup();
    }
    (keys, strings)
});

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

/// Plays lines through the decoder of every provider.
fn check_lines(lines: &[impl AsRef<[u8]>], exit: &Exit) {
    let mut stdout = Vec::new();
    for line in lines {
        stdout.extend_from_slice(line.as_ref());
        stdout.push(b'\n');
    }
    for provider in teamster::providers() {
        let replay = replay_bytes(&*provider, [stdout.as_slice()], exit.clone());
        check_stream(&replay, provider.info().id);
    }
}

fn exit() -> impl Strategy<Value = Exit> {
    let code = prop_oneof![
        Just(Some(0)),
        Just(Some(1)),
        Just(None),
        any::<Option<i32>>()
    ];
    let signal = prop_oneof![3 => Just(None), 1 => Just(Some("SIGKILL".to_owned()))];
    let stderr = prop_oneof![Just(String::new()), ".{0,40}"];
    (code, signal, stderr).prop_map(|(code, signal, stderr)| Exit {
        code,
        signal,
        stderr,
        stop: None,
        record: Vec::new(),
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let (keys, strings) = &*WORDS;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        select(strings.as_slice()).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let entry = (select(keys.as_slice()), inner.clone());
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::Array),
            vec(entry, 0..6).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// An object that looks like a line: one of the types that are known, and anything else.
fn any_line() -> impl Strategy<Value = Value> {
    let (keys, strings) = &*WORDS;
    let word = || select(strings.as_slice());
    let entries = vec((select(keys.as_slice()), any_json()), 0..6);
    (word(), word(), entries).prop_map(|(kind, subtype, entries)| {
        let mut line = Map::from_iter(entries);
        line.insert("type".into(), kind.into());
        line.insert("subtype".into(), subtype.into());
        Value::Object(line)
    })
}

fn recorded() -> impl Strategy<Value = &'static [&'static [u8]]> {
    any::<Index>().prop_map(|index| index.get(&LINES).as_slice())
}

/// Every value in a tree, deepest last, one of them replaced.
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

proptest! {
    #[test]
    fn bytes(lines in vec(vec(any::<u8>(), 0..60), 0..12), exit in exit()) {
        check_lines(&lines, &exit);
    }

    #[test]
    fn bytes_that_begin_like_json(lines in vec(vec(any::<u8>(), 0..60), 0..12), exit in exit()) {
        let lines: Vec<_> = lines.into_iter().map(|line| [b"{".to_vec(), line].concat()).collect();
        check_lines(&lines, &exit);
    }

    #[test]
    fn objects(lines in vec(any_line(), 0..12), exit in exit()) {
        let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
        check_lines(&lines, &exit);
    }

    #[test]
    fn recorded_lines_shuffled(lines in recorded().prop_map(<[_]>::to_vec).prop_shuffle(), exit in exit()) {
        check_lines(&lines, &exit);
    }

    #[test]
    fn recorded_lines_dropped_and_doubled(
        lines in recorded(),
        times in vec(prop_oneof![4 => Just(1_usize), 1 => Just(0), 1 => Just(2)], 100),
        exit in exit(),
    ) {
        let lines = lines.iter().zip(times.iter().cycle());
        let lines: Vec<_> = lines.flat_map(|(line, times)| vec![line; *times]).collect();
        check_lines(&lines, &exit);
    }

    #[test]
    fn recorded_lines_of_two_runs(a in recorded(), b in recorded(), exit in exit()) {
        check_lines(&[a, b].concat(), &exit);
    }

    #[test]
    fn recorded_lines_with_other_values(
        lines in recorded(),
        changes in vec((any::<Index>(), any::<Index>(), any_json()), 1..8),
        exit in exit(),
    ) {
        let parse = |line: &&[u8]| serde_json::from_slice(line).unwrap_or_else(|_| json!({}));
        let mut lines: Vec<Value> = lines.iter().map(parse).collect();
        for (line, place, with) in &changes {
            let line = line.get_mut(&mut lines);
            // Not the line itself: one that is no object never gets to a decoder.
            let mut nth = 1 + place.index(count(line));
            replace_nth(line, &mut nth, with);
        }
        let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
        check_lines(&lines, &exit);
    }
}
