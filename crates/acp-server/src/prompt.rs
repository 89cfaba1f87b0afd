//! Converts an editor's content blocks to a prompt.

use std::fmt::{Arguments, Write as _};

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, Error};
use base64::Engine;
use percent_encoding::percent_decode_str;
use teamster_core::Image;

use crate::{Prompt, errors};

/// Converts content blocks to a prompt. Embedded files follow the text.
pub(crate) fn read(blocks: &[ContentBlock]) -> Result<Prompt, Error> {
    let mut prompt = Prompt::default();
    let mut embedded = String::new();
    for block in blocks {
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
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(image.data.trim())
                    .map_err(|_| errors::invalid("prompt: an image is not valid Base64"))?;
                prompt
                    .images
                    .push(Image::bytes(image.mime_type.clone(), bytes));
            }
            ContentBlock::Resource(resource) => match &resource.resource {
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
                EmbeddedResourceResource::BlobResourceContents(file)
                    if file
                        .mime_type
                        .as_deref()
                        .is_some_and(|it| it.starts_with("image/")) =>
                {
                    let media_type = file.mime_type.clone().unwrap_or_default();
                    let bytes = base64::engine::general_purpose::STANDARD
                        .decode(file.blob.trim())
                        .map_err(|_| errors::invalid("prompt: an image is not valid Base64"))?;
                    prompt.images.push(Image::bytes(media_type, bytes));
                }
                EmbeddedResourceResource::BlobResourceContents(file) => {
                    let location = location_of(&file.uri);
                    append(
                        &mut prompt.text,
                        format_args!("[@{}]({location})", name_of(&location)),
                    );
                }
                _ => {
                    return Err(errors::invalid("prompt: unknown type of embedded resource"));
                }
            },
            ContentBlock::Audio(_) => {
                return Err(errors::invalid(
                    "prompt: audio is not supported; see `promptCapabilities`",
                ));
            }
            _ => return Err(errors::invalid("prompt: unknown type of content block")),
        }
    }
    prompt.text.push_str(&embedded);
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err(errors::invalid("prompt: it is empty"));
    }
    Ok(prompt)
}

/// Appends to a text.
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
    use serde_json::{Value, json};

    fn prompt(blocks: Value) -> Result<Prompt, Error> {
        read(&serde_json::from_value::<Vec<ContentBlock>>(blocks).unwrap())
    }

    #[test]
    fn links_and_files_are_in_the_text() {
        let prompt = prompt(json!([
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
        let prompt = prompt(json!([image, blob])).unwrap();
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
    fn unsupported_content_is_an_error() {
        for (blocks, words) in [
            (json!([]), "it is empty"),
            (json!([{"type": "text", "text": " \n"}]), "it is empty"),
            (
                json!([{"type": "audio", "mimeType": "audio/wav", "data": ""}]),
                "audio",
            ),
            (
                json!([{"type": "image", "mimeType": "image/png", "data": "%%"}]),
                "Base64",
            ),
        ] {
            let error = prompt(blocks).unwrap_err();
            assert!(error.message.contains(words), "{}", error.message);
        }
    }
}
