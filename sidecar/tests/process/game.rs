//! A stand-in for the game server, in a process of its own: killing it closes its sockets.
//!
//! It does nothing by itself. The test writes one command a line, and gets one reply to each.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::net::{AddressFamily, SocketType, bind, socket};

use crate::http::{self, request};
use crate::wait::DEADLINE;

/// Beginning of a reply, somewhere in a line of the test harness.
const REPLY: &str = "stand-in: ";
const STAND_IN: &str = "HOOKGATE_STAND_IN";

/// Running stand-in.
pub(crate) struct Game {
    child: Child,
    commands: ChildStdin,
    replies: Receiver<String>,
}

/// Returns another port at each call, below those that the kernel gives to clients. Both neighbours of a port
/// belong to the same caller.
fn next_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let offset = std::process::id() % 97 * 40;
    let count = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
    u16::try_from(20_001 + 3 * ((offset + count) % 4_000)).unwrap()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let byte = |pair: &[char]| {
        pair.iter()
            .fold(0, |byte, digit| byte * 16 + digit.to_digit(16).unwrap())
    };
    digits
        .chunks(2)
        .map(|pair| u8::try_from(byte(pair)).unwrap())
        .collect()
}

impl Game {
    /// Starts a stand-in without sockets.
    pub(crate) fn start() -> Self {
        // The same program, even if a new build has replaced its file.
        let mut child = Command::new("/proc/self/exe")
            .args(["--exact", "game::stand_in", "--ignored", "--nocapture"])
            .env(STAND_IN, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (send, replies) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, reply)) = line.split_once(REPLY) {
                    // The test may have ended.
                    let _ = send.send(reply.to_owned());
                }
            }
        });
        Self {
            commands: child.stdin.take().unwrap(),
            child,
            replies,
        }
    }

    /// Runs a command and returns its result.
    fn try_run(&mut self, command: &str) -> Result<String, String> {
        writeln!(self.commands, "{command}").map_err(|error| error.to_string())?;
        let reply = self
            .replies
            .recv_timeout(DEADLINE)
            .map_err(|error| error.to_string())?;
        reply.strip_prefix("ok ").map(str::to_owned).ok_or(reply)
    }

    /// Runs a command that succeeds.
    #[track_caller]
    fn run(&mut self, command: &str) -> String {
        let shown = &command[..command.len().min(80)];
        self.try_run(command)
            .unwrap_or_else(|error| panic!("{shown}: {error}"))
    }

    /// Opens a socket of the game: `udp`, or `tcp` for one that listens.
    #[track_caller]
    pub(crate) fn bind(&mut self, protocol: &str, address: SocketAddr) {
        self.run(&format!("bind {protocol} {address}"));
    }

    /// Opens a socket of the game unless another program uses the port.
    pub(crate) fn try_bind(&mut self, protocol: &str, address: SocketAddr) -> Result<(), String> {
        self.try_run(&format!("bind {protocol} {address}")).map(drop)
    }

    /// Opens a socket of the game on a port that nobody else uses, and returns the port.
    pub(crate) fn bind_anywhere(&mut self, protocol: &str, ip: IpAddr) -> u16 {
        loop {
            let port = next_port();
            let address = SocketAddr::new(ip, port);
            if self.try_bind(protocol, address).is_ok() {
                return port;
            }
        }
    }

    /// Closes the socket that the game opened last.
    pub(crate) fn close(&mut self) {
        self.run("close");
    }

    /// Connects from a port of the game's.
    pub(crate) fn connect(&mut self, from: SocketAddr, to: SocketAddr) {
        self.run(&format!("connect {from} {to}"));
    }

    /// Accepts one connection on the socket that the game opened last, and keeps it.
    pub(crate) fn accept(&mut self) {
        self.run("accept");
    }

    /// Sends a datagram.
    #[track_caller]
    pub(crate) fn send(&mut self, to: SocketAddr, report: &[u8]) {
        self.run(&format!("send {to} {}", to_hex(report)));
    }

    /// Sends a report by HTTP, and returns the status of the response.
    #[track_caller]
    pub(crate) fn put(&mut self, to: SocketAddr, report: &[u8]) -> u16 {
        self.queue(to, report);
        self.collect()[0]
    }

    /// Sends a report by HTTP without reading the response.
    pub(crate) fn queue(&mut self, to: SocketAddr, report: &[u8]) {
        self.run(&format!("queue {to} {}", to_hex(report)));
    }

    /// Reads the responses of all reports in the queue, and returns their statuses.
    #[track_caller]
    pub(crate) fn collect(&mut self) -> Vec<u16> {
        let statuses = self.run("collect");
        statuses
            .split_whitespace()
            .map(|status| status.parse().unwrap())
            .collect()
    }

    /// Replaces the file as a game server should do it: with a temporary file and a rename.
    #[track_caller]
    pub(crate) fn write(&mut self, path: &Path, report: &[u8]) {
        self.run(&format!("write {} {}", path.display(), to_hex(report)));
    }

    /// Kills the process, and returns when its sockets are closed.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        // Already dead, perhaps.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sockets of the stand-in.
#[derive(Default)]
struct Sockets {
    game: Vec<OwnedFd>,
    queue: Vec<TcpStream>,
}

impl Sockets {
    fn run(&mut self, command: &str) -> io::Result<String> {
        let words: Vec<&str> = command.split(' ').collect();
        let address = |index: usize| words[index].parse::<SocketAddr>().unwrap();
        match words[0] {
            "bind" if words[1] == "udp" => self.game.push(UdpSocket::bind(address(2))?.into()),
            "bind" => self.game.push(TcpListener::bind(address(2))?.into()),
            "close" => drop(self.game.pop()),
            "connect" => {
                let from = socket(AddressFamily::INET, SocketType::STREAM, None)?;
                bind(&from, &address(1))?;
                rustix::net::connect(&from, &address(2))?;
                self.game.push(from);
            }
            "accept" => {
                let listener = TcpListener::from(self.game.last().unwrap().try_clone()?);
                self.game.push(listener.accept()?.0.into());
            }
            "send" => {
                // From any port: a game server sends reports from another socket than the one for players.
                let socket = UdpSocket::bind("127.0.0.1:0")?;
                socket.send_to(&from_hex(words[2]), address(1))?;
            }
            "queue" => {
                let mut stream = http::connect(address(1))?;
                stream.write_all(&request("PUT", "/players", &from_hex(words[2])))?;
                self.queue.push(stream);
            }
            "collect" => {
                let statuses = self.queue.drain(..).map(|stream| {
                    let response = http::read(&mut BufReader::new(&stream), false)?;
                    http::forget(&stream)?;
                    Ok(response.status.to_string())
                });
                return Ok(statuses.collect::<io::Result<Vec<_>>>()?.join(" "));
            }
            "write" => {
                let temporary = format!("{}.new", words[1]);
                fs::write(&temporary, from_hex(words[2]))?;
                fs::rename(&temporary, words[1])?;
            }
            _ => return Err(io::Error::other("unknown command")),
        }
        Ok(String::new())
    }
}

/// Process of the stand-in: ends with its standard input.
#[test]
#[ignore = "other tests start it with commands on its standard input"]
fn stand_in() {
    if std::env::var_os(STAND_IN).is_none() {
        return;
    }
    let mut sockets = Sockets::default();
    for command in io::stdin().lines().map_while(Result::ok) {
        match sockets.run(&command) {
            Ok(result) => println!("{REPLY}ok {result}"),
            Err(error) => println!("{REPLY}{error}"),
        }
    }
}
