//! The signing secret of callbacks, by the Standard Webhooks specification.

use std::fs;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::private_file::{make_once, no_random};

/// The file of the secret in the server's folder.
const FILE: &str = "webhook-secret";
const PREFIX: &str = "whsec_";

/// The signing secret of callbacks.
#[derive(Debug, Clone)]
pub(crate) struct Secret(hmac::Key);

impl Secret {
    /// Reads the secret from this folder, and creates it if it is missing.
    pub(crate) fn read_or_make(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            let mut bytes = [0; 32];
            SystemRandom::new().fill(&mut bytes).map_err(no_random)?;
            make_once(&path, &format!("{PREFIX}{}\n", STANDARD.encode(bytes)))?;
        }
        let text = fs::read_to_string(&path)?;
        Self::parse(&text).ok_or_else(|| {
            let path = path.display();
            io::Error::other(format!(
                "{path}: expected `{PREFIX}` and Base64; remove the file to create a new secret"
            ))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let key = STANDARD.decode(text.trim().strip_prefix(PREFIX)?).ok()?;
        Some(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Returns the value of the header `webhook-signature`.
    pub(crate) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let mut signed = format!("{id}.{timestamp}.").into_bytes();
        signed.extend_from_slice(body);
        let signature = hmac::sign(&self.0, &signed);
        format!("v1,{}", STANDARD.encode(signature.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value was computed with Python's `hmac`.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let body = br#"{"test": 2432232314}"#;
        assert_eq!(
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }
}
