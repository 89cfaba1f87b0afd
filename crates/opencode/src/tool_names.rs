//! Names of tools.

/// Returns a server's name in the form of its tools' names. Tools' own names change in the same way. The CLI replaces
/// each UTF-16 unit, so some characters are replaced twice.
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
