//! Converts an editor's content blocks to a prompt.

use std::fmt::{Arguments, Write as _};

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, Error, SessionId};
use base64::Engine;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;
use teamster_core::Image;
use teamster_core::text::{excerpt, one_line};

use crate::{Prompt, errors};

/// Parameters of `session/prompt`. Each block is parsed by itself: an unknown one must not fail the others.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptParams {
    pub(crate) session_id: SessionId,
    pub(crate) prompt: Vec<Value>,
}

/// Converts content blocks to a prompt. Embedded files follow the text. Content that no agent takes is left out, and
/// `left_out` gets a line for it.
pub(crate) fn read(blocks: &[Value], left_out: &mut Vec<String>) -> Result<Prompt, Error> {
    let mut prompt = Prompt::default();
    let mut embedded = String::new();
    for raw in blocks {
        let kind = raw["type"].as_str().unwrap_or_default();
        let block = match ContentBlock::deserialize(raw) {
            Ok(block) => block,
            Err(error) if matches!(kind, "text" | "image" | "resource_link") => {
                return Err(errors::invalid(format!("prompt: {kind}: {error}")));
            }
            Err(_) => {
                left_out.push(unreadable(kind));
                continue;
            }
        };
        match block {
            ContentBlock::Text(text) => prompt.text.push_str(&text.text),
            ContentBlock::ResourceLink(link) => {
                let location = location_of(&link.uri);
                // A link is part of the surrounding sentence.
                if location == link.uri {
                    append(
                        &mut prompt.text,
                        format_args!("[{}]({})", link.name, link.uri),
                    );
                } else {
                    append(
                        &mut prompt.text,
                        format_args!("[@{}]({location})", link.name),
                    );
                }
            }
            ContentBlock::Image(image) => {
                let image = image_of(image.mime_type, &image.data)?;
                prompt.images.push(image);
            }
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(file) => {
                    let location = location_of(&file.uri);
                    append(
                        &mut prompt.text,
                        format_args!("[@{}]({location})", name_of(&location)),
                    );
                    append(
                        &mut embedded,
                        format_args!(
                            "\n\n<context ref=\"{location}\">\n{}\n</context>",
                            file.text
                        ),
                    );
                }
                EmbeddedResourceResource::BlobResourceContents(file) => match file.mime_type {
                    Some(media_type) if media_type.starts_with("image/") => {
                        prompt.images.push(image_of(media_type, &file.blob)?);
                    }
                    _ => {
                        let location = location_of(&file.uri);
                        append(
                            &mut prompt.text,
                            format_args!("[@{}]({location})", name_of(&location)),
                        );
                    }
                },
                _ => left_out.push(unreadable(kind)),
            },
            _ => left_out.push(unreadable(kind)),
        }
    }
    prompt.text.push_str(&embedded);
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        let problem = match &left_out[..] {
            [] => "prompt: it is empty".to_owned(),
            left_out => format!("prompt: it is empty: {}", left_out.join(", ")),
        };
        return Err(errors::invalid(problem));
    }
    Ok(prompt)
}

/// Returns the line for content of a type that no agent takes, or that cannot be read.
fn unreadable(kind: &str) -> String {
    match kind {
        "audio" => "audio is left out".to_owned(),
        "resource" => {
            "content of the type \"resource\" is left out: its form is unknown".to_owned()
        }
        kind => {
            let kind = excerpt(&one_line(kind), 40);
            format!("content of the unknown type \"{kind}\" is left out")
        }
    }
}

fn image_of(media_type: String, data: &str) -> Result<Image, Error> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(data.trim())
        .map_err(|_| errors::invalid("prompt: an image is not valid Base64"))?;
    Ok(Image::bytes(media_type, bytes))
}

fn append(text: &mut String, more: Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}

/// Returns the path of a `file://` URI; any other URI unchanged.
fn location_of(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else {
        return uri.to_owned();
    };
    // Editors put line numbers into the fragment or the query.
    let (path, lines) = match rest.split_once(['#', '?']) {
        Some((path, lines)) => (path, format!("#{lines}")),
        None => (rest, String::new()),
    };
    let path = path.strip_prefix("localhost").unwrap_or(path);
    format!("{}{lines}", percent_decode_str(path).decode_utf8_lossy())
}

fn name_of(location: &str) -> &str {
    let path = location.split('#').next().unwrap_or(location);
    path.rsplit('/')
        .find(|part| !part.is_empty())
        .unwrap_or(location)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prompt(blocks: &Value) -> Result<Prompt, Error> {
        read(blocks.as_array().unwrap(), &mut Vec::new())
    }

    #[test]
    fn links_and_files_are_in_the_text() {
        let prompt = prompt(&json!([
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "name": "main.rs", "uri": "file:///w/my%20app/main.rs"},
            {"type": "text", "text": " and "},
            {"type": "resource_link", "name": "spec", "uri": "https://example.com/a%20b"},
            {"type": "resource", "resource": {"uri": "file:///w/a.txt#L1:9", "mimeType": "text/plain", "text": "one"}},
        ]))
        .unwrap();
        assert_eq!(
            prompt.text,
            "Look at [@main.rs](/w/my app/main.rs) and [spec](https://example.com/a%20b)\
             [@a.txt](/w/a.txt#L1:9)\n\n<context ref=\"/w/a.txt#L1:9\">\none\n</context>"
        );
    }

    #[test]
    fn images_go_beside_the_text() {
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
        let blob = json!({"type": "resource", "resource": {"uri": "x:y", "mimeType": "image/gif", "blob": "aGk="}});
        let prompt = prompt(&json!([image, blob])).unwrap();
        assert_eq!(prompt.text, "");
        assert_eq!(
            prompt.images,
            [
                Image::bytes("image/png", *b"hi"),
                Image::bytes("image/gif", *b"hi")
            ]
        );
    }

    #[test]
    fn content_that_no_agent_takes_is_left_out() {
        let mut left_out = Vec::new();
        let blocks = json!([
            {"type": "audio", "mimeType": "audio/wav", "data": ""},
            {"type": "hologram", "depth": 3},
            {"type": "resource", "resource": {"uri": "x:y", "odd": true}},
            {"type": "audio"},
            {"type": "text", "text": "Hello"},
        ]);
        let prompt = read(blocks.as_array().unwrap(), &mut left_out).unwrap();
        assert_eq!(prompt.text, "Hello");
        assert_eq!(
            left_out,
            [
                "audio is left out",
                "content of the unknown type \"hologram\" is left out",
                "content of the type \"resource\" is left out: its form is unknown",
                "audio is left out",
            ]
        );
    }

    #[test]
    fn a_prompt_without_content_is_an_error() {
        for (blocks, words) in [
            (json!([]), "it is empty"),
            (json!([{"type": "text", "text": " \n"}]), "it is empty"),
            (
                json!([{"type": "audio", "mimeType": "audio/wav", "data": ""}]),
                "it is empty: audio is left out",
            ),
            (json!([{"type": "text"}]), "missing field `text`"),
            (
                json!([{"type": "image", "mimeType": "image/png", "data": "%%"}]),
                "Base64",
            ),
        ] {
            let error = prompt(&blocks).unwrap_err();
            assert!(error.message.contains(words), "{}", error.message);
        }
    }
}
