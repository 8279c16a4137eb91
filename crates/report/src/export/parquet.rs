//! The flat table as a Parquet file: columns, packed, that every engine for large tables reads.

use super::flat::{self, FlatMaterial, Kind, Value};
use crate::Error;
use parquet::basic::{Compression, GzipLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// Raised when a query for an older form would be wrong for a newer one.
const VERSION: &str = "2";

/// How many rows are packed together: enough to be small, and few enough to be kept in memory.
const ROWS_PER_GROUP: usize = 1 << 17;

/// Where a table is written to. One type for all, so that the writer is compiled once.
type To = Box<dyn Write + Send>;

/// A Parquet file that is being written.
pub struct FlatTable {
    writer: SerializedFileWriter<To>,
    columns: Vec<Column>,
    rows: usize,
    texts: Texts,
}

/// The values of a column that wait to be written.
struct Column {
    kind: Kind,
    values: Vec<Option<i64>>,
}

/// Each text once: columns have their numbers.
#[derive(Default)]
struct Texts {
    numbers: HashMap<Arc<str>, i64>,
    all: Vec<ByteArray>,
}

impl Texts {
    fn number(&mut self, text: &Arc<str>) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as i64;
        self.numbers.insert(text.clone(), number);
        self.all.push(text.as_bytes().to_vec().into());
        number
    }

    fn text(&self, number: i64) -> ByteArray {
        let place = usize::try_from(number).ok();
        let text = place.and_then(|it| self.all.get(it));
        text.cloned().unwrap_or_default()
    }
}

impl FlatTable {
    /// Begins the file.
    pub fn new(to: impl Write + Send + 'static) -> Result<Self, Error> {
        let to: To = Box::new(to);
        let schema = parse_message_type(&schema()).map_err(unwritten)?;
        let version = KeyValue::new("headcount.table".into(), VERSION.to_owned());
        let settings = WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::default()))
            .set_created_by(concat!("headcount ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![version]));
        let settings = Arc::new(settings.build());
        let writer = SerializedFileWriter::new(to, Arc::new(schema), settings);
        let column = |(_, kind)| Column {
            kind,
            values: Vec::new(),
        };
        Ok(Self {
            writer: writer.map_err(unwritten)?,
            columns: flat::columns().map(column).collect(),
            rows: 0,
            texts: Texts::default(),
        })
    }

    /// Adds the rows of one run.
    pub fn add(&mut self, material: &FlatMaterial<'_>) -> Result<(), Error> {
        flat::rows(material, &mut |row| self.add_row(row))
    }

    /// Makes the file whole.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.writer.close().map_err(unwritten)?;
        Ok(())
    }

    fn add_row(&mut self, row: &[Value]) -> Result<(), Error> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.values.push(match value {
                Value::Null => None,
                Value::Text(text) => Some(self.texts.number(text)),
                Value::Number(number) => Some(*number),
                Value::Flag(flag) => Some((*flag).into()),
            });
        }
        self.rows += 1;
        match self.rows < ROWS_PER_GROUP {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Writes the rows that wait.
    fn flush(&mut self) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        let texts = std::mem::take(&mut self.texts);
        let mut group = self.writer.next_row_group().map_err(unwritten)?;
        for column in &mut self.columns {
            if let Some(mut to) = group.next_column().map_err(unwritten)? {
                column.write(&texts, &mut to).map_err(unwritten)?;
                to.close().map_err(unwritten)?;
            }
            column.values.clear();
        }
        group.close().map_err(unwritten)?;
        self.rows = 0;
        Ok(())
    }
}

impl Column {
    fn write(
        &self,
        texts: &Texts,
        to: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let known = self.values.iter().flatten();
        let is_known: Vec<i16> = self.values.iter().map(|it| it.is_some().into()).collect();
        let is_known = Some(is_known.as_slice());
        match self.kind {
            Kind::Text => {
                let values: Vec<ByteArray> = known.map(|it| texts.text(*it)).collect();
                to.typed::<ByteArrayType>()
                    .write_batch(&values, is_known, None)
            }
            Kind::Number | Kind::Time => {
                let values: Vec<i64> = known.copied().collect();
                to.typed::<Int64Type>().write_batch(&values, is_known, None)
            }
            Kind::Flag => {
                let values: Vec<bool> = known.map(|it| *it != 0).collect();
                to.typed::<BoolType>().write_batch(&values, is_known, None)
            }
        }?;
        Ok(())
    }
}

/// The columns, in Parquet's own words.
fn schema() -> String {
    let column = |(name, kind)| {
        let kind = match kind {
            Kind::Text => ("binary", " (string)"),
            Kind::Number => ("int64", ""),
            Kind::Time => ("int64", " (timestamp(micros,true))"),
            Kind::Flag => ("boolean", ""),
        };
        format!("optional {} {name}{};\n", kind.0, kind.1)
    };
    let columns: String = flat::columns().map(column).collect();
    format!("message counts {{\n{columns}}}")
}

fn unwritten(error: ParquetError) -> Error {
    Error::NotWritten(match error {
        ParquetError::External(why) => why.to_string(),
        other => other.to_string(),
    })
}
