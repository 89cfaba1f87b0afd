//! Choices for generated files. They come from a list of numbers, so that a failing case shrinks: the list gets shorter
//! and the numbers smaller. After the end of the list every choice is the first one.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) struct Dice {
    numbers: Vec<u16>,
    at: usize,
    /// All numbers in a file are unique, so that a text can be changed at one known position.
    pub(crate) markers: Vec<String>,
}

impl Dice {
    /// Returns a number in `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let number = self.numbers.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(number) % n
    }

    /// Returns true with a probability of 1 in `n`.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub(crate) fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Returns a number that is unique in the file.
    pub(crate) fn marker(&mut self) -> String {
        let marker = (70_000_001 + self.markers.len()).to_string();
        self.markers.push(marker.clone());
        marker
    }
}

pub(crate) fn dice() -> impl Strategy<Value = Dice> + Clone {
    let number = prop_oneof![3 => 0..8_u16, 1 => any::<u16>()];
    prop::collection::vec(number, 0..160).prop_map(|numbers| Dice {
        numbers,
        at: 0,
        markers: Vec::new(),
    })
}

impl std::fmt::Debug for Dice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.numbers)
    }
}

const TEXTS: &[&str] = &[
    "docs-mcp",
    "",
    "a b",
    "ünï ☃ 🦀",
    "\"quoted\" 'and'",
    "line\nline\r\nend\\",
    "// no comment",
    "# no /* comment */",
    "\t\u{1}\u{7f}\u{2028}",
    "[mcp_servers.x]\n",
    "{\"a\": [1,],}",
    "'''\"\"\"",
];

/// Returns an entry's value as callers pass it. TOML has no null.
fn value(dice: &mut Dice, depth: usize, null: bool) -> Value {
    match dice.below(if depth == 0 { 7 } else { 10 }) {
        0 | 1 => json!(dice.pick(TEXTS)),
        2 => json!(dice.below(2) == 1),
        3 => json!([0, -1, 30_000, i64::MIN, i64::MAX][dice.below(5)]),
        4 => json!([0.5, -0.0, 1e300, 1.0, 5e-324, 123_456_789.125][dice.below(6)]),
        5 if null => Value::Null,
        5 | 6 => json!([]),
        7 => (0..dice.below(4))
            .map(|_| value(dice, depth - 1, null))
            .collect(),
        _ => Value::Object(object(dice, depth - 1, null)),
    }
}

fn object(dice: &mut Dice, depth: usize, null: bool) -> Map<String, Value> {
    let mut map = Map::new();
    for i in 0..dice.below(4) {
        let name = format!(
            "{}{i}",
            dice.pick(&["key", "K_", "x-", "é ", "a.b", "\"", "#\n"])
        );
        map.insert(name, value(dice, depth, null));
    }
    map
}

/// Returns entries of ours. Those of the user have names that begin with `u`.
pub(crate) fn ours(null: bool) -> impl Strategy<Value = Vec<(String, Value)>> {
    dice().prop_map(move |mut dice| {
        let count = 1 + dice.below(3);
        let entry = |i: usize| {
            let name = format!(
                "{}{i}",
                dice.pick(&["docs", "my-srv_", "a.b", "ö", "\"q'", "x y#"])
            );
            let mut entry = Map::new();
            entry.insert("command".to_owned(), json!(dice.pick(TEXTS)));
            entry.extend(object(&mut dice, 2, null));
            (name, Value::Object(entry))
        };
        (0..count).map(entry).collect()
    })
}

/// Returns a text with some characters removed or doubled. Most results are invalid.
pub(crate) fn damage(text: &str, places: &[(u16, u8)]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for (at, how) in places {
        if chars.is_empty() {
            break;
        }
        let at = usize::from(*at) % chars.len();
        match how % 6 {
            0 => {
                chars.remove(at);
            }
            1 => chars.truncate(at),
            2 => chars.insert(at, '\n'),
            3 => chars.insert(at, '\r'),
            4 => chars.insert(
                at,
                ['{', '}', '[', ']', ',', '"', '\'', '#', '/', '='][usize::from(how / 6) % 10],
            ),
            _ => chars.swap(at, 0),
        }
    }
    chars.into_iter().collect()
}
