//! The rows that the store has made of its URLs, written once more by a bare statement.

use std::time::Instant;

use anyhow::bail;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};
use tokio_postgres::{Client, Column as PgColumn, Row};

use super::figures::Calls;
use super::postgres::Scratch;
use super::references::BATCH;
use super::workload::Workload;

/// Inserts the entries of the store into a table of the same columns that has only the key by which an entry is found: what it
/// costs at least to have these rows. They are sent as the store sends them, one in ten of them again.
pub(super) async fn insert(scratch: &Scratch) -> anyhow::Result<Calls> {
    let client = scratch.connection().await?;
    let entries = format!("{}.entries", scratch.schema("store"));
    let table = format!("CREATE TABLE same (LIKE {entries}); CREATE UNIQUE INDEX ON same (queue, key)");
    client.batch_execute(&table).await?;
    let (count, columns) = read(&client, &entries).await?;
    let insert = client.prepare(&statement(&columns)).await?;
    let mut calls = Calls::default();
    // How many hosts there were shows in the rows.
    for batch in Workload::new(count, 1).batches_from(0, BATCH) {
        let batch: Vec<usize> = batch.into_iter().map(usize::try_from).collect::<Result<_, _>>()?;
        let values: Vec<Value> = columns.iter().map(|column| (column.pick)(&batch)).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as _).collect();
        let started = Instant::now();
        client.execute(&insert, &values).await?;
        calls.add(started.elapsed(), batch.len());
    }
    Ok(calls)
}

/// What is sent for a column.
type Value = Box<dyn ToSql + Sync + Send>;

/// Takes the values of some rows.
type Pick = Box<dyn Fn(&[usize]) -> Value + Send>;

/// A column of all rows.
struct Column {
    /// As which type its values are sent.
    sent_as: &'static str,
    /// What the server makes of one.
    cast: &'static str,
    pick: Pick,
}

impl Column {
    fn of(kind: &Type, rows: &[Row], place: usize) -> anyhow::Result<Self> {
        let (sent_as, cast, pick) = match *kind {
            Type::BOOL => ("bool[]", "", picker::<bool>(rows, place)?),
            Type::INT2 => ("int2[]", "", picker::<i16>(rows, place)?),
            Type::INT4 => ("int4[]", "", picker::<i32>(rows, place)?),
            Type::INT8 => ("int8[]", "", picker::<i64>(rows, place)?),
            Type::BYTEA => ("bytea[]", "", picker::<Vec<u8>>(rows, place)?),
            Type::TEXT => ("text[]", "", picker::<String>(rows, place)?),
            // Read and sent as text, as the store does.
            Type::JSON => ("text[]", "::json", picker::<String>(rows, place)?),
            ref other => bail!("the table of entries has a column of type {other}"),
        };
        Ok(Self { sent_as, cast, pick })
    }
}

fn picker<T: FromSqlOwned + ToSql + Sync + Send + Clone + 'static>(
    rows: &[Row],
    place: usize,
) -> anyhow::Result<Pick> {
    let all: Vec<Option<T>> = rows.iter().map(|row| row.try_get(place)).collect::<Result<_, _>>()?;
    Ok(Box::new(move |wanted| {
        let picked: Vec<Option<T>> = wanted.iter().map(|row| all.get(*row).cloned().flatten()).collect();
        Box::new(picked)
    }))
}

/// How many entries there are, and all of them, column by column, in the order in which they were found.
async fn read(client: &Client, entries: &str) -> anyhow::Result<(u64, Vec<Column>)> {
    let all = client.prepare(&format!("SELECT * FROM {entries}")).await?;
    let as_text = |column: &PgColumn| {
        let cast = if *column.type_() == Type::JSON { "::text" } else { "" };
        format!("{}{cast}", column.name())
    };
    let names: Vec<String> = all.columns().iter().map(as_text).collect();
    let rows = client.query(&format!("SELECT {} FROM {entries} ORDER BY id", names.join(", ")), &[]).await?;
    let columns = all.columns().iter().enumerate();
    let columns = columns.map(|(place, column)| Column::of(column.type_(), &rows, place));
    Ok((rows.len() as u64, columns.collect::<anyhow::Result<_>>()?))
}

fn statement(columns: &[Column]) -> String {
    let list = |text: &dyn Fn(usize, &Column) -> String| {
        let texts: Vec<String> = (1..).zip(columns).map(|(number, column)| text(number, column)).collect();
        texts.join(", ")
    };
    let taken = list(&|number, column| format!("c{number}{}", column.cast));
    let sent = list(&|number, column| format!("${number}::{}", column.sent_as));
    let named = list(&|number, _| format!("c{number}"));
    format!(
        "INSERT INTO same SELECT {taken} FROM unnest({sent}) w ({named}) ON CONFLICT (queue, key) DO NOTHING"
    )
}
