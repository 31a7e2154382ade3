//! Which keys there are, and the nearest one to a slip.

use forager_core::scope::{Collection, Profile, Seed};
use forager_core::sentinel::Risk;
use forager_core::sentinel::classify::{NodeType, Row};
use serde_json::Value;

use super::Config;

/// A configuration with every key: one element in each list of tables. Serialised, it is the
/// schema that unknown keys are told by, so that keys are listed nowhere else.
pub(crate) fn example() -> Value {
    let mut config = Config::default();
    config.classify.rows.push(Row {
        pattern: String::new(),
        node: NodeType::Leaf,
        role: None,
        risk: Risk::Medium,
    });
    config.collections.push(Collection { id: String::new(), enabled: true });
    config.profiles.push(Profile::new("", ""));
    config.seeds.push(Seed { url: String::new(), profiles: Vec::new(), enabled: true });
    serde_json::to_value(config).unwrap_or_default()
}

/// The key below `parent`, as it is written in messages.
pub(super) fn below(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

/// The key of `table` that is nearest to `wrong`, or all of them if none is near.
pub(super) fn suggestion(table: &Value, wrong: &str) -> String {
    let keys = || table.as_object().into_iter().flat_map(|table| table.keys());
    let nearest = keys().map(|key| (strsim::damerau_levenshtein(key, wrong), key)).min();
    match nearest {
        Some((distance, key)) if distance <= key.len().max(wrong.len()) / 2 => {
            format!("did you mean {key:?}?")
        }
        _ => format!("the keys here are {}", keys().map(String::as_str).collect::<Vec<_>>().join(", ")),
    }
}

/// What is shown of a key that has no value.
pub(super) const NOT_SET: &str = "(not set)";

/// Calls `visit` for each value of a configuration, with its key and how it is written.
pub(super) fn for_each_value(tree: &Value, visit: &mut impl FnMut(&str, &str)) {
    walk("", tree, visit);
}

fn walk(key: &str, value: &Value, visit: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(table) => table.iter().for_each(|(name, value)| walk(&below(key, name), value, visit)),
        Value::Array(items) if items.first().is_some_and(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                walk(&format!("{key}[{index}]"), item, visit);
            }
        }
        Value::Null => visit(key, NOT_SET),
        // Texts, numbers, truth values and lists of them are written alike in JSON and TOML.
        other => visit(key, &other.to_string()),
    }
}
