//! Small changes of recorded output, for tests of what reads it.
//!
//! They are made in the text, so they reach JSON that no value holds: numbers out of range, half of a character, a field
//! twice, deep nesting, bytes that are not UTF-8.

use std::ops::Range;

/// Values that some reader of JSON takes in another way, refuses or loses. Made by hand.
const VALUES: [&str; 30] = [
    "null",
    "true",
    "-1",
    "-0",
    "0.1",
    "1e2",
    "1.50",
    "1e-999",
    "1e999",
    "-1e999",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "0.30000000000000004",
    "5e-324",
    "4294967296",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "\"\"",
    "\" \"",
    "\"\\ud83d\"",
    "\"\\udc00x\"",
    "\"\\u0000\"",
    "[]",
    "{}",
    "{\"a\":1,\"a\":2}",
    "[{\"type\":\"text\",\"text\":\"x\"}]",
    "  1  ",
];

/// What is written into strings. Made by hand.
const TEXTS: [&[u8]; 14] = [
    b"\\ud83d",
    b"\\udc00",
    b"\\ud83d\\ude00",
    b"\\u0000",
    b"\\n",
    b"\\\"",
    b"\\u2028",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"\x1b[2K",
    b"\xff",
    b"\xed\xa0\x80",
    b"1e999",
    b"\"",
];

/// Levels of nesting: few, those at the limits of readers, and many.
const LEVELS: [usize; 8] = [1, 30, 99, 100, 101, 127, 128, 2000];

/// A source of changes, which are the same for the same seed.
#[derive(Debug, Clone)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// Creates a mutator with this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns these lines with one to four changes.
    pub fn change(&mut self, output: &[u8]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = output.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        for _ in 0..=self.below(4) {
            self.change_once(&mut lines);
        }
        lines.join(&b'\n')
    }

    /// Returns a number below `end`, or 0 if that is 0. (`SplitMix64`.)
    pub fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        // The low bits are as good as any; both conversions keep them.
        usize::try_from(mixed % u64::try_from(end.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    fn one_of<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> Option<&'a T> {
        items.get(self.below(items.len())).copied()
    }

    fn change_once(&mut self, lines: &mut Vec<Vec<u8>>) {
        let at = self.below(lines.len());
        let other = self.below(lines.len());
        match self.below(16) {
            0..=4 => {
                let value = self.one_of(&VALUES).unwrap_or_default();
                self.replace_value(&mut lines[at], value.as_bytes());
            }
            5 => {
                let Token { at: range, .. } = self.token(&lines[other], false);
                let value = lines[other][range].to_vec();
                self.replace_value(&mut lines[at], &value);
            }
            6 => {
                let Token { at: from, .. } = self.token(&lines[at], true);
                let Token { at: to, .. } = self.token(&lines[at], true);
                let name = lines[at][from].to_vec();
                lines[at].splice(to, name);
            }
            7..=8 => {
                let text = self.one_of(&TEXTS).unwrap_or_default();
                self.write_into_string(&mut lines[at], text);
            }
            9 => {
                let levels = LEVELS[self.below(LEVELS.len())];
                let Token { at: range, .. } = self.token(&lines[at], false);
                let value = lines[at][range.clone()].to_vec();
                let nested = [&vec![b'['; levels], &*value, &vec![b']'; levels]].concat();
                lines[at].splice(range, nested);
            }
            10 => {
                let line = lines[other].clone();
                lines.insert(at, line);
            }
            11 => {
                if lines.len() > 1 {
                    lines.remove(at);
                }
            }
            12 => lines.swap(at, other),
            13 => {
                let end = self.below(lines[at].len());
                lines[at].truncate(end);
            }
            14 => {
                let rest = lines[other].clone();
                let end = self.below(lines[at].len());
                let line = &mut lines[at];
                line.splice(end..end, rest);
            }
            _ => {
                let index = self.below(lines[at].len());
                let bit = 1 << self.below(8);
                if let Some(byte) = lines[at].get_mut(index) {
                    *byte ^= bit;
                }
            }
        }
    }

    fn replace_value(&mut self, line: &mut Vec<u8>, value: &[u8]) {
        let Token { at, .. } = self.token(line, false);
        line.splice(at, value.iter().copied());
    }

    fn write_into_string(&mut self, line: &mut Vec<u8>, text: &[u8]) {
        let strings: Vec<_> = tokens(line).into_iter().filter(|it| it.is_string).collect();
        if let Some(token) = strings.get(self.below(strings.len())) {
            let inside = token.at.len().saturating_sub(2);
            let index = token.at.start + 1 + self.below(inside + 1);
            line.splice(index..index, text.iter().copied());
        }
    }

    /// Returns a name of a field, or a string, number or literal that is none; an empty one at the start without any.
    fn token(&mut self, line: &[u8], is_name: bool) -> Token {
        let tokens = tokens(line).into_iter();
        let tokens: Vec<_> = tokens.filter(|token| token.is_name == is_name).collect();
        let token = tokens.get(self.below(tokens.len())).cloned();
        token.unwrap_or(Token {
            at: 0..0,
            is_string: false,
            is_name,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Token {
    at: Range<usize>,
    is_string: bool,
    is_name: bool,
}

/// Returns the strings, numbers and literals of a line, which need not be JSON.
fn tokens(line: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let start = at;
        let is_string = line[at] == b'"';
        if is_string {
            at += 1;
            while at < line.len() && line[at] != b'"' {
                at += if line[at] == b'\\' { 2 } else { 1 };
            }
            at = (at + 1).min(line.len());
        } else if is_literal(line[at]) {
            while at < line.len() && is_literal(line[at]) {
                at += 1;
            }
        } else {
            at += 1;
            continue;
        }
        let is_name = is_string && line.get(at) == Some(&b':');
        tokens.push(Token {
            at: start..at,
            is_string,
            is_name,
        });
    }
    tokens
}

fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_changes_and_another_one_others() {
        let line = br#"{"type":"text","n":[1,-2.5e3,null],"t":"a \"b\" c"}"#;
        let change = |seed| Mutator::new(seed).change(line);
        assert_eq!(change(7), change(7));
        let different: std::collections::HashSet<_> = (0..100).map(change).collect();
        assert!(different.len() > 80, "{}", different.len());
        let found: Vec<_> = tokens(line)
            .into_iter()
            .map(|token| {
                (
                    String::from_utf8_lossy(&line[token.at]).into_owned(),
                    token.is_name,
                )
            })
            .collect();
        let names = found.iter().filter(|(_, is_name)| *is_name).count();
        assert_eq!((found.len(), names), (8, 3), "{found:?}");
        assert_eq!(found[7].0, r#""a \"b\" c""#);
    }

    #[test]
    fn any_bytes_can_be_changed() {
        for seed in 0..2000 {
            let mut mutator = Mutator::new(seed);
            let mut output = Vec::new();
            for _ in 0..4 {
                output = mutator.change(&output);
            }
        }
    }
}
