//! How messages are read: not before it is known how many parts they have, and what cannot be read is handed on where it
//! can be skipped.
//!
//! An empty item of a batch takes two bytes on its way and a hundred in memory, so that the length of a message is no
//! bound on what it becomes. What a message has many of is counted in its bytes before anything is made of them.

use std::marker::PhantomData;

use prost::bytes::Buf as _;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost::{Message, Name};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstEncoder};

use crate::arriving::Unpacked;
use crate::limits::{MAX_MESSAGE_PARTS, SMALL_MESSAGE};
use crate::salvage::salvaged;

/// The usual form of messages, with a bound on their parts.
pub(crate) struct BoundedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Name + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder { unpacked: Unpacked::of_this_call(), message: PhantomData }
    }
}

/// Reads messages that do not have too many parts, and, where they were packed, for which there is room.
pub(crate) struct BoundedDecoder<U> {
    unpacked: Unpacked,
    message: PhantomData<U>,
}

impl<U: Message + Name + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        self.unpacked.holds(message.remaining())?;
        // All of a message lies in one piece, and is through with when it was looked at, whatever came of it: the next
        // one of its stream is then where it should be.
        let read = read(message.chunk());
        message.advance(message.remaining());
        read.map(Some)
    }

    /// Room for a small message from the start; the other number is for what is sent.
    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(SMALL_MESSAGE, SMALL_MESSAGE)
    }
}

/// A message; of one that cannot be read, what is left to be skipped, where it is one of those that are acknowledged.
fn read<U: Message + Name + Default>(bytes: &[u8]) -> Result<U, Status> {
    let problem = match count(bytes, repeated(U::NAME)) {
        Some(..=MAX_MESSAGE_PARTS) => match U::decode(bytes) {
            Ok(message) => return Ok(message),
            Err(cause) => Status::invalid_argument(format!("a message cannot be read: {cause}")),
        },
        Some(_) => Status::resource_exhausted(format!(
            "a message may have {MAX_MESSAGE_PARTS} URLs and values of metadata at most"
        )),
        // The decoder would pass over groups, which nobody sends any more, and what stands behind one would not count.
        None => Status::invalid_argument("a message cannot be read: it is cut off, or has groups"),
    };
    let rest = salvaged(U::NAME, bytes).ok_or(problem)?;
    U::decode(&*rest).map_err(|cause| Status::internal(cause.to_string()))
}

/// A field that may come any number of times, or in which there is one that may.
pub(crate) struct Field {
    tag: u32,
    within: &'static [Field],
}

const LIST: &[Field] = &[Field { tag: 1, within: &[] }];
const PAIR: &[Field] = &[Field { tag: 2, within: LIST }];
pub(crate) const INFO: &[Field] = &[Field { tag: 3, within: PAIR }];
const WITH_INFO: &[Field] = &[Field { tag: 1, within: INFO }];
const ITEM: &[Field] = &[Field { tag: 1, within: WITH_INFO }, Field { tag: 2, within: WITH_INFO }];
const BATCH: &[Field] = &[Field { tag: 2, within: INFO }];

/// What is counted of the messages that come in streams. Others that clients send have nothing that repeats.
fn repeated(name: &str) -> &'static [Field] {
    match name {
        "URLItem" => ITEM,
        "DiscoveredBatch" => BATCH,
        _ => &[],
    }
}

/// How many such fields there are, and within them; none if the bytes are no message.
pub(crate) fn count(mut bytes: &[u8], fields: &[Field]) -> Option<usize> {
    let mut parts = 0;
    while !fields.is_empty() && !bytes.is_empty() {
        let (tag, form) = decode_key(&mut bytes).ok()?;
        let inner = content(&mut bytes, form)?;
        if let Some(field) = fields.iter().find(|field| field.tag == tag) {
            parts += 1 + count(inner, field.within)?;
        }
    }
    Some(parts)
}

/// Takes the content of a field away; that of a number does not matter.
pub(crate) fn content<'a>(bytes: &mut &'a [u8], form: WireType) -> Option<&'a [u8]> {
    let len = match form {
        WireType::Varint => decode_varint(bytes).map(|_| 0).ok()?,
        WireType::LengthDelimited => usize::try_from(decode_varint(bytes).ok()?).ok()?,
        WireType::ThirtyTwoBit => 4,
        WireType::SixtyFourBit => 8,
        WireType::StartGroup | WireType::EndGroup => return None,
    };
    let (content, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(content)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::proto::url_item::Item;
    use crate::proto::{
        DiscoveredBatch, DiscoveredUrlItem, GetParams, KnownUrlItem, StringList, UrlInfo, UrlItem,
    };

    fn parts<M: Message + Name>(message: &M) -> Option<usize> {
        count(&message.encode_to_vec(), repeated(M::NAME))
    }

    /// A URL with so many values under each of two names.
    fn with_metadata(values: usize) -> UrlInfo {
        let list = StringList { values: vec!["v".to_owned(); values] };
        let metadata = BTreeMap::from([("a".to_owned(), list.clone()), ("b".to_owned(), list)]);
        UrlInfo { url: "http://a.example/".to_owned(), metadata, ..UrlInfo::default() }
    }

    #[test]
    fn what_repeats_is_counted_however_deep_it_is() {
        let info = Some(with_metadata(3));
        let found = Item::Discovered(DiscoveredUrlItem { info: info.clone() });
        let known = Item::Known(KnownUrlItem { info, refetchable_from_date: 7 });
        for (name, item) in [("found", found), ("known", known)] {
            let item = UrlItem { item: Some(item), id: "id".to_owned(), creation_date: 1 };
            // The kind, the URL, and for each of two names a pair, its list and three values.
            assert_eq!(parts(&item), Some(2 + 2 * (1 + 1 + 3)), "{name}");
        }
        let batch = DiscoveredBatch { id: "id".to_owned(), items: vec![with_metadata(1); 2] };
        assert_eq!(parts(&batch), Some(2 * (1 + 2 * 3)));
        assert_eq!(
            parts(&DiscoveredBatch { id: String::new(), items: vec![UrlInfo::default(); 9] }),
            Some(9)
        );
        assert_eq!(
            parts(&GetParams { max_queues: 9, ..GetParams::default() }),
            Some(0),
            "of others nothing is"
        );
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        let batch = DiscoveredBatch { id: String::new(), items: vec![with_metadata(1)] };
        let bytes = batch.encode_to_vec();
        for end in 1..bytes.len() {
            assert_eq!(count(&bytes[..end], BATCH), None, "{end} bytes");
        }
        assert_eq!(count(&[0xff; 11], BATCH), None);
        assert_eq!(count(&[0x7b, 0x7c], BATCH), None, "a group, which may hide what comes after it");
    }
}
