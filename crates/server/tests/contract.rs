//! The contract as clients may ask for it: names, numbers and types are those of URLFrontier 2.6.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;
use futures_util::stream;
use prost::Message as _;
use tonic::transport::Channel;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

/// As much of a description as is looked at.
#[derive(prost::Message)]
struct File {
    #[prost(message, repeated, tag = "4")]
    messages: Vec<Described>,
}

#[derive(prost::Message)]
struct Described {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    fields: Vec<Field>,
}

#[derive(prost::Message)]
struct Field {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "3")]
    number: i32,
    #[prost(int32, tag = "4")]
    label: i32,
    #[prost(int32, tag = "5")]
    kind: i32,
    #[prost(string, tag = "6")]
    of: String,
    /// The name in dumps of the Java tools, which other servers read.
    #[prost(string, tag = "10")]
    json: String,
    #[prost(bool, tag = "17")]
    is_optional: bool,
}

impl Field {
    fn told(&self) -> String {
        const REPEATED: i32 = 3;
        let kind = match self.kind {
            4 => "uint64",
            8 => "bool",
            9 => "string",
            13 => "uint32",
            11 | 14 => self.of.rsplit('.').next().unwrap(),
            other => panic!("{} is of kind {other}", self.name),
        };
        let times = if self.label == REPEATED { "*" } else { "" };
        let maybe = if self.is_optional { "?" } else { "" };
        format!("{}:{kind}{times}{maybe} {}", self.number, self.json)
    }
}

/// The fields of each message: number, type (`*` any number of times, `?` with a presence of its own) and name in JSON.
const CONTRACT: [(&str, &str); 28] = [
    ("Active", "1:bool state, 2:bool local"),
    ("AckMessage", "1:string ID, 2:Status status"),
    ("AnyCrawlID", ""),
    ("BatchAck", "1:string ID, 2:Status* statuses"),
    ("BlockQueueParams", "1:string key, 2:uint64 time, 3:string crawlID, 4:bool local"),
    ("Boolean", "1:bool state"),
    ("CountUrlParams", "1:string key, 2:string crawlID, 3:string? filter, 4:bool? ignoreCase, 5:bool? local"),
    ("CrawlLimitParams", "1:string key, 2:uint32 limit, 3:string crawlID, 4:bool local"),
    ("DeleteCrawlMessage", "1:string value, 2:bool local"),
    ("DiscoveredBatch", "1:string ID, 2:URLInfo* items"),
    ("DiscoveredURLItem", "1:URLInfo info"),
    ("Empty", ""),
    (
        "GetParams",
        "1:uint32 maxUrlsPerQueue, 2:uint32 maxQueues, 3:string key, 4:uint32 delayRequestable, \
         5:AnyCrawlID anyCrawlID, 6:string crawlID",
    ),
    ("KnownURLItem", "1:URLInfo info, 2:uint64 refetchableFromDate"),
    (
        "ListUrlParams",
        "1:uint32 start, 2:uint32 size, 3:string key, 4:string crawlID, 5:bool local, 6:string? filter, \
         7:bool? ignoreCase",
    ),
    ("Local", "1:bool local"),
    ("LogLevelParams", "1:string package, 2:Level level, 3:bool local"),
    ("Long", "1:uint64 value"),
    ("Pagination", "1:uint32 start, 2:uint32 size, 3:bool includeInactive, 4:string crawlID, 5:bool local"),
    ("PurgeUrlParams", "1:string key, 2:string crawlID, 3:uint32 days"),
    ("QueueDelayParams", "1:string key, 2:uint32 delayRequestable, 3:string crawlID, 4:bool local"),
    ("QueueList", "1:string* values, 2:uint64 total, 3:uint32 start, 4:uint32 size, 5:string crawlID"),
    ("QueueWithinCrawlParams", "1:string key, 2:string crawlID, 3:bool local"),
    (
        "Stats",
        "1:uint64 size, 2:uint32 inProcess, 3:CountsEntry* counts, 4:uint64 numberOfQueues, 5:string crawlID",
    ),
    ("StringList", "1:string* values"),
    ("URLInfo", "1:string url, 2:string key, 3:MetadataEntry* metadata, 4:string crawlID"),
    ("URLItem", "1:DiscoveredURLItem discovered, 2:KnownURLItem known, 3:string ID, 4:uint64 creationDate"),
    ("URLStatusRequest", "1:string url, 2:string key, 3:string crawlID"),
];

async fn described(world: &World) -> File {
    let channel = Channel::from_shared(world.address.clone()).unwrap().connect().await.unwrap();
    let symbol = MessageRequest::FileContainingSymbol("urlfrontier.URLFrontier".into());
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(symbol) };
    let mut client = ServerReflectionClient::new(channel);
    let mut answers = client.server_reflection_info(stream::iter([request])).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::FileDescriptorResponse(files)) = answer else { panic!("{answer:?}") };
    File::decode(&*files.file_descriptor_proto[0]).unwrap()
}

#[tokio::test]
async fn every_field_has_the_number_the_type_and_the_name_that_clients_know() {
    let mut messages = described(&World::in_memory().await).await.messages;
    messages.sort_by(|one, other| one.name.cmp(&other.name));
    let told = |message: &Described| {
        let mut fields: Vec<&Field> = message.fields.iter().collect();
        fields.sort_by_key(|field| field.number);
        let fields: Vec<String> = fields.into_iter().map(Field::told).collect();
        (message.name.clone(), fields.join(", "))
    };
    let told: Vec<(String, String)> = messages.iter().map(told).collect();
    let mut want = CONTRACT.map(|(name, fields)| (name.to_owned(), fields.to_owned()));
    want.sort();
    assert_eq!(told, want);
}
