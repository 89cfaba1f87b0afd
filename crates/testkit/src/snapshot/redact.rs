//! Replacement of values that differ between runs by stable names.

use std::collections::HashMap;

/// Kind of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdKind {
    /// A session.
    Session,
    /// A message.
    Message,
    /// A tool call.
    Tool,
    /// Any other UUID.
    Uuid,
}

impl IdKind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Message => "msg",
            Self::Tool => "tool",
            Self::Uuid => "uuid",
        }
    }
}

/// Assigns stable names to ids in the order of their appearance, and hides times and temporary paths.
///
/// The same id has the same name everywhere, even within texts, so that related events stay recognizable.
#[derive(Debug, Default)]
pub struct Redactor {
    names: HashMap<String, String>,
    count: HashMap<IdKind, usize>,
}

/// A shorter id could be an ordinary word or number of a text.
const SHORTEST_ID_IN_TEXT: usize = 8;

/// Numbers in Node's errors of broken connections that differ each time.
const SOCKET: &[&str] = &["localPort", "remotePort", "bytesWritten", "bytesRead"];

impl Redactor {
    /// Creates a redactor without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the name of an id, such as `tool#1`.
    pub fn id(&mut self, kind: IdKind, id: &str) -> String {
        if let Some(name) = self.names.get(id) {
            return name.clone();
        }
        let count = self.count.entry(kind).or_default();
        *count += 1;
        let name = format!("{}#{count}", kind.prefix());
        self.names.insert(id.to_owned(), name.clone());
        name
    }

    /// Hides a measured duration. 0 is kept, because it is usually a default.
    pub fn duration(&self, ms: u64) -> String {
        if ms == 0 { "0" } else { "<ms>" }.to_owned()
    }

    /// Hides a delay, unless it is a whole number of seconds. Such a delay was configured; any other is
    /// random.
    pub fn wait(&self, ms: u64) -> String {
        if ms.is_multiple_of(1000) {
            format!("{ms}ms")
        } else {
            "<ms>".to_owned()
        }
    }

    /// Hides a time in milliseconds since the Unix epoch. One outside of 2017 to 2100 is kept, because it has
    /// the wrong unit.
    pub fn time(&self, ms: u64) -> String {
        if (1_500_000_000_000..4_102_444_800_000).contains(&ms) {
            "<time>".to_owned()
        } else {
            ms.to_string()
        }
    }

    /// Redacts a text: replaces ids, UUIDs, times, measured durations (`12ms`, `"duration_ms":12`), ports of
    /// a broken connection (`localPort: 50202`) and generated names below `/tmp`.
    pub fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let at_start = !out.ends_with(is_word);
            let replaced = if at_start {
                self.replace(rest, &out)
            } else {
                None
            };
            if let Some((len, with)) = replaced {
                out.push_str(&with);
                rest = &rest[len..];
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        out
    }

    /// Returns the length of the prefix of `rest` to replace, and its replacement.
    fn replace(&mut self, rest: &str, before: &str) -> Option<(usize, String)> {
        let first = rest.as_bytes()[0];
        if first == b'/' {
            return self.temporary_path(rest);
        }
        if !first.is_ascii_alphanumeric() {
            return None;
        }
        let token = leading(rest, |c| is_word(c) || c == '-');
        if token.len() >= SHORTEST_ID_IN_TEXT
            && let Some(name) = self.names.get(token)
        {
            return Some((token.len(), name.clone()));
        }
        let is_end = |len: usize| !rest[len..].starts_with(is_word);
        if let Some(uuid) = rest.get(..36)
            && is_uuid(uuid)
            && is_end(36)
        {
            return Some((36, self.id(IdKind::Uuid, uuid)));
        }
        if let Some(len) = timestamp(rest) {
            return Some((len, "<time>".to_owned()));
        }
        let digits = leading(rest, |c| c.is_ascii_digit()).len();
        if digits == 0 {
            return None;
        }
        if digits == 13 && first == b'1' && is_end(13) {
            return Some((13, "<time>".to_owned()));
        }
        let number = leading(rest, |c| c.is_ascii_digit() || c == '.')
            .trim_end_matches('.')
            .len();
        let unit = rest[number..].starts_with("ms") && is_end(number + 2);
        let key = before.trim_end_matches(['"', ':', '=', ' ']);
        let named = |ends: &[&str]| {
            key.len() < before.len() && is_end(number) && ends.iter().any(|end| key.ends_with(end))
        };
        if named(SOCKET) {
            return Some((number, "<n>".to_owned()));
        }
        (unit || named(&["_ms", "Ms"])).then(|| (number, "<ms>".to_owned()))
    }

    fn temporary_path(&mut self, rest: &str) -> Option<(usize, String)> {
        let below = rest.strip_prefix("/tmp/")?;
        let path = leading(below, |c| is_word(c) || matches!(c, '-' | '.' | '/'));
        let mut out = "/tmp".to_owned();
        for part in path.split('/') {
            out.push('/');
            if is_generated(part) {
                out.push_str("<tmp>");
            } else {
                out.push_str(&self.text(part));
            }
        }
        Some(("/tmp/".len() + path.len(), out))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn leading(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())]
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Returns the length of a time such as `2026-01-31T12:00:00.000Z` at the beginning of `text`. In file names
/// the form is `2026-01-31T12-00-00-000Z`.
fn timestamp(text: &str) -> Option<usize> {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let matches = text.len() >= shape.len()
        && text.bytes().zip(shape).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            b'T' => byte == b'T' || byte == b' ',
            b':' => byte == b':' || byte == b'-',
            other => byte == *other,
        });
    matches.then(|| {
        let rest = &text[shape.len()..];
        let mut fraction = leading(rest, |c| c.is_ascii_digit() || c == '.').len();
        if let Some(rest) = rest.strip_prefix('-') {
            let digits = leading(rest, |c| c.is_ascii_digit()).len();
            if rest[digits..].starts_with('Z') {
                fraction = 1 + digits;
            }
        }
        let zone = usize::from(rest[fraction..].starts_with('Z'));
        shape.len() + fraction + zone
    })
}

/// Returns whether a program probably generated this part of a path, such as `tmp.x8Kq2a` or `b0ut10ggf.out`.
/// People put digits at the end of names, not in the middle.
fn is_generated(part: &str) -> bool {
    let stem = part.split_once('.').map_or(part, |(stem, _)| stem);
    let stem_bytes = stem.as_bytes();
    part.starts_with("tmp.")
        || part.starts_with(".tmp")
        || stem.len() >= 6
            && stem_bytes.iter().all(u8::is_ascii_alphanumeric)
            && stem_bytes
                .windows(2)
                .any(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0b9f1c2e-1111-4222-8333-0123456789ab";
    const B: &str = "ffffffff-1111-4222-8333-0123456789ab";

    #[test]
    fn an_id_has_one_name_everywhere() {
        let mut redactor = Redactor::new();
        assert_eq!(redactor.id(IdKind::Session, A), "session#1");
        assert_eq!(redactor.id(IdKind::Tool, "toolu_01"), "tool#1");
        assert_eq!(redactor.id(IdKind::Tool, "toolu_02"), "tool#2");
        assert_eq!(redactor.id(IdKind::Tool, "toolu_01"), "tool#1");
        assert_eq!(
            redactor.text(&format!(
                "{A}, {B}, toolu_02 and toolu_021; x{B} and {A}.txt"
            )),
            format!("session#1, uuid#1, tool#2 and toolu_021; x{B} and session#1.txt")
        );
    }

    #[test]
    fn short_ids_are_left_alone_in_texts() {
        let mut redactor = Redactor::new();
        redactor.id(IdKind::Tool, "1");
        assert_eq!(redactor.text("1 of 1"), "1 of 1");
    }

    #[test]
    fn times_and_durations_in_texts() {
        let mut redactor = Redactor::new();
        for (text, expected) in [
            ("at 2026-01-31T12:00:00.123Z.", "at <time>."),
            (
                "at 2026-01-31 12:00:00+01:00 1795293727795",
                "at <time>+01:00 <time>",
            ),
            (
                "/tmp/error-x-2026-01-31T12-00-00-123Z.json and 2026-01-31T12-00-00-9f",
                "/tmp/error-x-<time>.json and <time>-9f",
            ),
            (
                "localPort: 50202, remotePort: 1, bytesWritten: 47460, port: 80",
                "localPort: <n>, remotePort: <n>, bytesWritten: <n>, port: 80",
            ),
            ("took 12ms or 1.5ms", "took <ms>ms or <ms>ms"),
            (
                r#"{"duration_ms":12,"delayMs": 3}"#,
                r#"{"duration_ms":<ms>,"delayMs": <ms>}"#,
            ),
            ("items 12, ms 3, 12msx", "items 12, ms 3, 12msx"),
            ("17952937277951 and 5.", "17952937277951 and 5."),
        ] {
            assert_eq!(redactor.text(text), expected);
        }
    }

    #[test]
    fn generated_names_below_tmp() {
        let mut redactor = Redactor::new();
        for (text, expected) in [
            ("(/tmp/ws/denied2.txt)", "(/tmp/ws/denied2.txt)"),
            ("/tmp/tmp.Xy/a /tmp/.tmpAb", "/tmp/<tmp>/a /tmp/<tmp>"),
            (
                &format!("/tmp/c-0/{A}/b0ut10ggf.output"),
                "/tmp/c-0/uuid#1/<tmp>",
            ),
            ("/home/b0ut10ggf", "/home/b0ut10ggf"),
        ] {
            assert_eq!(redactor.text(text), expected);
        }
    }

    #[test]
    fn numbers_that_cannot_be_measurements_stay() {
        let redactor = Redactor::new();
        assert_eq!(redactor.duration(0), "0");
        assert_eq!(redactor.duration(3), "<ms>");
        assert_eq!(redactor.wait(2000), "2000ms");
        assert_eq!(redactor.wait(579), "<ms>");
        assert_eq!(redactor.time(1_795_293_727_795), "<time>");
        assert_eq!(redactor.time(1_795_293_727), "1795293727");
    }
}
