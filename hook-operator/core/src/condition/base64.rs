//! Standard base64 with padding, for `toBase64` and `fromBase64`.

use super::error::Fault;

const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let block = (0..3).fold(0_u32, |block, at| {
            (block << 8) | u32::from(chunk.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            let index = (block >> (18 - 6 * at)) & 63;
            let sign = SIGNS.get(index as usize).copied().unwrap_or(b'A');
            out.push(if at <= chunk.len() { char::from(sign) } else { '=' });
        }
    }
    out
}

fn value_of(sign: u8) -> Option<u32> {
    Some(match sign {
        b'A'..=b'Z' => u32::from(sign - b'A'),
        b'a'..=b'z' => u32::from(sign - b'a') + 26,
        b'0'..=b'9' => u32::from(sign - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

pub(super) fn decode(text: &str) -> Result<String, Fault> {
    let bad = || Fault::runtime("fromBase64: this is not base64 of UTF-8 text");
    // Go skips line ends.
    let signs: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    if !signs.len().is_multiple_of(4) {
        return Err(bad());
    }
    let body = signs
        .strip_suffix(b"==")
        .or_else(|| signs.strip_suffix(b"="))
        .unwrap_or(&signs);
    let mut out = Vec::with_capacity(body.len());
    for chunk in body.chunks(4) {
        let mut block = 0_u32;
        for at in 0..4 {
            let value = match chunk.get(at) {
                Some(sign) => value_of(*sign).ok_or_else(bad)?,
                None => 0,
            };
            block = (block << 6) | value;
        }
        let bytes = block.to_be_bytes();
        out.extend(bytes.iter().skip(1).take(chunk.len().saturating_sub(1)));
    }
    String::from_utf8(out).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (text, code) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("é!", "w6kh"),
        ] {
            assert_eq!(encode(text.as_bytes()), code);
            assert_eq!(decode(code).ok().as_deref(), Some(text));
        }
        for code in ["a", "YQ=", "Y===", "Y!==", "/w=="] {
            assert!(decode(code).is_err(), "{code}");
        }
    }
}
