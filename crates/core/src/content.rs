//! Content that is not text, as text.

use serde_json::Value;

/// What stands in a text for an image or another medium: what it is, its media type and its size.
///
/// ```
/// use teamster_core::media_placeholder;
///
/// let shown = media_placeholder("image", Some("image/png"), Some("AAECAw=="));
/// assert_eq!(shown, "[image: image/png, 4 bytes]");
/// ```
pub fn media_placeholder(kind: &str, media_type: Option<&str>, base64: Option<&str>) -> String {
    let media_type = media_type.unwrap_or("unknown type");
    match base64 {
        Some(data) => {
            let padding = data.bytes().rev().take_while(|b| *b == b'=').count();
            let bytes = (data.len() - padding) * 3 / 4;
            format!("[{kind}: {media_type}, {bytes} bytes]")
        }
        None => format!("[{kind}: {media_type}]"),
    }
}

/// The content blocks of an MCP tool's result as text: texts as they are, one below the other, and
/// placeholders for the rest.
pub fn mcp_content(blocks: &[Value]) -> String {
    let parts: Vec<String> = blocks.iter().map(mcp_block).collect();
    parts.join("\n")
}

fn mcp_block(block: &Value) -> String {
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    let kind = text(block, "type").unwrap_or_else(|| "content".to_owned());
    if let Some(text) = text(block, "text") {
        return text;
    }
    let (from, data) = match block.get("resource") {
        Some(resource) => {
            if let Some(text) = text(resource, "text") {
                return text;
            }
            (resource, text(resource, "blob"))
        }
        None => (block, text(block, "data")),
    };
    match (text(from, "mimeType"), data, text(from, "uri")) {
        (None, None, Some(uri)) => format!("[{kind}: {uri}]"),
        (None, None, None) => format!("[{kind}]"),
        (media_type, data, _) => media_placeholder(&kind, media_type.as_deref(), data.as_deref()),
    }
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
            json!({"type": "resource", "resource": {"uri": "f://x", "text": "inside"}}),
            json!({"type": "resource_link", "uri": "f://y"}),
            json!({"type": "new"}),
            json!(1),
        ];
        assert_eq!(
            mcp_content(&blocks),
            "a\n[image: image/png, 3 bytes]\ninside\n[resource_link: f://y]\n[new]\n[content]"
        );
    }
}
