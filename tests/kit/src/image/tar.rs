//! Writes tar archives: directories, files and symbolic links, with names of at most 100 bytes.

use std::io;

const BLOCK: usize = 512;

/// Tar archive in memory. Equal entries produce equal bytes: the owner is root, times are 0.
#[derive(Debug, Default, Clone)]
pub(super) struct Tar {
    bytes: Vec<u8>,
}

impl Tar {
    pub(super) fn directory(&mut self, name: &str) -> io::Result<()> {
        self.entry(&format!("{name}/"), b'5', 0o755, b"", "")
    }

    pub(super) fn file(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entry(name, b'0', mode, content, "")
    }

    pub(super) fn link(&mut self, name: &str, target: &str) -> io::Result<()> {
        self.entry(name, b'2', 0o777, b"", target)
    }

    /// Returns the complete archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend([0; 2 * BLOCK]);
        self.bytes
    }

    fn entry(&mut self, name: &str, kind: u8, mode: u32, content: &[u8], target: &str) -> io::Result<()> {
        let mut header = [0_u8; BLOCK];
        let mut put = |at: usize, field: &[u8]| {
            for (place, byte) in header.iter_mut().skip(at).zip(field) {
                *place = *byte;
            }
        };
        if name.len() > 100 || target.len() > 100 {
            let message = format!("the name {name:?} is too long for an image");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        put(0, name.as_bytes());
        put(100, format!("{mode:07o}").as_bytes());
        put(108, b"0000000");
        put(116, b"0000000");
        put(124, format!("{:011o}", content.len()).as_bytes());
        put(136, b"00000000000");
        put(156, &[kind]);
        put(157, target.as_bytes());
        put(257, b"ustar\x0000");
        // The checksum is the sum of the header's bytes, with its own field counted as spaces.
        put(148, b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        let sum = format!("{sum:06o}\0 ");
        for (place, byte) in header.iter_mut().skip(148).zip(sum.bytes()) {
            *place = byte;
        }
        self.bytes.extend(header);
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn tar_reads_what_was_written() {
        let mut archive = Tar::default();
        archive.directory("www").unwrap();
        archive.file("www/index", 0o644, b"hello").unwrap();
        archive.link("bin", "usr/bin").unwrap();
        let mut reader = Command::new("tar")
            .args(["--list", "--verbose", "--numeric-owner"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        reader.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        let seen = reader.wait_with_output().unwrap();
        assert!(seen.status.success());
        let seen = String::from_utf8(seen.stdout).unwrap();
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines.len(), 3, "{seen}");
        assert!(
            lines[0].starts_with("drwxr-xr-x") && lines[0].ends_with("www/"),
            "{seen}"
        );
        assert!(
            lines[1].starts_with("-rw-r--r-- 0/0") && lines[1].contains(" 5 "),
            "{seen}"
        );
        assert!(lines[2].ends_with("bin -> usr/bin"), "{seen}");
    }

    #[test]
    fn a_name_that_does_not_fit_is_refused() {
        let refused = Tar::default().file(&"a".repeat(101), 0o644, b"");
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
