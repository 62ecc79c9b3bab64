//! A client that can also send what no decent client sends.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::wait::DEADLINE;

/// Response of the program.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    /// Value of a header, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut headers = self.headers.iter();
        let found = headers.find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

/// Opens a connection whose reads and writes fail at the deadline.
pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Makes the kernel forget the connection when it is closed: thousands of them make its tables slow.
pub(crate) fn forget(stream: &TcpStream) -> io::Result<()> {
    Ok(set_socket_linger(stream, Some(Duration::ZERO))?)
}

/// Text of a request with a body.
pub(crate) fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: sidecar\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Sends a request on a connection of its own.
pub(crate) fn exchange(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> io::Result<Response> {
    let mut stream = connect(address)?;
    // The program may answer and close before it has read everything: the answer counts, not the write.
    let written = stream.write_all(&request(method, path, body));
    let response = read(&mut BufReader::new(&stream), method == "HEAD");
    forget(&stream)?;
    response.or_else(|error| written.and(Err(error)))
}

/// Reads one response.
pub(crate) fn read(from: &mut impl BufRead, no_body: bool) -> io::Result<Response> {
    let line = read_line(from)?;
    let mut words = line.split(' ');
    let version = words.next().unwrap_or_default();
    let status = words.next().and_then(|status| status.parse().ok());
    let Some(status) = status.filter(|_| version.starts_with("HTTP/1.")) else {
        return Err(io::Error::other(format!("not a status line: {line:?}")));
    };
    let mut response = Response {
        status,
        headers: Vec::new(),
        body: String::new(),
    };
    loop {
        let line = read_line(from)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| io::Error::other(line.clone()))?;
        response.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    if no_body || status == 204 {
        return Ok(response);
    }
    assert_eq!(response.header("transfer-encoding"), "", "{response:?}");
    let length = response.header("content-length").parse().ok();
    let length = length.ok_or_else(|| io::Error::other(format!("no length: {response:?}")))?;
    from.take(length).read_to_string(&mut response.body)?;
    if response.body.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(response)
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Whether the program has closed this connection, after whatever it sent.
pub(crate) fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let closed = loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != io::ErrorKind::WouldBlock,
        }
    };
    stream.set_nonblocking(false).unwrap();
    closed
}
