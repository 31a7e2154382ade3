//! What clients want back with their URLs: a map for them, one text for the queue.
//!
//! The text is JSON, such as `{"depth":["1"]}`, so that people can read it where entries are listed.

use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::proto::StringList;

/// As a client sends it.
pub(crate) type Map = BTreeMap<String, StringList>;

/// The key under which a client finds a text that another kind of client wrote.
const OTHER: &str = "metadata";

/// The map as a text; none if it is empty.
pub(crate) fn to_text(map: &Map) -> Option<String> {
    // A map of texts can always be written.
    if map.is_empty() { None } else { serde_json::to_string(&Written(map)).ok() }
}

/// The text as a map.
pub(crate) fn to_map(text: &str) -> Map {
    match serde_json::from_str::<BTreeMap<String, Vec<String>>>(text) {
        Ok(map) => map.into_iter().map(|(key, values)| (key, StringList { values })).collect(),
        Err(_) => Map::from([(OTHER.to_owned(), StringList { values: vec![text.to_owned()] })]),
    }
}

/// The first value of a key.
pub(crate) fn first<'a>(map: &'a Map, key: &str) -> Option<&'a str> {
    map.get(key)?.values.first().map(String::as_str)
}

/// The last value of a key.
pub(crate) fn last<'a>(map: &'a Map, key: &str) -> Option<&'a str> {
    map.get(key)?.values.last().map(String::as_str)
}

struct Written<'a>(&'a Map);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, list) in self.0 {
            map.serialize_entry(key, &list.values)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &[&str])]) -> Map {
        let list = |values: &[&str]| StringList { values: values.iter().map(|&v| v.to_owned()).collect() };
        pairs.iter().map(|(key, values)| ((*key).to_owned(), list(values))).collect()
    }

    #[test]
    fn a_map_is_the_same_afterwards() {
        let cases: [(&str, Map, Option<&str>); 5] = [
            ("nothing", Map::new(), None),
            ("one value", map(&[("depth", &["1"])]), Some(r#"{"depth":["1"]}"#)),
            ("several", map(&[("b", &["2", ""]), ("a", &["x"])]), Some(r#"{"a":["x"],"b":["2",""]}"#)),
            ("a key without values", map(&[("k", &[])]), Some(r#"{"k":[]}"#)),
            ("odd letters", map(&[("\"\u{1F980}", &["\\\n"])]), Some("{\"\\\"\u{1F980}\":[\"\\\\\\n\"]}")),
        ];
        for (name, given, want) in cases {
            let text = to_text(&given);
            assert_eq!(text.as_deref(), want, "{name}");
            assert_eq!(text.map_or_else(Map::new, |text| to_map(&text)), given, "{name}");
        }
    }

    #[test]
    fn a_text_of_another_client_is_one_value() {
        for text in ["page 7", "", "{\"depth\":1}", "[1]", "{\"a\":[1]}"] {
            assert_eq!(to_map(text), map(&[("metadata", &[text])]), "{text}");
        }
    }
}
