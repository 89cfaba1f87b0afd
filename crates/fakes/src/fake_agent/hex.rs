//! Bytes that TOML text cannot hold, as hexadecimal digits.

use std::fmt::Write;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Any bytes, such as `"ff fe 0a"`. White space between the digits is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hex(pub(super) Vec<u8>);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digits = String::with_capacity(self.0.len() * 2);
        for byte in &self.0 {
            // Writing to a string cannot fail.
            let _ = write!(digits, "{byte:02x}");
        }
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text
            .chars()
            .filter(|char| !char.is_whitespace())
            .map(|char| char.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<Vec<u8>>>()
            .ok_or_else(|| {
                D::Error::custom("`hex` holds something else than hexadecimal digits")
            })?;
        let (pairs, rest) = digits.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(D::Error::custom("`hex` has an odd number of digits"));
        }
        Ok(Self(
            pairs.iter().map(|[high, low]| high << 4 | low).collect(),
        ))
    }
}
