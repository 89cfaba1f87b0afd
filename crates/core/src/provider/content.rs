//! Text representation of content that is not text.

use serde_json::Value;

/// Returns a placeholder for an image or other media: its kind, media type and size.
///
/// ```
/// use teamster_core::provider::media_placeholder;
///
/// let shown = media_placeholder("image", Some("image/png"), Some("AAECAw=="));
/// assert_eq!(shown, "[image: image/png, 4 bytes]");
/// ```
pub fn media_placeholder(kind: &str, media_type: Option<&str>, base64: Option<&str>) -> String {
    placeholder(kind, None, media_type, base64)
}

/// Returns a placeholder for media that may have an address.
fn placeholder(
    kind: &str,
    uri: Option<&str>,
    media_type: Option<&str>,
    base64: Option<&str>,
) -> String {
    let size = base64.map(|data| {
        let padding = data.bytes().rev().take_while(|b| *b == b'=').count();
        format!("{} bytes", (data.len() - padding) * 3 / 4)
    });
    // An address alone is sufficient.
    let media_type = media_type.or((uri.is_none() || size.is_some()).then_some("unknown type"));
    let known = [uri, media_type, size.as_deref()];
    let known: Vec<&str> = known.into_iter().flatten().collect();
    format!("[{kind}: {}]", known.join(", "))
}

/// Converts the content blocks of an MCP tool's result to text. Text blocks are unchanged, one per line. Others
/// are placeholders, and resources include their address.
///
/// ```
/// use serde_json::json;
/// use teamster_core::provider::mcp_content;
///
/// let link = json!({"type": "resource_link", "uri": "file:///a.txt", "mimeType": "text/plain"});
/// let shown = mcp_content(&[json!({"type": "text", "text": "see"}), link]);
/// assert_eq!(shown, "see\n[resource_link: file:///a.txt, text/plain]");
/// ```
pub fn mcp_content(blocks: &[Value]) -> String {
    let parts: Vec<String> = blocks.iter().map(mcp_block).collect();
    parts.join("\n")
}

fn mcp_block(block: &Value) -> String {
    match block {
        Value::String(text) => return text.clone(),
        Value::Array(blocks) => return mcp_content(blocks),
        Value::Null => return String::new(),
        _ => {}
    }
    let field = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    let kind = field(block, "type").unwrap_or_else(|| "content".to_owned());
    if let Some(text) = field(block, "text") {
        return text;
    }
    let (from, data) = match block.get("resource") {
        Some(resource) => (resource, field(resource, "blob")),
        None => (block, field(block, "data")),
    };
    let uri = field(from, "uri").filter(|uri| !uri.is_empty());
    if let Some(text) = field(from, "text") {
        return match uri.filter(|uri| !text.contains(uri.as_str())) {
            Some(uri) => format!("[{kind}: {uri}]\n{text}"),
            None => text,
        };
    }
    let media_type = field(from, "mimeType");
    if uri.is_none() && media_type.is_none() && data.is_none() {
        return format!("[{kind}]");
    }
    placeholder(
        &kind,
        uri.as_deref(),
        media_type.as_deref(),
        data.as_deref(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_of_mcp() {
        let blocks = [
            json!({"type": "text", "text": "a"}),
            json!({"type": "image", "data": "AAEC", "mimeType": "image/png"}),
            json!({"type": "resource_link", "uri": "f://y"}),
            json!({"type": "new"}),
            json!(1),
        ];
        assert_eq!(
            mcp_content(&blocks),
            "a\n[image: image/png, 3 bytes]\n[resource_link: f://y]\n[new]\n[content]"
        );
    }

    // Made by hand, as of servers and agents that do not keep to the protocol.
    #[test]
    fn text_is_found_where_a_block_is_expected() {
        let blocks = [
            json!("a"),
            json!([{"type": "text", "text": "b"}, "c"]),
            Value::Null,
        ];
        assert_eq!(mcp_content(&blocks), "a\nb\nc\n");
    }

    #[test]
    fn a_resource_keeps_its_address() {
        let shown = |block: Value| mcp_content(&[block]);
        assert_eq!(
            shown(
                json!({"type": "resource_link", "uri": "file:///r.txt", "name": "r",
                         "mimeType": "text/plain"})
            ),
            "[resource_link: file:///r.txt, text/plain]"
        );
        let resource = |fields: Value| shown(json!({"type": "resource", "resource": fields}));
        assert_eq!(
            resource(json!({"uri": "f://y", "mimeType": "application/pdf", "blob": "AAECAw=="})),
            "[resource: f://y, application/pdf, 4 bytes]"
        );
        assert_eq!(
            resource(json!({"uri": "f://y", "blob": "AAEC"})),
            "[resource: f://y, unknown type, 3 bytes]"
        );
        assert_eq!(
            resource(json!({"uri": "", "mimeType": "text/plain"})),
            "[resource: text/plain]"
        );
    }

    #[test]
    fn a_text_resource_is_shown_completely_below_its_address() {
        let resource = |uri: &str, text: &str| {
            let inner = json!({"uri": uri, "mimeType": "text/plain", "text": text});
            mcp_content(&[json!({"type": "resource", "resource": inner})])
        };
        assert_eq!(resource("f://x", "inside"), "[resource: f://x]\ninside");
        // An empty or redundant address.
        assert_eq!(resource("", "inside"), "inside");
        assert_eq!(resource("f://x", "# f://x"), "# f://x");
    }
}
