//! The names of tools.

/// A server's name as it stands in the names of its tools; there a tool's own name is changed so too.
/// The CLI replaces each UTF-16 unit, of which some characters have two.
pub(crate) fn in_tool_names(server: &str) -> String {
    server
        .encode_utf16()
        .map(|unit| {
            let byte = u8::try_from(unit).ok();
            let kept = byte.filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
            kept.map_or('_', char::from)
        })
        .collect()
}
