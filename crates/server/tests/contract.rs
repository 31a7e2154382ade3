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
    #[prost(message, repeated, tag = "6")]
    services: Vec<Offered>,
}

#[derive(prost::Message)]
struct Offered {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    calls: Vec<Call>,
}

#[derive(prost::Message)]
struct Call {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    takes: String,
    #[prost(string, tag = "3")]
    gives: String,
    #[prost(bool, tag = "5")]
    takes_many: bool,
    #[prost(bool, tag = "6")]
    gives_many: bool,
}

impl Call {
    fn told(&self) -> String {
        let of = |name: &str, is_many| format!("{}{}", last(name), if is_many { "*" } else { "" });
        format!("{} -> {}", of(&self.takes, self.takes_many), of(&self.gives, self.gives_many))
    }
}

/// The last part of a name such as `.urlfrontier.Empty`.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap()
}

#[derive(prost::Message)]
struct Described {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    fields: Vec<Field>,
    #[prost(message, repeated, tag = "4")]
    kinds: Vec<Kind>,
    #[prost(message, repeated, tag = "8")]
    choices: Vec<Named>,
}

/// An enumeration.
#[derive(prost::Message)]
struct Kind {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    values: Vec<Named>,
}

/// Something with a name, and a number where it is one of several values.
#[derive(prost::Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "2")]
    number: i32,
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
    /// Which of the choices of its message it belongs to.
    #[prost(uint32, optional, tag = "9")]
    choice: Option<u32>,
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
            11 | 14 => last(&self.of),
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

/// The values of each enumeration.
const KINDS: [(&str, &str); 2] = [
    ("AckMessage.Status", "OK=0, SKIPPED=1, FAIL=2"),
    ("LogLevelParams.Level", "TRACE=0, DEBUG=1, INFO=2, WARN=3, ERROR=4"),
];

#[tokio::test]
async fn every_value_has_the_number_that_clients_know() {
    let messages = described(&World::in_memory().await).await.messages;
    let kinds = messages.iter().flat_map(|message| {
        let of = |kind: &Kind| {
            let told = |value: &Named| format!("{}={}", value.name, value.number);
            let values: Vec<String> = kind.values.iter().map(told).collect();
            (format!("{}.{}", message.name, kind.name), values.join(", "))
        };
        message.kinds.iter().map(of).collect::<Vec<_>>()
    });
    let mut kinds: Vec<(String, String)> = kinds.collect();
    kinds.sort();
    assert_eq!(kinds, KINDS.map(|(name, values)| (name.to_owned(), values.to_owned())));
}

/// The fields of which one is there at most.
const CHOICES: [(&str, &str); 2] =
    [("GetParams.item", "anyCrawlID, crawlID"), ("URLItem.item", "discovered, known")];

#[tokio::test]
async fn of_a_choice_there_is_one_field() {
    let messages = described(&World::in_memory().await).await.messages;
    let mut choices = Vec::new();
    for message in &messages {
        for (number, choice) in (0..).zip(&message.choices) {
            // Fields that may be missing are each a choice of their own to the library.
            let is_its = |field: &&Field| field.choice == Some(number) && !field.is_optional;
            let fields: Vec<&str> =
                message.fields.iter().filter(is_its).map(|field| field.json.as_str()).collect();
            if !fields.is_empty() {
                choices.push((format!("{}.{}", message.name, choice.name), fields.join(", ")));
            }
        }
    }
    choices.sort();
    assert_eq!(choices, CHOICES.map(|(name, fields)| (name.to_owned(), fields.to_owned())));
}

/// Every call: what it takes and gives (`*` for a stream).
const CALLS: [(&str, &str); 19] = [
    ("BlockQueueUntil", "BlockQueueParams -> Empty"),
    ("CountURLs", "CountUrlParams -> Long"),
    ("DeleteCrawl", "DeleteCrawlMessage -> Long"),
    ("DeleteQueue", "QueueWithinCrawlParams -> Long"),
    ("GetActive", "Local -> Boolean"),
    ("GetStats", "QueueWithinCrawlParams -> Stats"),
    ("GetURLStatus", "URLStatusRequest -> URLItem"),
    ("GetURLs", "GetParams -> URLInfo*"),
    ("ListCrawls", "Local -> StringList"),
    ("ListNodes", "Empty -> StringList"),
    ("ListQueues", "Pagination -> QueueList"),
    ("ListURLs", "ListUrlParams -> URLItem*"),
    ("PurgeURLs", "PurgeUrlParams -> Long"),
    ("PutDiscovered", "DiscoveredBatch* -> BatchAck*"),
    ("PutURLs", "URLItem* -> AckMessage*"),
    ("SetActive", "Active -> Empty"),
    ("SetCrawlLimit", "CrawlLimitParams -> Empty"),
    ("SetDelay", "QueueDelayParams -> Empty"),
    ("SetLogLevel", "LogLevelParams -> Empty"),
];

#[tokio::test]
async fn every_call_takes_and_gives_what_clients_know() {
    let mut services = described(&World::in_memory().await).await.services;
    let service = services.pop().unwrap();
    assert_eq!((service.name.as_str(), services.len()), ("URLFrontier", 0));
    let mut calls: Vec<(String, String)> =
        service.calls.iter().map(|call| (call.name.clone(), call.told())).collect();
    calls.sort();
    assert_eq!(calls, CALLS.map(|(name, told)| (name.to_owned(), told.to_owned())));
}
