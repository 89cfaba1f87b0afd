//! How a program proves its name to the server, and which servers it trusts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, date_time_ymd};
use serde_json::{Value, json};
use teamster_api::{ProblemCode, ServiceError};
use teamster_fleet::{Fleet, FleetLogin, FleetOptions, FleetRole, FleetUser, server_accounts};
use tempfile::TempDir;

use super::contract::limits;
use super::machine::block_on;
use super::server::Server;

/// A folder for keys and certificates.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file that only its owner can read.
    fn private(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        file
    }
}

async fn connect(url: &str, change: impl FnOnce(&mut FleetOptions)) -> Result<Fleet, ServiceError> {
    let mut options = FleetOptions::new(url, "ann");
    change(&mut options);
    Fleet::connect(options).await
}

/// Connects with a file of credentials.
async fn with(url: &str, file: &Path) -> Result<Fleet, ServiceError> {
    connect(url, |options| options.credentials = Some(file.to_owned())).await
}

fn code(refused: Result<Fleet, ServiceError>, part: &str) -> Option<ProblemCode> {
    let refused = refused.unwrap_err();
    assert!(refused.message.contains(part), "{part}: {refused}");
    refused.code
}

#[test]
fn the_seed_of_an_nkey_is_a_login() {
    let pair = KeyPair::new_user();
    let login = FleetLogin::Nkey(pair.public_key());
    let ann = FleetUser::new("ann", FleetRole::Submitter, login).unwrap();
    let Some(server) = Server::start_with(&server_accounts("TEAM", &[ann])) else {
        return;
    };
    let url = &*server.url;
    let files = Files::new();
    let seed = pair.seed().unwrap();
    let file = files.private("ann.nk", &format!("{seed}\n"));
    block_on(async {
        let fleet = with(url, &file).await.unwrap();
        let findings = fleet.check().await.unwrap();
        let permissions = findings.iter().find(|it| it.what == "permissions");
        assert_eq!(
            permissions.unwrap().detail,
            "of a submitter with the name ann"
        );

        let other = files.private("other", &KeyPair::new_user().seed().unwrap());
        let refused = code(with(url, &other).await, "refuses the credentials");
        assert_eq!(refused, Some(ProblemCode::Unauthorized));
        let open = files.private("open", &seed);
        fs::set_permissions(&open, fs::Permissions::from_mode(0o640)).unwrap();
        let account = KeyPair::new_account().seed().unwrap();
        for (file, part) in [
            (
                files.private("public", &pair.public_key()),
                "the seed of a user's nkey",
            ),
            (
                files.private("cut", &seed[..40]),
                "the seed of a user's nkey",
            ),
            (
                files.private("account", &account),
                "the seed of a user's nkey",
            ),
            (files.private("empty", ""), "expected a JWT with its seed"),
            (open, "chmod 600"),
            (files.0.path().join("missing"), "No such file"),
            (files.0.path().to_owned(), "is no file"),
        ] {
            let refused = with(url, &file).await;
            if let Err(error) = &refused {
                assert!(!error.message.contains(&seed[..40]), "{error}");
            }
            assert_eq!(code(refused, part), Some(ProblemCode::InvalidParams));
        }
    });
}

/// Returns a JWT of these claims, as `nsc` makes them.
fn jwt(issuer: &KeyPair, subject: &KeyPair, name: &str, nats: &Value) -> String {
    let encoded = |json: Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
    let head = encoded(json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let claims = encoded(json!({
        "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name,
        "sub": subject.public_key(), "nats": nats,
    }));
    let signed = format!("{head}.{claims}");
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn a_file_with_a_jwt_and_its_seed_is_a_login() {
    let operator = KeyPair::new_operator();
    let account = KeyPair::new_account();
    let user = KeyPair::new_user();
    let of = |kind: &str| json!({"type": kind, "version": 2});
    let mut team = of("account");
    team["limits"] = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1,
    });
    let mut ann = of("user");
    for limit in ["subs", "data", "payload"] {
        ann[limit] = (-1).into();
    }
    let operators = jwt(&operator, &operator, "op", &of("operator"));
    let team = jwt(&operator, &account, "team", &team);
    let config = format!(
        "operator: {operators}\nresolver: MEMORY\nresolver_preload: {{ {}: {team} }}\n",
        account.public_key()
    );
    let Some(server) = Server::start_without_jetstream(&config) else {
        return;
    };
    let files = Files::new();
    let creds = |issuer: &KeyPair| {
        format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            jwt(issuer, &user, "ann", &ann),
            user.seed().unwrap(),
        )
    };
    let good = creds(&account);
    let good_file = files.private("ann.creds", &good);
    block_on(async {
        with(&server.url, &good_file).await.unwrap();
        let none = connect(&server.url, |_| ()).await;
        assert_eq!(code(none, "refuses"), Some(ProblemCode::Unauthorized));
        let other = files.private("other.creds", &creds(&KeyPair::new_account()));
        let refused = with(&server.url, &other).await;
        assert_eq!(code(refused, "refuses"), Some(ProblemCode::Unauthorized));
        let half = good.split("\n\n").next().unwrap();
        let half = files.private("half.creds", half);
        let refused = with(&server.url, &half).await;
        let refused = code(refused, "ask the operator for new ones");
        assert_eq!(refused, Some(ProblemCode::InvalidParams));
    });
}

/// An authority that signs certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { pem, issuer }
    }

    /// Starts a server that has a certificate for its address, for both kinds of connections.
    fn server(&self, files: &Files, change: impl FnOnce(&mut CertificateParams)) -> Option<Server> {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        change(&mut params);
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        let certificate = files.private("server.pem", &pem);
        let key = files.private("server.key", &key.serialize_pem());
        let tls = format!(
            "tls {{ cert_file: '{}', key_file: '{}' }}",
            certificate.display(),
            key.display()
        );
        Server::start_with(&format!(
            "{tls}\nwebsocket {{ host: 127.0.0.1, port: -1, {tls} }}\n"
        ))
    }
}

#[test]
fn certificates_of_servers_are_checked() {
    let authority = Authority::new();
    let files = Files::new();
    let Some(server) = authority.server(&files, |_| ()) else {
        return;
    };
    let ca = files.private("ca.pem", &authority.pem);
    let other = files.private("other.pem", &Authority::new().pem);
    let by = |ca: &Path| {
        let ca = ca.to_owned();
        move |options: &mut FleetOptions| options.ca = Some(ca)
    };
    let unreachable = |refused, part: &str| assert_eq!(code(refused, part), None);
    block_on(async {
        let websocket = server.websocket();
        assert!(server.url.starts_with("tls://") && websocket.starts_with("wss://"));
        for url in [&*server.url, &*websocket] {
            let fleet = connect(url, by(&ca)).await.unwrap();
            fleet.init(&limits()).await.unwrap();
            let unknown = connect(url, |_| ()).await;
            unreachable(
                unknown,
                "an authority that is not trusted here: name the file",
            );
            let unknown = connect(url, by(&other)).await;
            unreachable(
                unknown,
                "an authority that is not trusted here: name the file",
            );
            let url = url.replace("127.0.0.1", "localhost");
            let other_name = connect(&url, by(&ca)).await;
            unreachable(other_name, "is one of another name: use an address");
        }
        // A server that requires it gets it.
        let url = server.url.replace("tls://", "nats://");
        connect(&url, by(&ca)).await.unwrap();
        for (file, part) in [
            (files.0.path().join("missing"), "No such file"),
            (
                files.private("no.pem", "no"),
                "expected a certificate in PEM",
            ),
        ] {
            let refused = connect(&server.url, by(&file)).await;
            assert_eq!(code(refused, part), Some(ProblemCode::InvalidParams));
        }
        let damaged = authority.pem.replacen("MII", "!!!", 1);
        let damaged = files.private("damaged.pem", &damaged);
        let refused = connect(&server.url, by(&damaged)).await;
        unreachable(refused, "check the file of the authority");
        let refused = connect("ws://127.0.0.1:1", by(&ca)).await;
        assert_eq!(
            code(refused, "use `wss://`"),
            Some(ProblemCode::InvalidParams)
        );
        drop(server);
        let old = authority.server(&files, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        });
        let old = old.unwrap();
        for url in [&*old.url, &*old.websocket()] {
            let expired = connect(url, by(&ca)).await;
            unreachable(expired, "has expired: let the operator renew it");
        }
        drop(old);
        // One that has none.
        let plain = Server::start().unwrap();
        let url = plain.url.replace("nats://", "tls://");
        let refused = connect(&url, by(&ca)).await;
        unreachable(refused, "takes no TLS: use `nats://`");
        // Who names an authority wants TLS, at any address.
        let refused = connect(&plain.url, by(&ca)).await;
        unreachable(refused, "takes no TLS: use `nats://`");
    });
}
