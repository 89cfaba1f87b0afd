//! Images of prompts in JSON: their bytes in base64.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use teamster_core::{Image, ImageSource};

/// Base64 as RFC 4648 has it; bits of the last character that are not used may be set.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);
/// Media types of images that agents take.
const MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// An image of a prompt, in JSON.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Image")]
pub(crate) struct ImageData {
    /// The media type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    #[schemars(regex(pattern = "^image/(png|jpeg|gif|webp)$"))]
    media_type: String,
    /// The content of the image in base64.
    #[schemars(
        length(min = 4),
        regex(pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
    )]
    data: String,
}

/// Images of a prompt, as a field of a body in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Images(#[serde(with = "crate::image")] pub Vec<Image>);

impl schemars::JsonSchema for Images {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Images".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Vec::<ImageData>::json_schema(generator)
    }
}

/// Writes images whose bytes are in memory.
pub(crate) fn serialize<S: Serializer>(images: &[Image], serializer: S) -> Result<S::Ok, S::Error> {
    let images = images.iter().map(|image| match &image.source {
        ImageSource::Bytes(bytes) => Ok(ImageData {
            media_type: image.media_type.clone(),
            data: BASE64.encode(bytes),
        }),
        _ => Err(ser::Error::custom("only the bytes of an image can be sent")),
    });
    images.collect::<Result<Vec<_>, _>>()?.serialize(serializer)
}

/// Reads images.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Image>, D::Error> {
    let images = Vec::<ImageData>::deserialize(deserializer)?;
    let images = images.into_iter().map(|ImageData { media_type, data }| {
        if !MEDIA_TYPES.contains(&&*media_type) {
            let types = MEDIA_TYPES.join(", ");
            return Err(format!("mediaType: expected one of {types}"));
        }
        match BASE64.decode(data) {
            Ok(bytes) if !bytes.is_empty() => Ok(Image::bytes(media_type, bytes)),
            Ok(_) => Err("data: it is empty".to_owned()),
            Err(error) => Err(format!("data: expected base64: {error}")),
        }
    });
    images.collect::<Result<_, _>>().map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Prompt {
        #[serde(with = "super")]
        images: Vec<Image>,
    }

    #[test]
    fn an_image_is_its_bytes_in_base64() {
        let json = json!({"images": [{"mediaType": "image/png", "data": "AQI="}]});
        let prompt: Prompt = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(prompt.images, [Image::bytes("image/png", [1, 2])]);
        assert_eq!(serde_json::to_value(&prompt).unwrap(), json);
        let images = vec![Image::file("image/png", "/a.png")];
        serde_json::to_value(Prompt { images }).unwrap_err();
        for (media_type, data, problem) in [
            ("image/tiff", "AQI=", "mediaType"),
            ("image/png", "AQI", "base64"),
            ("image/png", "", "empty"),
        ] {
            let json = json!({"images": [{"mediaType": media_type, "data": data}]});
            let error = serde_json::from_value::<Prompt>(json).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
