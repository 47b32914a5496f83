//! An entry of a stream as a client got it, and as JSON.

use serde_json::{Map, Value, json};

use super::Reply;

/// An entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its ID.
    pub id: String,
    /// Names and values in turn; nothing if the entry is in a pending list only.
    pub fields: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// Bytes as JSON: a string, or `{"base64": "…"}` where they are not UTF-8.
pub fn value(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": base64(bytes) }),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let place = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= three.len() { char::from(DIGITS[place as usize]) } else { '=' });
        }
    }
    text
}

impl Entry {
    /// Reads an entry of XRANGE, XREADGROUP or XAUTOCLAIM.
    pub fn read(reply: &Reply) -> Option<Entry> {
        let [id, fields, ..] = reply.items() else { return None };
        let fields = match fields {
            Reply::Nil => None,
            fields => {
                let pair = |two: &[Reply]| Some((two[0].bytes()?.to_vec(), two[1].bytes()?.to_vec()));
                Some(fields.items().chunks_exact(2).map(pair).collect::<Option<Vec<_>>>()?)
            }
        };
        Some(Entry { id: String::from_utf8(id.bytes()?.to_vec()).ok()?, fields })
    }

    /// The value of a field; of several the first.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let (_, value) = self.fields.as_ref()?.iter().find(|(field, _)| field == name)?;
        Some(value)
    }

    /// `{"id": …, "fields": {…}}`. Where a name occurs twice, or is not UTF-8, `pairs` has all of them in order.
    pub fn json(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("id".into(), Value::from(self.id.as_str()));
        let Some(fields) = &self.fields else {
            object.insert("fields".into(), Value::Null);
            return object;
        };
        let mut named = Map::new();
        let mut is_lossless = true;
        for (name, of) in fields {
            let text = String::from_utf8_lossy(name).into_owned();
            is_lossless &= text.as_bytes() == name && !named.contains_key(&text);
            named.insert(text, value(of));
        }
        object.insert("fields".into(), Value::Object(named));
        if !is_lossless {
            object.insert("pairs".into(), fields.iter().map(|(name, of)| json!([value(name), value(of)])).collect());
        }
        object
    }
}

/// Names and values in turn, from an object of JSON. What is no string in it is taken as JSON.
pub fn fields_of_json(line: &str) -> Result<Vec<String>, String> {
    let object: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| format!("no object of JSON: {error}"))?;
    if object.is_empty() {
        return Err("an entry without a field".into());
    }
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(object.into_iter().flat_map(|(name, value)| [name, text(value)]).collect())
}

/// The entries in the reply of XREAD or XREADGROUP for one stream.
pub fn of_read(reply: &Reply) -> Vec<Entry> {
    // RESP3 has the streams in a map, RESP2 in pairs: one stream is the same list either way round.
    let Some(first) = reply.items().first() else { return Vec::new() };
    let entries = first.items().get(1).or_else(|| reply.items().get(1));
    entries.map_or(&[][..], Reply::items).iter().filter_map(Entry::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"\xff\xfe\xfd\x00", "//79AA==")]
        {
            assert_eq!(base64(bytes), text);
        }
    }

    #[test]
    fn nothing_of_an_entry_is_lost_in_json() {
        let entry = |fields: &[(&[u8], &[u8])]| Entry {
            id: "1-0".into(),
            fields: Some(fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()),
        };
        let json = |entry: Entry| Value::Object(entry.json()).to_string();
        assert_eq!(json(entry(&[(b"a", b"1")])), r#"{"fields":{"a":"1"},"id":"1-0"}"#);
        assert_eq!(
            json(entry(&[(b"a", b"1"), (b"a", b"\xff")])),
            r#"{"fields":{"a":{"base64":"/w=="}},"id":"1-0","pairs":[["a","1"],["a",{"base64":"/w=="}]]}"#
        );
        assert_eq!(json(Entry { id: "1-0".into(), fields: None }), r#"{"fields":null,"id":"1-0"}"#);
    }
}
