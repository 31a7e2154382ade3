//! Reading values from records.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

/// Reads a value for which `null` is the same as missing.
pub fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The first `most` characters of a text, and dots if there are more: for messages.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// A text that is borrowed from the input where that is possible.
///
/// Serde's own `Cow` always copies.
pub(crate) fn borrowed_text<'de, D>(deserializer: D) -> Result<Cow<'de, str>, D::Error>
where
    D: Deserializer<'de>,
{
    struct Text;
    impl<'de> serde::de::Visitor<'de> for Text {
        type Value = Cow<'de, str>;

        fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("a text")
        }

        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(text.into())
        }

        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(text.to_owned().into())
        }
    }
    deserializer.deserialize_str(Text)
}
