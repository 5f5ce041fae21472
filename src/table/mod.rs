//! Rows of named values as a table: which columns they have and of which kind, and the table as Parquet.
//!
//! The command line and the HTTP interface both write results so. A row is a result as NDJSON has it; in a table each of its
//! scores is a column.

mod columns;
mod parquet_writer;

pub use columns::{ColumnKind, ResultRow, Table, text};
pub use parquet_writer::ParquetWriter;
