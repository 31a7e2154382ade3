//! The schema, for who sets it up.

use std::sync::Arc;

use super::address::PostgresOptions;
use super::migrate::{Applied, Migration};
use super::shared::Shared;
use crate::error::Result;

/// The schema of a database, for who sets it up.
#[derive(Debug)]
pub struct PostgresSchema {
    shared: Arc<Shared>,
}

impl PostgresSchema {
    /// Connects to a database, whatever there is in it.
    pub fn connect(url: &str, options: PostgresOptions) -> Result<Self> {
        Ok(Self { shared: Arc::new(Shared::new(url, options)?) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.options.schema
    }

    /// A connection for who looks at the database beside the store.
    pub async fn connection(&self) -> Result<tokio_postgres::Client> {
        let (client, connection) = self.shared.connect().await?;
        // Ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }

    /// The version that this program needs.
    pub fn newest(&self) -> i32 {
        self.shared.options.newest()
    }

    /// All steps that this program knows, in order.
    pub fn steps(&self) -> &'static [Migration] {
        self.shared.options.steps
    }

    /// The steps that it has taken.
    pub async fn applied(&self) -> Result<Vec<Applied>> {
        self.shared.applied().await
    }

    /// Whether it is there, with something in it or not.
    pub async fn exists(&self) -> Result<bool> {
        self.shared.has_schema().await
    }

    /// Brings it to a version; returns the steps that were taken. With the last step back it goes itself, if it was made by
    /// this and nobody has put anything else into it.
    pub async fn migrate(&self, target: i32) -> Result<Vec<Migration>> {
        let mut taken = Vec::new();
        self.migrate_into(target, &mut taken).await?;
        Ok(taken)
    }

    /// The same; each step that was taken is added to `taken`, also if a later one fails.
    pub async fn migrate_into(&self, target: i32, taken: &mut Vec<Migration>) -> Result<()> {
        self.shared.migrate(target, taken).await
    }
}
