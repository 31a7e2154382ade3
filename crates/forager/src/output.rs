//! What goes to standard output: JSON Lines for programs, a table for people.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write as _};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::journal::{self, Event, Level};

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table where the output is a terminal, JSON Lines elsewhere
    #[default]
    Auto,
    /// One JSON object a line
    Jsonl,
    /// Columns for people
    Table,
}

/// Writes rows to standard output.
pub(crate) struct Output {
    writer: BufWriter<StdoutLock<'static>>,
    table: Option<Table>,
}

impl Output {
    /// Writes rows with these fields, in this order. A table names a field of a field by its own name.
    pub(crate) fn new(format: Format, columns: &'static [&'static str]) -> Self {
        let stdout = io::stdout().lock();
        let as_table = match format {
            Format::Auto => stdout.is_terminal(),
            Format::Jsonl => false,
            Format::Table => true,
        };
        let table = as_table.then(|| Table { columns, widths: None, waiting: Vec::new() });
        Self { writer: BufWriter::with_capacity(1 << 16, stdout), table }
    }

    /// Whether people are to read it.
    pub(crate) fn is_for_people(&self) -> bool {
        self.table.is_some()
    }

    /// Writes a thing with all its fields: a line for each if people are to read it, one object otherwise.
    pub(crate) fn sheet(&mut self, thing: &impl Serialize) -> anyhow::Result<()> {
        if !self.is_for_people() {
            return self.row(thing);
        }
        sheet(thing)?.iter().try_for_each(|line| self.text(line))
    }

    /// Writes a line for people.
    pub(crate) fn text(&mut self, line: &str) -> anyhow::Result<()> {
        writeln!(self.writer, "{}", harmless(line.trim_end())).context(CANNOT_WRITE)
    }

    /// Writes one row.
    pub(crate) fn row(&mut self, row: &impl Serialize) -> anyhow::Result<()> {
        let written = match &mut self.table {
            None => serde_json::to_writer(&mut self.writer, row)
                .map_err(io::Error::from)
                .and_then(|()| self.writer.write_all(b"\n")),
            Some(table) => table.row(row, &mut self.writer),
        };
        written.context(CANNOT_WRITE)
    }

    /// Shows everything written so far.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        if let Some(table) = &mut self.table {
            table.flush(&mut self.writer).context(CANNOT_WRITE)?;
        }
        self.writer.flush().context(CANNOT_WRITE)
    }
}

/// Writes a text from outside to standard output: as it is, but to a terminal.
pub(crate) fn print(text: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = if stdout.is_terminal() {
        let text = String::from_utf8_lossy(text);
        text.lines().try_for_each(|line| writeln!(stdout, "{}", harmless(line)))
    } else {
        stdout.write_all(text).and_then(|()| stdout.flush())
    };
    written.context(CANNOT_WRITE)
}

const CANNOT_WRITE: &str = "cannot write the output";

/// How many rows a table waits for before it settles the widths of its columns.
const SAMPLE: usize = 500;

struct Table {
    columns: &'static [&'static str],
    /// Known once the first rows are printed; later rows keep to them.
    widths: Option<Vec<usize>>,
    waiting: Vec<Vec<String>>,
}

impl Table {
    fn row(&mut self, row: &impl Serialize, out: &mut impl io::Write) -> io::Result<()> {
        let value = serde_json::to_value(row)?;
        self.waiting.push(self.columns.iter().map(|&column| cell(field(&value, column))).collect());
        if self.waiting.len() >= SAMPLE { self.flush(out) } else { Ok(()) }
    }

    fn flush(&mut self, out: &mut impl io::Write) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.waiting);
        if self.widths.is_none() {
            let titles: Vec<String> = self.columns.iter().map(|&column| title(column).to_owned()).collect();
            let widths = widths(&titles, &rows);
            print_row(out, &titles, &widths)?;
            self.widths = Some(widths);
        }
        for row in &rows {
            print_row(out, row, self.widths.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}

fn widths(titles: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row[column]).chain([&titles[column]]);
        cells.map(|cell| cell.width()).max().unwrap_or_default()
    };
    (0..titles.len()).map(width).collect()
}

fn print_row(out: &mut impl io::Write, cells: &[String], widths: &[usize]) -> io::Result<()> {
    let pad =
        |(cell, &width): (&String, &usize)| cell.clone() + &" ".repeat(width.saturating_sub(cell.width()));
    let padded: Vec<String> = cells.iter().zip(widths).map(pad).collect();
    writeln!(out, "{}", padded.join("  ").trim_end())
}

/// The field that a path such as `progress.queued` leads to.
fn field<'a>(row: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(row, |value, name| value.get(name))
}

fn title(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A thing with all its fields, a line for each.
pub(crate) fn sheet(thing: &impl Serialize) -> anyhow::Result<Vec<String>> {
    let mut fields = Vec::new();
    collect_fields("", &serde_json::to_value(thing)?, &mut fields);
    let width = fields.iter().map(|(name, _)| name.width()).max().unwrap_or_default();
    Ok(fields.into_iter().map(|(name, value)| format!("{name:width$}  {value}")).collect())
}

/// Every field of a thing, those of its fields included, with how it is shown.
fn collect_fields(name: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                collect_fields(&name, value, fields);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for item in items {
                fields.push((name.to_owned(), cell(Some(item))));
            }
        }
        other => fields.push((name.to_owned(), cell(Some(other)))),
    }
}

/// What stands where there is nothing.
const NOTHING: &str = "-";

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => NOTHING.to_owned(),
        Some(Value::Array(items)) if items.is_empty() => NOTHING.to_owned(),
        Some(Value::String(text)) => harmless(text),
        Some(Value::Array(items)) => items.iter().map(|item| cell(Some(item))).collect::<Vec<_>>().join(", "),
        Some(Value::Object(object)) => {
            let fields = object.iter().filter(|(_, value)| !value.is_null());
            fields.map(|(key, value)| format!("{key} {}", cell(Some(value)))).collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}

/// `text` without characters that would steer the terminal or turn the direction of writing: it
/// came from outside.
pub(crate) fn harmless(text: &str) -> String {
    let steers = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Tells the user on standard error how things go, unless only what is wrong is wanted.
pub(crate) fn tell(message: fmt::Arguments<'_>) {
    journal::tell(Level::Info, Event::Message, &message.to_string(), &json!({}));
}

/// Tells the user on standard error what is wrong.
pub(crate) fn complain(message: fmt::Arguments<'_>) {
    journal::tell(Level::Warn, Event::Message, &message.to_string(), &json!({}));
}
