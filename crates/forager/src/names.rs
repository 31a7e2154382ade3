//! Names of fields: in camelCase on the command line, with underscores in the configuration.

use serde_json::Value;

/// The same thing with names in camelCase.
pub(crate) fn in_camel_case(thing: Value) -> Value {
    renamed(thing, &|name| {
        let mut parts = name.split('_');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |name, part| name + &capitalised(part))
    })
}

/// The same thing with names as in the configuration.
pub(crate) fn in_snake_case(thing: Value) -> Value {
    renamed(thing, &|name| {
        let lower =
            |c: char| if c.is_ascii_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.into() };
        name.chars().map(lower).collect()
    })
}

fn renamed(thing: Value, rename: &impl Fn(&str) -> String) -> Value {
    match thing {
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(name, value)| (rename(&name), renamed(value, rename))).collect(),
        ),
        Value::Array(items) => items.into_iter().map(|item| renamed(item, rename)).collect(),
        other => other,
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_go_there_and_back() {
        let written =
            json!({"max_url_length": 8192, "traps": {"max_segments": 32}, "include": ["a_b"], "id": "x_y"});
        let shown =
            json!({"maxUrlLength": 8192, "traps": {"maxSegments": 32}, "include": ["a_b"], "id": "x_y"});
        assert_eq!(in_camel_case(written.clone()), shown);
        assert_eq!(in_snake_case(shown), written);
    }
}
