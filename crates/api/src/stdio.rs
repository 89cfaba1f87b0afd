//! The first line of a server on standard streams.

use std::fmt;

/// Begins the greeting. The output of a login shell before it is skipped.
const MARK: &str = "teamster-stdio ";

/// The line that a server on standard streams writes before HTTP/2 begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdioGreeting {
    /// The version of what follows the line; this version of the crate has [`PROTOCOL`](Self::PROTOCOL).
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
}

impl StdioGreeting {
    /// The version of what follows the line: HTTP/2 without TLS, with the API below `/v1`.
    pub const PROTOCOL: u32 = 1;

    /// Creates the greeting of this version.
    pub fn own() -> Self {
        Self {
            protocol: Self::PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Returns the first greeting in what a server has written so far, and the length up to its end. `None` before
    /// its line is complete.
    pub fn find(output: &[u8]) -> Option<(Self, usize)> {
        let mark = MARK.as_bytes();
        let mut from = 0;
        while let Some(at) = output[from..]
            .windows(mark.len())
            .position(|bytes| bytes == mark)
        {
            let begin = from + at + mark.len();
            let length = output[begin..].iter().position(|byte| *byte == b'\n')?;
            if let Some(greeting) = Self::parse(&output[begin..begin + length]) {
                return Some((greeting, begin + length + 1));
            }
            from = begin;
        }
        None
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let (protocol, version) = line.trim_end().split_once(' ')?;
        let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_graphic());
        Some(Self {
            protocol: protocol.parse().ok()?,
            version: Some(version).filter(|_| is_version)?.to_owned(),
        })
    }
}

/// The line, without its end.
impl fmt::Display for StdioGreeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{} {}", self.protocol, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_found_behind_the_output_of_a_shell() {
        let own = StdioGreeting::own();
        // Made by hand: a banner without an end of its line, and one that speaks of the mark.
        for before in [
            "",
            "Welcome!\n",
            "$ ",
            "the teamster-stdio line\nteamster-stdio x\n",
        ] {
            let output = format!("{before}{own}\nPRI");
            let (found, end) = StdioGreeting::find(output.as_bytes()).unwrap();
            assert_eq!((&found, &output[end..]), (&own, "PRI"), "{before:?}");
        }
        let cut = own.to_string();
        assert_eq!(StdioGreeting::find(cut.as_bytes()), None);
        assert_eq!(StdioGreeting::find(b"Welcome!\n"), None);
    }
}
