//! A text with its escapes resolved, once or several times. Each byte keeps its position in the original
//! text.

/// Maximum number of layers, including the text itself.
const DEPTH: usize = 6;

/// A text after resolving some levels of escapes.
pub(super) struct Layer {
    bytes: Vec<u8>,
    /// Range of the original text for each byte.
    spans: Vec<(usize, usize)>,
}

/// Returns the text as is, and with its escapes resolved level by level until none is left, at most [`DEPTH`]
/// layers.
pub(super) fn layers(text: &str) -> Vec<Layer> {
    let mut all = Vec::new();
    let mut layer = Layer::of(text);
    while all.len() < DEPTH {
        let next = layer.undone();
        all.push(layer);
        let Some(next) = next else { break };
        layer = next;
    }
    all
}

impl Layer {
    fn of(text: &str) -> Self {
        let spans = text
            .char_indices()
            .flat_map(|(at, sign)| std::iter::repeat_n((at, at + sign.len_utf8()), sign.len_utf8()));
        Self {
            bytes: text.as_bytes().to_vec(),
            spans: spans.collect(),
        }
    }

    /// Resolves every escape once; `None` if there is none.
    fn undone(&self) -> Option<Self> {
        let mut next = Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            spans: Vec::with_capacity(self.bytes.len()),
        };
        let mut at = 0;
        let mut changed = false;
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (meant, length) = escape(rest).unwrap_or((Meant::Same, 1));
            changed |= meant != Meant::Same;
            let span = self.source(at, length);
            let mut add = |bytes: &[u8]| {
                next.bytes.extend_from_slice(bytes);
                next.spans.extend(bytes.iter().map(|_| span));
            };
            match meant {
                Meant::Same => add(rest.get(..length).unwrap_or_default()),
                Meant::Byte(byte) => add(&[byte]),
                Meant::Sign(sign) => add(sign.encode_utf8(&mut [0; 4]).as_bytes()),
                Meant::Nothing => {}
            }
            at += length;
        }
        changed.then_some(next)
    }

    /// Returns the range of the original text for these bytes.
    pub(super) fn source(&self, at: usize, length: usize) -> (usize, usize) {
        let start = self.spans.get(at).map_or(0, |span| span.0);
        let last = self.spans.get(at + length.max(1) - 1).or(self.spans.last());
        (start, last.map_or(start, |span| span.1))
    }

    /// Maps each byte to ASCII, so that arbitrary bytes can be searched as text; the `+` of a form becomes a
    /// space. Different bytes may become equal, which only masks more, never less.
    pub(super) fn folded(&self) -> String {
        let fold = |byte: &u8| match byte {
            b'+' => ' ',
            byte => char::from(byte & 0x7f),
        };
        self.bytes.iter().map(fold).collect()
    }

    /// Returns the letters and digits in lower case, and the position of each in the layer. Omits quotes,
    /// spaces, line endings and punctuation that an encoder may add or change.
    pub(super) fn letters(&self) -> (String, Vec<usize>) {
        let letters = self
            .bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| byte.is_ascii_alphanumeric());
        letters
            .map(|(at, byte)| (char::from(byte.to_ascii_lowercase()), at))
            .unzip()
    }
}

/// Meaning of an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    /// No escape.
    Same,
    Byte(u8),
    Sign(char),
    /// An unknown name, which stands for some character that is not an ASCII letter.
    Nothing,
}

/// Parses an escape at the start of the text. Returns its meaning and its length.
fn escape(text: &[u8]) -> Option<(Meant, usize)> {
    match text.first()? {
        b'\\' => backslash(text),
        b'%' => percent(text),
        b'&' => entity(text),
        _ => None,
    }
}

/// Parses escapes of JSON, C, Python and JavaScript.
fn backslash(text: &[u8]) -> Option<(Meant, usize)> {
    let sign = |code: u32| char::from_u32(code).map_or(Meant::Nothing, Meant::Sign);
    match *text.get(1)? {
        b'u' if text.get(2) == Some(&b'{') => {
            let digits = count(text, 3, 6, u8::is_ascii_hexdigit);
            let closed = text.get(3 + digits) == Some(&b'}');
            Some((
                sign(number(text, 3, digits, 16)?),
                3 + digits + usize::from(closed),
            ))
        }
        b'u' => match number(text, 2, 4, 16) {
            Some(high @ 0xd800..=0xdbff) => {
                let low = text.get(6..8).filter(|next| *next == b"\\u");
                let low = low.and_then(|_| number(text, 8, 4, 16)?.checked_sub(0xdc00));
                match low.filter(|low| *low < 0x400) {
                    Some(low) => Some((sign(0x1_0000 + ((high - 0xd800) << 10) + low), 12)),
                    None => Some((Meant::Nothing, 6)),
                }
            }
            Some(code) => Some((sign(code), 6)),
            None => None,
        },
        b'U' if number(text, 2, 8, 16).is_some() => Some((sign(number(text, 2, 8, 16)?), 10)),
        b'x' if number(text, 2, 2, 16).is_some() => Some((sign(number(text, 2, 2, 16)?), 4)),
        b'0'..=b'3' if number(text, 1, 3, 8).is_some() => Some((sign(number(text, 1, 3, 8)?), 4)),
        b'n' => Some((Meant::Byte(b'\n'), 2)),
        b'r' => Some((Meant::Byte(b'\r'), 2)),
        b't' => Some((Meant::Byte(b'\t'), 2)),
        b'b' => Some((Meant::Byte(8), 2)),
        b'f' => Some((Meant::Byte(12), 2)),
        other => Some((Meant::Byte(other), 2)),
    }
}

/// Parses escapes of URLs and forms; `%u002F` is an old form of some servers.
fn percent(text: &[u8]) -> Option<(Meant, usize)> {
    if text.get(1) == Some(&b'u')
        && let Some(code) = number(text, 2, 4, 16)
    {
        return Some((char::from_u32(code).map_or(Meant::Nothing, Meant::Sign), 6));
    }
    let byte = u8::try_from(number(text, 1, 2, 16)?).ok()?;
    Some((Meant::Byte(byte), 3))
}

/// Parses escapes of HTML and XML.
fn entity(text: &[u8]) -> Option<(Meant, usize)> {
    if text.get(1) == Some(&b'#') {
        let hex = matches!(text.get(2), Some(b'x' | b'X'));
        let (from, radix) = if hex { (3, 16) } else { (2, 10) };
        let digit = |byte: &u8| char::from(*byte).is_digit(radix);
        // Leading zeros do not count.
        let zeros = count(text, from, 16, |byte| *byte == b'0');
        let digits = count(text, from + zeros, 8, digit);
        let end = from + zeros + digits;
        if zeros + digits == 0 || text.get(end) != Some(&b';') {
            return None;
        }
        let code = number(text, from + zeros, digits, radix);
        let meant = code.and_then(char::from_u32).map_or(Meant::Nothing, Meant::Sign);
        return Some((meant, end + 1));
    }
    let length = count(text, 1, 32, u8::is_ascii_alphanumeric);
    let name = text.get(1..1 + length).filter(|name| !name.is_empty())?;
    if text.get(1 + length) != Some(&b';') {
        return None;
    }
    let known = NAMES.iter().find(|(known, _)| known.as_bytes() == name);
    Some((
        known.map_or(Meant::Nothing, |(_, sign)| Meant::Sign(*sign)),
        length + 2,
    ))
}

/// Counts the consecutive bytes from `from` on that match, at most `most`.
fn count(text: &[u8], from: usize, most: usize, is: impl Fn(&u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter().take(most).take_while(|byte| is(byte)).count()
}

/// Parses a number of exactly this many digits.
fn number(text: &[u8], from: usize, digits: usize, radix: u32) -> Option<u32> {
    let digits = text
        .get(from..from + digits)
        .filter(|digits| !digits.is_empty())?;
    if !digits.iter().all(|byte| char::from(*byte).is_digit(radix)) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// Names of ASCII characters in HTML.
const NAMES: [(&str, char); 42] = [
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("nbsp", ' '),
    ("excl", '!'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("amp", '&'),
    ("AMP", '&'),
    ("apos", '\''),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("midast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("hyphen", '-'),
    ("dash", '-'),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("lt", '<'),
    ("LT", '<'),
    ("equals", '='),
    ("gt", '>'),
    ("GT", '>'),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("grave", '`'),
    ("lcub", '{'),
    ("verbar", '|'),
    ("rcub", '}'),
];
