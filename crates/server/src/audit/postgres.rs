//! Completions in a table of PostgreSQL, with the columns `work_id`, `digest`, `receipt` and `completed_at` of any types.
//!
//! They are read through a cursor, so many at a time, in a transaction that only reads and sees one moment.

use std::collections::VecDeque;

use postgres::{Client, Config, NoTls, Row};

use super::Trouble;
use super::completions::Completion;

/// Rows that are fetched at once.
const FETCHED: usize = 5000;

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    config: Config,
    table: String,
}

impl Table {
    /// Reads `URL#table` or `URL#schema.table`; the URL may also be of the form `host=… user=… dbname=…`.
    pub fn parse(text: &str) -> Result<Table, String> {
        let (url, table) = text
            .rsplit_once('#')
            .filter(|(_, table)| !table.is_empty())
            .ok_or("postgres:URL wants #table behind it")?;
        // What the parser says names no part of the URL, which may hold a password.
        let config = url.parse::<Config>().map_err(|error| format!("the URL of postgres: {error}"))?;
        Ok(Table { config, table: table.into() })
    }

    /// As it may be shown: without user and password.
    pub fn shown(&self) -> String {
        format!("postgres:{}#{}", self.config.get_dbname().unwrap_or_default(), self.table)
    }

    fn query(&self) -> String {
        let quoted = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
        let table = self.table.split('.').map(quoted).collect::<Vec<_>>().join(".");
        format!("SELECT work_id::text, digest::text, receipt::text, completed_at::text FROM {table}")
    }

    /// Begins to read.
    pub fn open(&self) -> Result<Rows, Trouble> {
        let mut client = self.config.connect(NoTls).map_err(|error| trouble(&error))?;
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; DECLARE completions NO SCROLL CURSOR FOR {}",
            self.query()
        );
        client.batch_execute(&begin).map_err(|error| trouble(&error))?;
        Ok(Rows { client, fetched: VecDeque::new(), is_over: false })
    }
}

fn trouble(error: &postgres::Error) -> Trouble {
    let said = error.as_db_error().map_or_else(
        || std::error::Error::source(error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        |said| said.message().to_owned(),
    );
    Trouble(format!("PostgreSQL: {said}"))
}

/// Rows as they come.
pub struct Rows {
    client: Client,
    fetched: VecDeque<Row>,
    is_over: bool,
}

impl Rows {
    fn fetch(&mut self) -> Result<(), Trouble> {
        let rows =
            self.client.query(&format!("FETCH {FETCHED} FROM completions"), &[]).map_err(|error| trouble(&error))?;
        self.is_over = rows.len() < FETCHED;
        self.fetched = rows.into();
        Ok(())
    }
}

impl Iterator for Rows {
    type Item = Result<Completion, Trouble>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.fetched.is_empty()
            && !self.is_over
            && let Err(trouble) = self.fetch()
        {
            self.is_over = true;
            return Some(Err(trouble));
        }
        let row = self.fetched.pop_front()?;
        let of = |at: usize| row.try_get::<_, Option<String>>(at).map_err(|error| trouble(&error));
        let completion = || {
            let work_id = of(0)?.filter(|work| !work.is_empty());
            Ok(Completion {
                work_id: work_id.ok_or_else(|| Trouble("PostgreSQL: a row without a work_id".into()))?,
                digest: of(1)?,
                receipt: of(2)?,
                completed_at: of(3)?,
            })
        };
        Some(completion())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_what_may_be_shown_of_them() {
        let table = Table::parse("postgresql://user:secret@host:7/base#a.\"b").unwrap();
        assert_eq!(table.shown(), "postgres:base#a.\"b");
        assert!(table.query().ends_with(" FROM \"a\".\"\"\"b\""), "{}", table.query());
        assert!(Table::parse("host=/run/p dbname=x#t").is_ok());
        for wrong in ["postgresql://h/d", "postgresql://h/d#", "nothing of the kind#t"] {
            assert!(Table::parse(wrong).is_err(), "{wrong}");
        }
    }
}
