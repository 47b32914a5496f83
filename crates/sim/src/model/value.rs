//! What the model answers: a value that is written in either protocol.

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A status, such as OK.
    Status(&'static str),
    /// An error with its code.
    Error(Vec<u8>),
    /// An integer.
    Int(i64),
    /// A bulk string.
    Bulk(Vec<u8>),
    /// The null bulk string of RESP2.
    Null,
    /// The null array of RESP2.
    NullArray,
    /// An array.
    Array(Vec<Value>),
    /// Names and values: a map in RESP3, a flat array in RESP2.
    Map(Vec<(Value, Value)>),
    /// Keys and entries of a read: a map in RESP3, an array of pairs in RESP2.
    Streams(Vec<(Value, Value)>),
    /// As it goes over the wire.
    Raw(Vec<u8>),
}

/// What a command of the model comes to: its reply, or the text of its error.
pub type Answer = Result<Value, Vec<u8>>;

/// A line of a map.
pub fn named(name: &str, value: Value) -> (Value, Value) {
    (Value::bulk(name), value)
}

impl Value {
    /// A bulk string.
    pub fn bulk(text: impl AsRef<[u8]>) -> Value {
        Value::Bulk(text.as_ref().to_vec())
    }

    /// A count.
    pub fn count(n: usize) -> Value {
        Value::Int(n as i64)
    }

    /// The bytes on the wire, in RESP3 or RESP2.
    pub fn encode(&self, resp3: bool) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(resp3, &mut out);
        out
    }

    fn write(&self, resp3: bool, out: &mut Vec<u8>) {
        let head = |marker: char, n: usize, out: &mut Vec<u8>| out.extend(format!("{marker}{n}\r\n").into_bytes());
        match self {
            Value::Status(text) => out.extend(format!("+{text}\r\n").into_bytes()),
            Value::Error(text) => {
                out.push(b'-');
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            Value::Raw(bytes) => out.extend_from_slice(bytes),
            Value::Int(n) => out.extend(format!(":{n}\r\n").into_bytes()),
            Value::Bulk(bytes) => {
                head('$', bytes.len(), out);
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Value::Null | Value::NullArray if resp3 => out.extend_from_slice(b"_\r\n"),
            Value::Null => out.extend_from_slice(b"$-1\r\n"),
            Value::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Value::Array(items) => {
                head('*', items.len(), out);
                items.iter().for_each(|item| item.write(resp3, out));
            }
            Value::Map(pairs) | Value::Streams(pairs) => {
                let nested = matches!(self, Value::Streams(_));
                match (resp3, nested) {
                    (true, _) => head('%', pairs.len(), out),
                    (false, true) => head('*', pairs.len(), out),
                    (false, false) => head('*', 2 * pairs.len(), out),
                }
                for (name, value) in pairs {
                    if nested && !resp3 {
                        head('*', 2, out);
                    }
                    name.write(resp3, out);
                    value.write(resp3, out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_nulls_depend_on_the_protocol() {
        let pairs = || vec![(Value::bulk("k"), Value::NullArray)];
        for (value, two, three) in [
            (Value::Map(pairs()), "*2\r\n$1\r\nk\r\n*-1\r\n", "%1\r\n$1\r\nk\r\n_\r\n"),
            (Value::Streams(pairs()), "*1\r\n*2\r\n$1\r\nk\r\n*-1\r\n", "%1\r\n$1\r\nk\r\n_\r\n"),
            (Value::Null, "$-1\r\n", "_\r\n"),
            (Value::Error(b"ERR x".to_vec()), "-ERR x\r\n", "-ERR x\r\n"),
        ] {
            assert_eq!(value.encode(false), two.as_bytes());
            assert_eq!(value.encode(true), three.as_bytes());
        }
    }
}
