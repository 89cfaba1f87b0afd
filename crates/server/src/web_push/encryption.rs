//! Encryption of a message for one browser (RFC 8291): the coding `aes128gcm` of RFC 8188, with keys of an ECDH
//! exchange.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// The size of a browser's authentication secret, in bytes (RFC 8291, 3.2).
pub(crate) const AUTH: usize = 16;
/// The size of a public key, which is an uncompressed point of P-256, in bytes.
pub(crate) const PUBLIC: usize = 65;
/// The size of the salt, in bytes (RFC 8188, 2.1).
const SALT: usize = 16;
/// The record size in the header: a push service may refuse more than 4096 bytes in all (RFC 8030, 7.2).
const RECORD: u32 = 4096;
/// The size of a key of AES-128, in bytes.
const KEY: usize = 16;

/// The parameters of the key derivation (RFC 8291, 3.4; RFC 8188, 2.2 and 2.3).
const SHARED: &[u8] = b"WebPush: info\0";
const CONTENT: &[u8] = b"Content-Encoding: aes128gcm\0";
const NONCE: &[u8] = b"Content-Encoding: nonce\0";

/// Encrypts a message for the browser with this public key and authentication secret. Fails if the key is no point of
/// the curve, or the system has no random numbers.
pub(crate) fn encrypt(public: &[u8], auth: &[u8], message: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let random = SystemRandom::new();
    let mut salt = [0; SALT];
    random.fill(&mut salt)?;
    // Each message has a key pair of its own.
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &random)?;
    let own_public = own.compute_public_key()?;
    let browser = UnparsedPublicKey::new(&ECDH_P256, public);
    agree_ephemeral(own, &browser, |secret| {
        let header = Header {
            salt,
            public: own_public.as_ref(),
        };
        seal(secret, public, auth, &header, message)
    })?
}

/// What varies in the header of an encrypted message.
struct Header<'a> {
    salt: [u8; SALT],
    /// The sender's public key.
    public: &'a [u8],
}

/// Encrypts a message with the secret of the exchange.
fn seal(
    secret: &[u8],
    public: &[u8],
    auth: &[u8],
    header: &Header<'_>,
    message: &[u8],
) -> Result<Vec<u8>, Unspecified> {
    let shared = Salt::new(HKDF_SHA256, auth).extract(secret);
    let shared = expand(&shared, &[SHARED, public, header.public])?;
    let derived = Salt::new(HKDF_SHA256, &header.salt).extract(&shared);
    let (key, nonce) = (expand(&derived, &[CONTENT])?, expand(&derived, &[NONCE])?);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key[..KEY])?);
    let nonce = Nonce::try_assume_unique_for_key(&nonce[..NONCE_LEN])?;
    let mut record = message.to_vec();
    // The delimiter of the last record (RFC 8188, 2).
    record.push(2);
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record)?;
    let mut encrypted = header.salt.to_vec();
    encrypted.extend(RECORD.to_be_bytes());
    encrypted.push(u8::try_from(header.public.len()).map_err(|_| Unspecified)?);
    encrypted.extend(header.public);
    encrypted.extend(record);
    Ok(encrypted)
}

/// Derives 32 bytes; a shorter key is their beginning (RFC 5869, 2.3).
fn expand(key: &Prk, info: &[&[u8]]) -> Result<[u8; 32], Unspecified> {
    let mut bytes = [0; 32];
    key.expand(info, HKDF_SHA256)?.fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// The example of RFC 8291, 5, with the values of its appendix A.
    #[test]
    fn message_of_the_specification_is_encrypted_as_there() {
        let secret = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let browser = bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        );
        let server = bytes(
            "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
        );
        let header = Header {
            salt: bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap(),
            public: &server,
        };
        let auth = bytes("BTBZMqHH6r4Tts7J_aSIgg");
        let message = b"When I grow up, I want to be a watermelon";
        let encrypted = seal(&secret, &browser, &auth, &header, message).unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(encrypted),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBr\
            u3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn each_message_has_its_own_salt_and_a_bad_key_is_an_error() {
        let browser = bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        );
        let auth = [7; AUTH];
        let [one, other] = [(); 2].map(|()| encrypt(&browser, &auth, b"same").unwrap());
        assert_eq!(one.len(), SALT + 4 + 1 + PUBLIC + 4 + 1 + 16);
        assert_ne!(one[..SALT], other[..SALT]);
        assert_ne!(one[SALT + 5..], other[SALT + 5..]);
        let mut other = browser;
        other[PUBLIC - 1] ^= 1;
        assert!(encrypt(&other, &auth, b"").is_err());
    }
}
