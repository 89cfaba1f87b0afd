//! Lines that a rule may allow.

use super::{KEYWORDS, is_name};

/// Reserved words besides the keywords before a command.
const RESERVED: [&str; 8] = [
    "case", "coproc", "for", "function", "select", "time", "[[", "]]",
];

/// Returns whether a line consists of simple commands only, in a form that can be read in one way: plain and quoted
/// words, joined by `;`, `&&`, `||`, `|` or a newline, with redirections of output after the first word.
pub(crate) fn is_plain(line: &str) -> bool {
    let chars: Vec<char> = line.chars().collect();
    let mut rest = chars.as_slice();
    let mut is_first = true;
    loop {
        rest = match rest {
            [] => return true,
            [' ' | '\t', rest @ ..] => rest,
            [';' | '|', ';' | '&', ..] | ['&', '>', '>', '(', ..] => return false,
            ['&', '&', rest @ ..] | ['|', '|', rest @ ..] | ['\n' | ';' | '|', rest @ ..] => {
                is_first = true;
                rest
            }
            ['&' | '>', '>', rest @ ..] | ['>', '&', rest @ ..] | ['>', rest @ ..] if !is_first => {
                rest
            }
            ['#' | '&' | '<' | '>', ..] => return false,
            _ => match word(rest) {
                Some((text, is_quoted, rest)) => {
                    let is_redirected = matches!(rest.first(), Some('<' | '>'));
                    if is_redirected && (text.ends_with('}') || is_first && is_number(&text)) {
                        return false;
                    }
                    if is_first && !is_program(&text, is_quoted) {
                        return false;
                    }
                    is_first = false;
                    rest
                }
                None => return false,
            },
        };
    }
}

/// Reads a word without expansions. Returns its text, whether a part is quoted, and what follows.
fn word(mut rest: &[char]) -> Option<(String, bool, &[char])> {
    let (mut text, mut is_quoted) = (String::new(), false);
    loop {
        rest = match rest {
            [] | [' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>', ..] => {
                return Some((text, is_quoted, rest));
            }
            ['\'', rest @ ..] => {
                let end = rest.iter().position(|c| *c == '\'')?;
                text.extend(&rest[..end]);
                is_quoted = true;
                &rest[end + 1..]
            }
            ['"', rest @ ..] => {
                is_quoted = true;
                double(rest, &mut text)?
            }
            ['\\', c, rest @ ..] if !c.is_control() => {
                text.push(*c);
                is_quoted = true;
                rest
            }
            ['$' | '`' | '(' | ')' | '\\', ..] => return None,
            [c, ..] if c.is_control() => return None,
            [c, rest @ ..] => {
                text.push(*c);
                rest
            }
        }
    }
}

/// Reads to the end of double quotes.
fn double<'a>(mut rest: &'a [char], text: &mut String) -> Option<&'a [char]> {
    loop {
        rest = match rest {
            ['"', rest @ ..] => return Some(rest),
            ['\\', c, rest @ ..] if *c != '\n' => {
                text.push(*c);
                rest
            }
            [] | ['$' | '`' | '\\', ..] => return None,
            [c, rest @ ..] => {
                text.push(*c);
                rest
            }
        }
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether the first word of a command can only be the name of a program.
fn is_program(text: &str, is_quoted: bool) -> bool {
    let is_reserved = KEYWORDS.contains(&text) || RESERVED.contains(&text);
    let is_assignment =
        (text.split_once('=')).is_some_and(|(name, _)| is_name(name.trim_end_matches('+')));
    let has_index = text != "[" && text.contains('[');
    !has_index && !is_assignment && (is_quoted || !is_reserved)
}
