//! Messages that cannot be read: they are skipped, and their streams go on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::marker::PhantomData;

use common::*;
use forager_server::limits::{MAX_MESSAGE_BYTES, MAX_MESSAGE_PARTS};
use forager_server::proto::ack_message::Status::{Ok, Skipped};
use forager_server::proto::{
    AckMessage, BatchAck, DiscoveredBatch, Empty, Local, StringList, UrlInfo, UrlItem,
};
use futures_util::stream;
use prost::Message;
use prost::bytes::{Buf as _, BufMut as _};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

on_every_store![
    an_item_that_cannot_be_read_is_skipped_and_the_stream_goes_on,
    a_batch_is_skipped_as_far_as_it_cannot_be_read,
];

/// Sends bytes as they are, and reads what comes back.
struct Raw<U>(PhantomData<U>);

impl<U: Message + Default + 'static> Codec for Raw<U> {
    type Encode = Vec<u8>;
    type Decode = U;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(PhantomData)
    }

    fn decoder(&mut self) -> Self {
        Self(PhantomData)
    }
}

impl<U> Encoder for Raw<U> {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, message: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.put_slice(&bytes);
        Result::Ok(())
    }
}

impl<U: Message + Default> Decoder for Raw<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let read = U::decode(message.chunk()).unwrap();
        message.advance(message.remaining());
        Result::Ok(Some(read))
    }
}

/// A connection on which anything can be sent.
async fn raw(world: &World) -> Grpc<Channel> {
    let channel = Channel::from_shared(world.address.clone()).unwrap().connect().await.unwrap();
    let mut raw = Grpc::new(channel);
    raw.ready().await.unwrap();
    raw
}

/// What a stream answers to bytes, until it ends, and how.
async fn answers<U: Message + Default + 'static>(
    world: &World,
    call: &'static str,
    messages: Vec<Vec<u8>>,
) -> (Vec<U>, Result<(), Code>) {
    let request = Request::new(stream::iter(messages));
    let path = call.parse().unwrap();
    let mut answers = raw(world).await.streaming(request, path, Raw(PhantomData)).await.unwrap().into_inner();
    let mut told = Vec::new();
    loop {
        match answers.message().await {
            Result::Ok(Some(message)) => told.push(message),
            Result::Ok(None) => return (told, Result::Ok(())),
            Err(status) => return (told, Err(status.code())),
        }
    }
}

const PUT_URLS: &str = "/urlfrontier.URLFrontier/PutURLs";
const PUT_DISCOVERED: &str = "/urlfrontier.URLFrontier/PutDiscovered";
const LIST_CRAWLS: &str = "/urlfrontier.URLFrontier/ListCrawls";

/// A field with a length.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag << 3 | 2];
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    [bytes, content.to_vec()].concat()
}

/// A URL that is no text.
fn no_text() -> Vec<u8> {
    field(1, b"http://\xff\xfe/")
}

async fn an_item_that_cannot_be_read_is_skipped_and_the_stream_goes_on(mut world: World) {
    let cases: [(&str, Vec<u8>, &str); 7] = [
        ("noise", vec![0xff; 30], ""),
        ("a URL that is no text", field(1, &field(1, &no_text())), ""),
        ("the same under a name", [field(1, &field(1, &no_text())), field(3, b"mine")].concat(), "mine"),
        (
            "a key that is no text",
            field(2, &field(1, &[field(1, b"http://x.example/"), field(2, b"\xff")].concat())),
            "http://x.example/",
        ),
        ("cut off", [field(3, b"cut"), vec![0x0a, 0x7f, 0x0a]].concat(), "cut"),
        ("a number where a text should be", vec![0x18, 0x01], ""),
        ("too many parts", [field(3, b"many"), too_many_parts()].concat(), "many"),
    ];
    let good = |name: &str| found(info(&format!("http://a.example/{name}"))).encode_to_vec();
    let mut messages = vec![good("first")];
    let mut want = vec![("http://a.example/first".to_owned(), Ok)];
    for (name, bytes, id) in cases {
        messages.extend([bytes, good(name)]);
        want.extend([(id.to_owned(), Skipped), (format!("http://a.example/{name}"), Ok)]);
    }
    let (told, end) = answers::<AckMessage>(&world, PUT_URLS, messages).await;
    let told: Vec<_> = told.into_iter().map(|ack| (ack.id.clone(), ack.status())).collect();
    assert_eq!((told, end), (want, Result::Ok(())));
    assert_eq!(world.stats("", "").await.size, 8);
}

/// An item with more values of metadata than may be.
fn too_many_parts() -> Vec<u8> {
    let list = StringList { values: vec![String::new(); MAX_MESSAGE_PARTS] };
    let info = UrlInfo { metadata: [("m".to_owned(), list)].into(), ..UrlInfo::default() };
    found(info).encode_to_vec()
}

async fn a_batch_is_skipped_as_far_as_it_cannot_be_read(mut world: World) {
    let good = |name: &str| field(2, &info(&format!("http://a.example/{name}")).encode_to_vec());
    let cases = [
        ("as it should be", vec![field(1, b"1"), good("a")], ("1", vec![Ok])),
        (
            "one of three",
            vec![good("b"), field(2, &no_text()), field(1, b"2"), good("c")],
            ("2", vec![Ok, Skipped, Ok]),
        ),
        ("cut off", vec![field(1, b"3"), good("d"), vec![0x12, 0x7f]], ("3", vec![Skipped, Skipped])),
        ("noise", vec![vec![0xff; 9]], ("", vec![Skipped])),
        ("as it should be again", vec![field(1, b"5"), good("e")], ("5", vec![Ok])),
    ];
    let messages = cases.iter().map(|(_, parts, _)| parts.concat()).collect();
    let (told, end) = answers::<BatchAck>(&world, PUT_DISCOVERED, messages).await;
    assert_eq!(end, Result::Ok(()));
    assert_eq!(told.len(), cases.len());
    for ((name, _, (id, statuses)), ack) in cases.into_iter().zip(told) {
        assert_eq!((ack.id.as_str(), ack.statuses().collect::<Vec<_>>()), (id, statuses), "{name}");
    }
    assert_eq!(world.stats("", "").await.size, 4);
}

#[tokio::test]
async fn nothing_is_made_for_what_cannot_be_read() {
    let mut world = World::in_memory().await;
    let (told, end) = answers::<AckMessage>(&world, PUT_URLS, vec![vec![0xff]]).await;
    assert_eq!((told.len(), end), (1, Result::Ok(())));
    assert!(world.frontier.catalog().await.unwrap().rows().collections.is_empty());
    assert!(world.client.list_nodes(Empty {}).await.is_ok());
}

/// What is in the frame does not fit what is kept for a message: there is nothing to go on from.
#[tokio::test]
async fn what_is_beyond_the_limits_ends_its_stream() {
    let world = World::in_memory().await;
    let cases: [(&str, Vec<u8>); 2] = [
        ("too large", field(1, &vec![b'x'; MAX_MESSAGE_BYTES])),
        (
            "more items than are made",
            DiscoveredBatch { id: String::new(), items: vec![UrlInfo::default(); MAX_MESSAGE_PARTS + 1] }
                .encode_to_vec(),
        ),
    ];
    for (name, bytes) in cases {
        let good = DiscoveredBatch { id: "good".into(), ..DiscoveredBatch::default() }.encode_to_vec();
        let (told, end) = answers::<BatchAck>(&world, PUT_DISCOVERED, vec![good, bytes]).await;
        assert_eq!((told.len(), end), (1, Err(Code::ResourceExhausted)), "{name}");
    }
}

#[tokio::test]
async fn a_call_of_one_message_that_cannot_be_read_is_invalid() {
    let world = World::in_memory().await;
    for (name, bytes) in [("noise", vec![0xff; 9]), ("a text for a number", field(1, b"yes"))] {
        let codec = Raw::<StringList>(PhantomData);
        let answer = raw(&world).await.unary(Request::new(bytes), LIST_CRAWLS.parse().unwrap(), codec).await;
        assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument, "{name}");
    }
    let codec = Raw::<StringList>(PhantomData);
    let good = Request::new(Local::default().encode_to_vec());
    raw(&world).await.unary(good, LIST_CRAWLS.parse().unwrap(), codec).await.unwrap();
}

#[tokio::test]
async fn names_are_bounded() {
    let mut world = World::in_memory().await;
    let named = |len: usize, url: &str| UrlItem { id: "i".repeat(len), ..found(info(url)) };
    let items = vec![named((128 << 10) + 1, "http://a.example/"), named(128 << 10, "http://b.example/")];
    let acks: Vec<_> = world.acks(items).await.into_iter().map(|(id, ack)| (id.len(), ack)).collect();
    assert_eq!(acks, [(0, Skipped), (128 << 10, Ok)], "and its stream goes on");
    let batch = DiscoveredBatch { id: "i".repeat((128 << 10) + 1), items: vec![info("http://c.example/")] };
    assert_eq!(world.batches(vec![batch]).await, [(String::new(), vec![Skipped])]);
    assert_eq!(world.stats("", "").await.size, 1);
}
