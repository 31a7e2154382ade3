//! A quick reader for flat JSON records, as nearly all lines are.
//!
//! It knows one object whose values are plain strings, numbers, truth values and `null`. On
//! anything else (escapes, nested values, odd numbers, and whatever the record itself refuses) it
//! gives up, and `serde_json` reads the line instead and says what is wrong. So what it accepts is
//! what `serde_json` would have made of it, in less than half the time; the tests below hold both
//! against each other.

use std::fmt;

use serde::Deserialize;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Reads a record, or nothing if that takes more than this reader knows.
pub(crate) fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
    let mut reader = Reader { text, position: 0 };
    let record = T::deserialize(&mut reader).ok()?;
    (reader.position == text.len()).then_some(record)
}

/// The reader gives up; why does not matter.
#[derive(Debug)]
struct GiveUp;

impl fmt::Display for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a flat record")
    }
}

impl std::error::Error for GiveUp {}

impl serde::de::Error for GiveUp {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Reader<'de> {
    text: &'de str,
    position: usize,
}

impl<'de> Reader<'de> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.position += 1;
        }
    }

    /// Takes `byte`, and the spaces behind it.
    fn take(&mut self, byte: u8) -> Result<(), GiveUp> {
        if self.peek() != Some(byte) {
            return Err(GiveUp);
        }
        self.position += 1;
        self.skip_spaces();
        Ok(())
    }

    fn take_word(&mut self, word: &str) -> Result<(), GiveUp> {
        if !self.text.as_bytes()[self.position..].starts_with(word.as_bytes()) {
            return Err(GiveUp);
        }
        self.position += word.len();
        Ok(())
    }

    /// A string without escapes.
    #[expect(clippy::inline_always, reason = "a tenth of the time of a whole run")]
    #[inline(always)]
    fn string(&mut self) -> Result<&'de str, GiveUp> {
        let start = self.position + 1;
        let rest = self.text.as_bytes().get(start..).ok_or(GiveUp)?;
        let length = plain_length(rest);
        if self.peek() != Some(b'"') || rest.get(length) != Some(&b'"') {
            return Err(GiveUp);
        }
        self.position = start + length + 1;
        Ok(&self.text[start..start + length])
    }

    /// Digits as a number, and how many there were: at least one, and few enough to be exact as a float.
    fn digits(&mut self, before: u64) -> Result<(u64, usize), GiveUp> {
        const EXACT: u64 = 1 << 53;
        let start = self.position;
        let mut value = before;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = value * 10 + u64::from(digit - b'0');
            if value >= EXACT {
                return Err(GiveUp);
            }
            self.position += 1;
        }
        match self.position - start {
            0 => Err(GiveUp),
            count => Ok((value, count)),
        }
    }

    fn number(&mut self) -> Result<Number, GiveUp> {
        /// Powers of ten that a float holds exactly: a quotient by one of them is rounded once only.
        const TENS: [f64; 16] =
            [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
        let leading_zero = self.peek() == Some(b'0');
        let (whole, count) = self.digits(0)?;
        if leading_zero && count > 1 {
            return Err(GiveUp);
        }
        match self.peek() {
            Some(b'.') => {}
            Some(b'e' | b'E') => return Err(GiveUp),
            _ => return Ok(Number::Whole(whole)),
        }
        self.position += 1;
        let (all, places) = self.digits(whole)?;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            return Err(GiveUp);
        }
        let divisor = TENS.get(places).ok_or(GiveUp)?;
        #[expect(clippy::cast_precision_loss, reason = "below 2^53 nothing is lost")]
        let value = all as f64 / divisor;
        Ok(Number::Decimal(value))
    }
}

/// How many bytes stand before the first quote, backslash or control character.
///
/// Eight are looked at together; a line has a dozen short strings, for which a search by vectors
/// takes longer to begin than to end.
#[expect(clippy::inline_always, reason = "a tenth of the time of a whole run")]
#[inline(always)]
fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |&byte: &u8| byte < b' ' || byte == b'"' || byte == b'\\';
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// The highest bit of each byte that is a quote, a backslash or a control character. Bits above
/// the lowest one set may be wrong, for a borrow runs upwards.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = ONES << 7;
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, b' ') | equal(b'"') | equal(b'\\')) & HIGHEST
}

enum Number {
    Whole(u64),
    Decimal(f64),
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = GiveUp;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        self.take(b'{')?;
        let record = visitor.visit_map(Fields { reader: self, first: true })?;
        self.skip_spaces();
        Ok(record)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The fields of the object.
struct Fields<'r, 'de> {
    reader: &'r mut Reader<'de>,
    first: bool,
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = GiveUp;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, GiveUp> {
        if self.reader.peek() == Some(b'}') {
            self.reader.position += 1;
            return Ok(None);
        }
        if !std::mem::take(&mut self.first) {
            self.reader.take(b',')?;
        }
        let key = self.reader.string()?;
        self.reader.skip_spaces();
        self.reader.take(b':')?;
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, GiveUp> {
        let value = seed.deserialize(Value(self.reader))?;
        self.reader.skip_spaces();
        Ok(value)
    }
}

/// The value of a field.
struct Value<'r, 'de>(&'r mut Reader<'de>);

impl<'de> Deserializer<'de> for Value<'_, 'de> {
    type Error = GiveUp;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        match self.0.peek() {
            Some(b'"') => visitor.visit_borrowed_str(self.0.string()?),
            Some(b'0'..=b'9') => match self.0.number()? {
                Number::Whole(value) => visitor.visit_u64(value),
                Number::Decimal(value) => visitor.visit_f64(value),
            },
            Some(b't') => {
                self.0.take_word("true")?;
                visitor.visit_bool(true)
            }
            Some(b'f') => {
                self.0.take_word("false")?;
                visitor.visit_bool(false)
            }
            Some(b'n') => {
                self.0.take_word("null")?;
                visitor.visit_unit()
            }
            _ => Err(GiveUp),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        if self.0.peek() == Some(b'n') {
            self.0.take_word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, GiveUp> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GiveUp> {
        visitor.visit_enum(self.0.string()?.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use forager_core::score::UrlSignals;
    use forager_core::sentinel::Risk;
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::read;

    /// A field of every kind that records have.
    #[derive(Debug, PartialEq, Deserialize)]
    struct Record<'a> {
        #[serde(borrow)]
        text: std::borrow::Cow<'a, str>,
        #[serde(default)]
        share: Option<f64>,
        #[serde(default)]
        count: Option<u32>,
        #[serde(default)]
        risk: Option<Risk>,
        #[serde(default)]
        flag: bool,
    }

    #[test]
    fn what_lines_are_made_of_is_read() {
        let cases = [
            r#"{"text":"a"}"#,
            r#"{ "text" : "ć" , "share" : 0.25 }"#,
            r#"{"text":"","share":1,"count":7,"risk":"HIGH","flag":true}"#,
            r#"{"text":"a","share":null,"count":null,"risk":null,"flag":false,"other":"x"}"#,
            r#"{"text":"a","share":0.30000000000004}"#,
        ];
        for case in cases {
            let expected: Record = serde_json::from_str(case).unwrap();
            assert_eq!(read(case), Some(expected), "{case}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_other_reader() {
        let cases = [
            r#"{"text":"a\nb"}"#,
            r#"{"text":"a","share":1e3}"#,
            r#"{"text":"a","share":0.1234567890123456789}"#,
            r#"{"text":"a","count":-1}"#,
            r#"{"text":"a","count":01}"#,
            r#"{"text":"a","share":.5}"#,
            r#"{"text":"a","share":1.}"#,
            r#"{"text":"a","other":[1]}"#,
            r#"{"text":"a",}"#,
            r#"{,"text":"a"}"#,
            r#"{"text":"a"} x"#,
            r#"{"text":"a""#,
            r#"{"text":"a","text":"b"}"#,
            r#"["a"]"#,
            "{\"text\":\"a\u{1}b\"}",
            "{}",
            "",
        ];
        for case in cases {
            assert_eq!(read::<Record>(case), None, "{case}");
        }
    }

    #[test]
    fn the_end_of_a_string_is_found_wherever_it_is() {
        for length in 0..40 {
            for end in ['"', '\\', '\u{0}', '\u{1f}'] {
                for filler in ["a", " ", "!", "#", "[", "]", "\u{7f}", "ÿ"] {
                    let text = format!("{}{end}\"\\ and more", filler.repeat(length));
                    assert_eq!(super::plain_length(text.as_bytes()), length * filler.len(), "{text:?}");
                }
            }
            assert_eq!(super::plain_length("a".repeat(length).as_bytes()), length);
        }
    }

    /// Pieces of JSON in an order that is often right.
    fn json_like() -> impl Strategy<Value = String> {
        let string = prop_oneof![
            Just("\"text\"".to_owned()),
            Just("\"HIGH\"".to_owned()),
            "\"[a-z\\\\\"é\u{1} ]{0,4}\"",
        ];
        let number =
            prop_oneof!["-?[0-9]{1,3}(\\.[0-9]{0,17})?(e[0-9])?", any::<f64>().prop_map(|n| n.to_string())];
        let value = prop_oneof![string, number, "true|false|null|nul|\\[\\]|\\{\\}"];
        let key = "\"(text|share|count|risk|flag|x)\"";
        let field = (key, "[ \t]?:[ ]?", value).prop_map(|(key, colon, value)| key + &colon + &value);
        let fields = proptest::collection::vec(field, 0..5).prop_map(|fields| fields.join(","));
        ("\\{?[ ]?", fields, "[ ,]?\\}?[ x]?").prop_map(|(open, fields, close)| open + &fields + &close)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Whatever this reader accepts, `serde_json` reads alike.
        #[test]
        fn both_readers_agree(text in json_like()) {
            if let Some(record) = read::<Record>(&text) {
                prop_assert_eq!(serde_json::from_str::<Record>(&text).ok(), Some(record));
            }
        }

        #[test]
        fn decimals_are_exact(whole in 0_u64..1_000_000, places in "[0-9]{1,12}") {
            let text = format!(r#"{{"url":"http://a.example/","topicRelevance":0.{places},"visits":{whole}}}"#);
            let quick: Option<UrlSignals> = read(&text);
            prop_assert!(quick.is_some());
            prop_assert_eq!(serde_json::from_str(&text).ok(), quick);
        }
    }
}
