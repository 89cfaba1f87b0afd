//! How a program proves its name to the server, and which servers it trusts.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use async_nats::{ConnectError, ConnectErrorKind, ConnectOptions};
use nkeys::{KeyPair, KeyPairType};
use teamster_api::{ProblemCode, ServiceError};

/// The permissions of others than the owner of a file.
const OTHERS: u32 = 0o077;
/// The same without those of its group.
const WORLD: u32 = 0o007;
/// The variable with the folder in which systemd gives a service its credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// The beginning of a certificate in PEM.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
/// What is before the JWT in a file of credentials.
const JWT: &str = "BEGIN NATS USER JWT";

/// Reads a file that has secrets. Fails with the reason if it cannot be read, or others can read it.
pub(crate) fn read_private(file: &Path) -> Result<String, String> {
    // Before it is opened, because that waits for the writer of a pipe.
    let found = fs::metadata(file).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is no file".to_owned());
    }
    let folder = env::var_os(CREDENTIALS);
    if found.mode() & others(file, folder.as_deref().map(Path::new)) != 0 {
        return Err("others can read it: let only its owner do so (`chmod 600`)".to_owned());
    }
    let mut text = String::new();
    let read = File::open(file).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

/// Returns the permissions that a file with secrets must not have. `credentials` is systemd's folder of the service: the
/// user of the service reads it by an access list, whose mask is shown as the permissions of the group.
fn others(file: &Path, credentials: Option<&Path>) -> u32 {
    let is_credential = credentials.is_some_and(|folder| file.starts_with(folder));
    if is_credential { WORLD } else { OTHERS }
}

/// Adds the credentials of a file: a JWT with a seed, or the seed of a user's nkey. No error has a part of them.
pub(crate) fn with_credentials(
    connect: ConnectOptions,
    file: &Path,
) -> Result<ConnectOptions, ServiceError> {
    let about = |problem: &str| {
        let message = format!("the credentials {}: {problem}", file.display());
        ServiceError::new(ProblemCode::InvalidParams, message)
    };
    let text = read_private(file).map_err(|problem| about(&problem))?;
    if text.contains(JWT) {
        let with = connect.credentials(&text);
        return with.map_err(|error| about(&format!("{error}; ask the operator for new ones")));
    }
    let mut lines = text.lines().map(str::trim);
    let is_seed = |line: &&str| {
        KeyPair::from_seed(line).is_ok_and(|pair| pair.key_pair_type() == KeyPairType::User)
    };
    match lines.find(is_seed) {
        Some(seed) => Ok(connect.nkey(seed.to_owned())),
        None => Err(about(
            "expected a JWT with its seed (a file `.creds`), or the seed of a user's nkey (`SU…`)",
        )),
    }
}

/// Trusts the servers whose certificates are signed by the authority in this file, and no others.
pub(crate) fn with_authority(
    connect: ConnectOptions,
    file: &Path,
) -> Result<ConnectOptions, ServiceError> {
    let about = |problem: &str| {
        let message = format!("the authority {}: {problem}", file.display());
        ServiceError::new(ProblemCode::InvalidParams, message)
    };
    let text = fs::read_to_string(file).map_err(|error| about(&error.to_string()))?;
    if !text.contains(CERTIFICATE) {
        return Err(about("expected a certificate in PEM"));
    }
    // Without it, one that answers without TLS would be taken at an address with `nats://`.
    Ok(connect
        .add_root_certificates(file.to_owned())
        .require_tls(true))
}

/// Returns the error of a server that could not be reached, or refuses the connection.
pub(crate) fn not_connected(error: &ConnectError) -> ServiceError {
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            let message = "the fleet's server refuses the credentials: check their file, or ask the operator of the fleet";
            ServiceError::new(ProblemCode::Unauthorized, message)
        }
        ConnectErrorKind::ServerParse => not_an_address(),
        _ => ServiceError::unreachable(unreachable(&error.to_string())),
    }
}

/// The message of a server that could not be reached for this reason.
fn unreachable(reason: &str) -> String {
    const UNTRUSTED: &str = "is signed by an authority that is not trusted here";
    const AUTHORITY: &str = "name the file with the authority's certificate (`ca`)";
    // From this machine's files, before anything was asked of the server.
    if reason.contains("could not load ") {
        return format!(
            "the certificates that are trusted here cannot be read: check the file of the authority ({reason})"
        );
    }
    if reason.contains("InvalidContentType") {
        return format!(
            "the fleet's server takes no TLS: use `nats://`, or give it a certificate ({reason})"
        );
    }
    for (part, problem, next) in [
        ("UnknownIssuer", UNTRUSTED, AUTHORITY),
        // Of another authority with the same name.
        ("BadSignature", UNTRUSTED, AUTHORITY),
        (
            "xpired",
            "has expired",
            "let the operator renew it, or correct this machine's clock",
        ),
        (
            "not valid yet",
            "is not valid yet",
            "correct this machine's clock",
        ),
        (
            "not valid for name",
            "is one of another name",
            "use an address that it names",
        ),
    ] {
        if reason.contains(part) {
            return format!("the certificate of the fleet's server {problem}: {next} ({reason})");
        }
    }
    if reason.contains("certificate") {
        return format!(
            "the certificate of the fleet's server cannot be used: ask its operator ({reason})"
        );
    }
    format!("the fleet's server cannot be reached: {reason}; check its address and that it runs")
}

/// The error of an address that is none, which may have a password.
pub(crate) fn not_an_address() -> ServiceError {
    let message = "expected the address of the fleet's server, such as `tls://nats.example`";
    ServiceError::new(ProblemCode::InvalidParams, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_credential_of_systemd_is_its_service() {
        let file = Path::new("/run/credentials/w.service/worker.creds");
        let folder = Path::new("/run/credentials/w.service");
        assert_eq!(others(file, Some(folder)), WORLD);
        for (file, folder) in [
            (file, None),
            (Path::new("/etc/worker.creds"), Some(folder)),
            (Path::new("/run/credentials/w.service2/a"), Some(folder)),
        ] {
            assert_eq!(others(file, folder), OTHERS, "{}", file.display());
        }
    }
}
