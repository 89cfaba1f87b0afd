//! Identification of the server to push services (VAPID, RFC 8292).

use std::fs;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use crate::private_file::{make_once, no_random};

/// The file of the key in the server's folder: PKCS#8 as Base64.
const FILE: &str = "web-push-key";
/// The validity of a token, in seconds. A push service accepts up to 24 hours (RFC 8292, 2).
const VALID: u64 = 12 * 60 * 60;
/// The contact for operators of push services (RFC 8292, 2.1). Apple's requires one.
const CONTACT: &str = env!("CARGO_PKG_REPOSITORY");

/// The key pair of a server.
#[derive(Debug)]
pub(crate) struct Vapid {
    pair: EcdsaKeyPair,
}

impl Vapid {
    /// Reads the key from this folder, and creates it if it is missing.
    pub(crate) fn read_or_make(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FILE);
        let random = SystemRandom::new();
        if !path.exists() {
            let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
            let made = made.map_err(no_random)?;
            make_once(&path, &format!("{}\n", URL_SAFE_NO_PAD.encode(made)))?;
        }
        let text = fs::read_to_string(&path)?;
        let pair = URL_SAFE_NO_PAD.decode(text.trim()).ok().and_then(|key| {
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random).ok()
        });
        let pair = pair.ok_or_else(|| {
            io::Error::other(format!(
                "{}: expected a key; remove the file to create another one: browsers then subscribe again when their \
                page is opened",
                path.display()
            ))
        })?;
        Ok(Self { pair })
    }

    /// Returns the public key, for the browser's `applicationServerKey`.
    pub(crate) fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.public_key())
    }

    /// Returns the value of the header `Authorization` for the push service of this origin, at this time in seconds since
    /// the Unix epoch.
    pub(crate) fn authorization(&self, origin: &str, now: u64) -> io::Result<String> {
        let encode = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = encode(json!({"typ": "JWT", "alg": "ES256"}));
        let claims = encode(json!({"aud": origin, "exp": now + VALID, "sub": CONTACT}));
        let signed = format!("{header}.{claims}");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.map_err(no_random)?);
        Ok(format!("vapid t={signed}.{signature}, k={}", self.public()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    #[test]
    fn token_is_signed_for_one_origin_and_half_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let vapid = Vapid::read_or_make(folder.path()).unwrap();
        let value = vapid
            .authorization("https://push.example", 1_000_000)
            .unwrap();
        let (token, key) = value
            .strip_prefix("vapid t=")
            .and_then(|rest| rest.split_once(", k="))
            .unwrap();
        let key = URL_SAFE_NO_PAD.decode(key).unwrap();
        assert_eq!((key.len(), key[0]), (65, 4));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
        public.verify(signed.as_bytes(), &signature).unwrap();
        let parts: Vec<Value> = signed
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!(
            parts,
            [
                json!({"typ": "JWT", "alg": "ES256"}),
                json!({
                    "aud": "https://push.example",
                    "exp": 1_043_200,
                    "sub": "https://github.com/teamster-rs/teamster",
                }),
            ]
        );
    }

    #[test]
    fn key_is_private_and_stays_the_same_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let read = || Vapid::read_or_make(folder.path());
        let first = read().unwrap().public();
        assert_eq!(read().unwrap().public(), first);
        let path = folder.path().join(FILE);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(&path, "no key").unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains("web-push-key: expected a key"), "{error}");
    }
}
