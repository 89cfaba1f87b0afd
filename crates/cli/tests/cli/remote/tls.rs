//! TLS: a server behind a proxy whose certificate is signed by a CA of one's own.

use std::fs;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::Machine;
use crate::cli::{Claude, run, teamster};

/// A CA of one's own, as PEM, and what serves `localhost` with a certificate of it.
fn certificates() -> (String, ServerConfig) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let server = server.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], key)
        .unwrap();
    (ca_certificate.pem(), config)
}

/// A proxy in front of a server, which serves `localhost` with TLS.
pub(crate) struct TlsProxy {
    pub(crate) port: u16,
    /// The CA of its certificate, as PEM.
    pub(crate) ca: String,
    _runtime: Runtime,
}

impl TlsProxy {
    pub(crate) fn start(to: String) -> Self {
        let (ca, config) = certificates();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        runtime.spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(config));
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, to) = (acceptor.clone(), to.clone());
                tokio::spawn(async move {
                    // A client that does not trust the certificate goes away.
                    if let Ok(mut stream) = acceptor.accept(stream).await {
                        let mut server = TcpStream::connect(to).await.unwrap();
                        let _ = copy_bidirectional(&mut stream, &mut server).await;
                    }
                });
            }
        });
        Self {
            port,
            ca,
            _runtime: runtime,
        }
    }
}

#[test]
fn a_certificate_is_checked_and_a_ca_of_ones_own_can_be_named() {
    let claude = Claude::plays("text", 0);
    let machine = Machine::new(claude.path("").as_path(), &claude.path("claude"));
    let proxy = TlsProxy::start(machine.served.address.clone());
    let ca_file = claude.path("ca.pem");
    fs::write(&ca_file, &proxy.ca).unwrap();
    let remote = |args: &[&str], trusted: bool| {
        let url = format!("https://localhost:{}", proxy.port);
        let mut command = teamster(args.iter().copied());
        command
            .env("TEAMSTER_REMOTE", url)
            .env("TEAMSTER_REMOTE_TOKEN", &machine.served.token);
        if trusted {
            command.env("SSL_CERT_FILE", &ca_file);
        }
        run(&mut command)
    };
    let ended = remote(&["run", "claude", "hello", "--quiet"], true);
    let local = run(&mut machine.local(["run", "claude", "hello", "--quiet"]));
    assert_eq!(
        (ended.code, &ended.stdout, &*ended.stderr),
        (Some(0), &local.stdout, "")
    );
    let refused = remote(&["runs", "list"], false);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""));
    for word in ["certificate", "SSL_CERT_FILE"] {
        refused.stderr_has(word);
    }
}
