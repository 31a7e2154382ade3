//! One record a line: reading it, and saying what is wrong with it.

use std::fmt;

use forager_core::read::shortened;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::Outcome;
use crate::flat;
use crate::input::{Input, Line, MAX_LINE_BYTES, Place};
use crate::output::{self, Output};
use crate::words::in_words;

/// How much of a line is shown when it cannot be read at all.
const SHOWN_CHARS: usize = 60;

/// How much is told about a line: the value at fault may be as long as the line.
const TOLD_CHARS: usize = 300;

/// What is wrong with a line: the field, where one is at fault, and what about its value.
#[derive(Debug)]
pub(crate) struct BadLine {
    field: String,
    problem: String,
}

impl BadLine {
    /// A problem with one field.
    pub(crate) fn field(field: &str, problem: impl fmt::Display) -> Self {
        Self { field: field.to_owned(), problem: problem.to_string() }
    }

    /// A problem with the line as a whole.
    pub(crate) fn whole(problem: impl fmt::Display) -> Self {
        Self::field("", problem)
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&shortened(&self.problem, TOLD_CHARS))
    }
}

/// Why a line could not be handled.
#[derive(Debug)]
pub(crate) enum LineError {
    /// The line is bad; the others go on.
    Bad(BadLine),
    /// The run is over, for example because nobody reads the output any more.
    Fatal(anyhow::Error),
}

impl From<BadLine> for LineError {
    fn from(bad: BadLine) -> Self {
        Self::Bad(bad)
    }
}

impl From<anyhow::Error> for LineError {
    fn from(error: anyhow::Error) -> Self {
        Self::Fatal(error)
    }
}

/// The text of a line.
pub(crate) fn text<'a>(line: &Line<'a>) -> Result<&'a str, BadLine> {
    if line.is_too_long {
        return Err(BadLine::whole(format_args!("longer than {MAX_LINE_BYTES} bytes")));
    }
    line.text.ok_or_else(|| BadLine::whole("not UTF-8"))
}

/// Reads a JSON record from a line.
pub(crate) fn parse<'a, T: Deserialize<'a>>(line: &Line<'a>) -> Result<T, BadLine> {
    let text = text(line)?;
    // Serde would take a list for a record, too.
    if !text.starts_with('{') {
        return Err(BadLine::whole(format_args!("not a JSON object: {}", shortened(text, SHOWN_CHARS))));
    }
    match flat::read(text) {
        Some(record) => Ok(record),
        None => serde_json::from_str(text).map_err(|_| explain::<T>(text)),
    }
}

/// As [`parse`], for a record some of whose fields may be `null`, which is the same as missing.
pub(crate) fn parse_with_nulls<T: DeserializeOwned>(line: &Line<'_>) -> Result<T, BadLine> {
    parse(line).or_else(|problem| {
        let fields: Map<String, Value> = parse(line)?;
        parse_part(Value::Object(fields), "").map_err(|_| problem)
    })
}

/// Reads a record that is part of another, which has it as `name`. A `null` is the same as missing.
pub(crate) fn parse_part<T: DeserializeOwned>(part: Value, name: &str) -> Result<T, BadLine> {
    let Value::Object(mut fields) = part else {
        return Err(BadLine::field(name, format_args!("not a JSON object: {}", shown(&part))));
    };
    fields.retain(|_, value| !value.is_null());
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let field = field_name(&error.path().to_string());
        let dot = if field.is_empty() || name.is_empty() { "" } else { "." };
        BadLine { field: format!("{name}{dot}{field}"), problem: message(error.inner()) }
    })
}

fn shown(value: &Value) -> String {
    shortened(&value.to_string(), SHOWN_CHARS).into_owned()
}

/// Reads the record once more, slowly, to find out which field is at fault.
#[cold]
fn explain<'a, T: Deserialize<'a>>(text: &'a str) -> BadLine {
    let mut reader = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
        return BadLine::whole(format_args!(
            "something follows the JSON object in {}",
            shortened(text, SHOWN_CHARS)
        ));
    };
    let field = field_name(&error.path().to_string());
    let cause = error.into_inner();
    if cause.is_data() {
        return BadLine { field, problem: message(&cause) };
    }
    let (problem, column) = (message(&cause), cause.column());
    let problem = format!("not JSON: {problem} at column {column} of {}", shortened(text, SHOWN_CHARS));
    BadLine { field, problem }
}

fn field_name(path: &str) -> String {
    if matches!(path, "." | "?") { String::new() } else { path.to_owned() }
}

/// The message in plain words, and without the position: a record is one line long.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    in_words(text.strip_suffix(&position).unwrap_or(&text))
}

/// Reports a bad line on standard error.
pub(crate) fn report(place: &Place, problem: &BadLine) {
    output::complain(format_args!("{place}: {problem}"));
}

/// Calls `handle` for each line, and shows what is printed as soon as the input pauses. A line
/// that `handle` refuses is reported, and the others go on.
pub(crate) fn for_each(
    mut input: Input,
    output: &mut Output,
    mut handle: impl FnMut(&Line<'_>, &mut Output) -> Result<(), LineError>,
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Complete;
    let mut buffer = Vec::new();
    while let Some(chunk) = input.next_chunk(buffer)? {
        for line in chunk.lines() {
            match handle(&line, output) {
                Ok(()) => {}
                Err(LineError::Fatal(error)) => return Err(error),
                Err(LineError::Bad(problem)) => {
                    report(&line.place(), &problem);
                    outcome = Outcome::SomeBad;
                }
            }
        }
        output.flush()?;
        buffer = chunk.recycle();
    }
    Ok(outcome)
}
