//! The `.env` file of an agent.
//!
//! The available crates replace `$NAME` in values and refuse a whole file for one invalid line. This parser
//! keeps tokens with a dollar sign, and accepts the files that other loops accept.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// Parses the text of a `.env` file: lines of `KEY=VALUE`, with optional quotes, and comments in lines of their own or
/// after a value and a space. Other lines are ignored. The last of several values for a key wins.
pub fn parse(text: &str) -> BTreeMap<String, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let key = key.strip_prefix("export ").map_or(key, str::trim_start);
    // These cannot be in an environment.
    if key.is_empty() || key.contains(char::is_whitespace) || line.contains('\0') {
        return None;
    }
    Some((key.to_owned(), unquoted(value).to_owned()))
}

/// Returns a value without its quotes and without the comment after it.
fn unquoted(value: &str) -> &str {
    let is_comment =
        |text: &str| text.starts_with([' ', '\t']) && text.trim_start().starts_with('#');
    if is_comment(value) {
        return "";
    }
    let value = value.trim();
    for quote in ['"', '\''] {
        let Some(rest) = value.strip_prefix(quote) else {
            continue;
        };
        let mut ends = rest.match_indices(quote).map(|(at, _)| at);
        let is_escaped = |at: usize| quote == '"' && rest[..at].ends_with('\\');
        let end = ends.find(|at| is_comment(&rest[at + 1..]) && !is_escaped(*at));
        let inner = end.map(|at| &rest[..at]);
        return inner.or_else(|| rest.strip_suffix(quote)).unwrap_or(value);
    }
    let mut spaces = value.match_indices([' ', '\t']).map(|(at, _)| at);
    let end = spaces.find(|at| is_comment(&value[*at..]));
    end.map_or(value, |at| value[..at].trim_end())
}

/// Maximum size of a file, in bytes.
const LONGEST: u64 = 1 << 20;
/// Time limit for a pipe, through which a secret manager may provide the file.
const PIPE_LIMIT: Duration = Duration::from_secs(2);

/// Reads a `.env` file or pipe. Returns `None` if there is none.
///
/// # Errors
///
/// Fails if the file cannot be read, is longer than 1 MiB, or is a pipe to which nothing is written within 2 s.
pub fn read(path: &Path) -> io::Result<Option<BTreeMap<String, String>>> {
    match read_bytes(path) {
        Ok(text) => Ok(Some(parse(&String::from_utf8_lossy(&text)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?.file_type();
    let is_pipe = kind.is_fifo();
    if !kind.is_file() && !is_pipe {
        return Err(io::Error::other("this is neither a file nor a pipe"));
    }
    let path = path.to_owned();
    let read = move || -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let file = fs::File::open(path)?;
        file.take(LONGEST + 1).read_to_end(&mut text)?;
        if text.len() as u64 > LONGEST {
            return Err(io::Error::other(format!(
                "it is longer than {LONGEST} bytes"
            )));
        }
        Ok(text)
    };
    if !is_pipe {
        return read();
    }
    let (sender, receiver) = sync_channel(1);
    // Without a writer the thread remains until the program exits.
    thread::Builder::new().spawn(move || sender.send(read()))?;
    receiver.recv_timeout(PIPE_LIMIT).unwrap_or_else(|_| {
        Err(io::Error::other(format!(
            "this is a pipe, and nothing has written to it within {} s: start its writer first, or put a \
             file there",
            PIPE_LIMIT.as_secs()
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_comments_and_quotes() {
        let text = "\u{feff}# a comment\n\nA=1\r\n B = two words \nC=\"x # y\"\nD='it''s'\n\
                    E=$A-${B}\nF=\nexport G=7\nA=2\nnonsense\n=x\nH I=3\nJ=a=b\nK=\"\nL=\"x'\n";
        let found = parse(text);
        let expected = [
            ("A", "2"),
            ("B", "two words"),
            ("C", "x # y"),
            ("D", "it''s"),
            ("E", "$A-${B}"),
            ("F", ""),
            ("G", "7"),
            ("J", "a=b"),
            ("K", "\""),
            ("L", "\"x'"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn comment_after_a_value_is_no_part_of_it() {
        for (line, value) in [
            ("A=b # c", "b"),
            ("A=b\t#c", "b"),
            ("A=\"b c\" # it's \"d\"", "b c"),
            ("A='b # c'  #d", "b # c"),
            ("A=b#c", "b#c"),
            ("A= # c", ""),
            ("A=#c", "#c"),
            (r#"A="b \" # c""#, r#"b \" # c"#),
            ("A=https://x/#y", "https://x/#y"),
            ("A=\"b\"c", "\"b\"c"),
        ] {
            assert_eq!(parse(line)["A"], value, "{line}");
        }
    }
}
