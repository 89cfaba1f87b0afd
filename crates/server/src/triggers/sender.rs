//! How the sender of a trigger's request proves who it is.

use std::fmt;
use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use serde::Deserialize;

use crate::OwnerToken;

/// The header of GitHub's signatures.
const GITHUB: &str = "x-hub-signature-256";
/// The header of GitLab's secret.
const GITLAB: &str = "x-gitlab-token";

/// The sender of a trigger's requests.
pub(crate) enum Sender {
    /// A client with a token of the server.
    Token,
    /// A program that signs the body: HMAC-SHA256 in hexadecimal digits, in this header, with or without `sha256=`.
    Signed { header: HeaderName, key: hmac::Key },
    /// A program that sends a secret in this header. `tag` is its signature with `key`.
    Secret {
        header: HeaderName,
        key: hmac::Key,
        tag: hmac::Tag,
    },
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => f.write_str("Token"),
            Self::Signed { header, .. } => write!(f, "Signed({header})"),
            Self::Secret { header, .. } => write!(f, "Secret({header})"),
        }
    }
}

/// A sender in a configuration.
#[derive(Deserialize)]
#[serde(
    tag = "type",
    rename_all = "lowercase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(super) enum RawSender {
    Github {
        secret_file: PathBuf,
    },
    Gitlab {
        secret_file: PathBuf,
    },
    Hmac {
        header: String,
        secret_file: PathBuf,
    },
}

impl RawSender {
    pub(super) fn secret_file(&self) -> &Path {
        match self {
            Self::Github { secret_file }
            | Self::Gitlab { secret_file }
            | Self::Hmac { secret_file, .. } => secret_file,
        }
    }

    /// Reads the secret, whose path counts from `folder`.
    pub(super) fn read(self, folder: &Path) -> Result<Sender, String> {
        let key = |file: &Path| {
            // As a token: one line that only its owner can read.
            let secret = OwnerToken::read(&folder.join(file));
            let secret = secret.map_err(|error| format!("secretFile: {error}"))?;
            let secret = secret.secret().as_bytes().to_vec();
            let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
            Ok::<_, String>((key, secret))
        };
        Ok(match self {
            Self::Github { secret_file } => Sender::Signed {
                header: HeaderName::from_static(GITHUB),
                key: key(&secret_file)?.0,
            },
            Self::Gitlab { secret_file } => {
                let (key, secret) = key(&secret_file)?;
                Sender::Secret {
                    header: HeaderName::from_static(GITLAB),
                    tag: hmac::sign(&key, &secret),
                    key,
                }
            }
            Self::Hmac {
                header,
                secret_file,
            } => Sender::Signed {
                header: HeaderName::try_from(&*header)
                    .map_err(|_| format!("header: {header:?} cannot be the name of a header"))?,
                key: key(&secret_file)?.0,
            },
        })
    }
}

impl Sender {
    /// Returns whether a request is one of this sender, in a time that does not depend on where it differs. That of a token
    /// is checked elsewhere.
    pub(crate) fn has_sent(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        let value = |header: &HeaderName| headers.get(header).map(HeaderValue::as_bytes);
        match self {
            Self::Token => false,
            Self::Signed { header, key } => value(header)
                .and_then(|signature| {
                    unhex(signature.strip_prefix(b"sha256=").unwrap_or(signature))
                })
                .is_some_and(|signature| hmac::verify(key, body, &signature).is_ok()),
            Self::Secret { header, key, tag } => {
                value(header).is_some_and(|sent| hmac::verify(key, sent, tag.as_ref()).is_ok())
            }
        }
    }
}

/// Decodes hexadecimal digits.
fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match *pair {
        [high, low] => u8::try_from((digit(high)? << 4) | digit(low)?).ok(),
        _ => None,
    });
    pairs.collect()
}
