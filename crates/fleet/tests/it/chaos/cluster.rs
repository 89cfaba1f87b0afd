//! Three servers on loopback that keep their streams together.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_testkit::proc::wait_until;

use super::super::server::messages;
use super::processes::{append_to, mebibytes};

/// Time in which a server must be there.
const STARTS: Duration = Duration::from_secs(20);

/// One server. It is killed when this is dropped.
pub(crate) struct Node {
    program: PathBuf,
    folder: PathBuf,
    pub(crate) port: u16,
    /// Where it shows its figures.
    figures: u16,
    child: Option<Child>,
}

impl Node {
    fn new(program: &Path, folder: PathBuf, [port, figures]: [u16; 2], config: &str) -> Self {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("server.conf"), config).unwrap();
        let mut node = Self {
            program: program.to_owned(),
            folder,
            port,
            figures,
            child: None,
        };
        node.start();
        node
    }

    /// Starts the server, if it does not run.
    pub(crate) fn start(&mut self) {
        if self.is_up() {
            return;
        }
        let log = append_to(&self.folder.join("log"));
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(self.folder.join("server.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(command.stderr(log).spawn().unwrap());
    }

    pub(crate) fn is_up(&mut self) -> bool {
        let child = self.child.as_mut();
        child.is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        let Some(child) = &mut self.child else { return };
        let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
        if signal == Signal::SIGKILL {
            child.wait().unwrap();
            self.child = None;
        }
    }

    /// Returns how many messages clients have sent to the server, and it to them.
    pub(crate) fn messages(&self) -> [u64; 2] {
        messages(&format!("127.0.0.1:{}", self.figures))
    }

    /// Returns the memory of the process in MiB, where it can be known.
    pub(crate) fn mebibytes(&self) -> u64 {
        let pid = self.child.as_ref().map_or(0, Child::id);
        mebibytes(pid)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// A number of ports that are free now.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    let bound: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let ports = bound.iter().map(|bound| bound.local_addr().unwrap().port());
    ports.collect()
}

/// Starts three servers of one cluster, with these users. `store` returns the folder of a server's streams.
pub(crate) fn start(
    program: &Path,
    root: &Path,
    accounts: &str,
    store: impl Fn(usize) -> PathBuf,
) -> Vec<Node> {
    // Another process may take a port before the server does.
    loop {
        let mut nodes = start_at(program, root, accounts, &store, &free_ports(9));
        let answers = |node: &Node| TcpStream::connect(("127.0.0.1", node.figures)).is_ok();
        let mut are_up = true;
        wait_until(STARTS, || {
            are_up = nodes.iter_mut().all(Node::is_up);
            !are_up || nodes.iter().all(answers)
        });
        if are_up {
            return nodes;
        }
    }
}

fn start_at(
    program: &Path,
    root: &Path,
    accounts: &str,
    store: &impl Fn(usize) -> PathBuf,
    ports: &[u16],
) -> Vec<Node> {
    let routes: Vec<_> = ports[3..6]
        .iter()
        .map(|port| format!("nats://127.0.0.1:{port}"))
        .collect();
    let routes = routes.join(", ");
    let nodes = (0..3).map(|number| {
        let (port, route, figures) = (ports[number], ports[3 + number], ports[6 + number]);
        let config = format!(
            "server_name: n{number}\nlisten: 127.0.0.1:{port}\nhttp: 127.0.0.1:{figures}\n\
             jetstream {{ store_dir: \"{}\", sync_interval: always, max_file_store: 2GB }}\n\
             cluster {{ name: chaos, listen: 127.0.0.1:{route}, routes: [{routes}], no_advertise: true }}\n{accounts}",
            store(number).display()
        );
        Node::new(program, root.join(format!("n{number}")), [port, figures], &config)
    });
    nodes.collect()
}
