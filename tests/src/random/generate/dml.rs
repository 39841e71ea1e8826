//! Statements that change rows.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::Generator;
use crate::random::schema::{Identity, Table, column_value};
use crate::random::values::{self, Class};

/// How long values of the second key column are, at most: an index row holds 2,704 bytes.
const LONGEST_KEY: usize = 1300;

impl Generator {
    /// Any statement that changes rows.
    pub(super) fn change_rows(&mut self) {
        type Choice = fn(&mut Generator, usize);
        let Some(table) = self.table_to_change() else { return };
        let mut choices: Vec<(u32, Choice)> = vec![(1, Generator::select_for_update)];
        let is_partition = self.tables[table].parent.is_some();
        // Rows put into a partition itself may not belong there.
        choices.push((if is_partition { 1 } else { 40 }, Generator::insert_into));
        if !is_partition {
            choices.push((6, Generator::copy_into));
        }
        if self.tables[table].has_identity() || self.chance(0.1) {
            choices.push((45, Generator::update));
            choices.push((20, Generator::delete_from));
            choices.push((3, Generator::merge_into));
        }
        self.weighted(&choices)(self, table);
    }

    fn table_to_change(&mut self) -> Option<usize> {
        let partition = self.chance(0.08);
        let usable = self.usable(|table| table.parent.is_some() == partition);
        self.one_of(&usable).or_else(|| {
            let usable = self.usable(|table| table.parent.is_none());
            self.one_of(&usable)
        })
    }

    /// Columns and expressions for a row with a key.
    fn row(&mut self, table: usize, key: &str) -> (Vec<String>, Vec<String>) {
        let table = &self.tables[table];
        let mut names = table.key_columns();
        let mut row = vec![key.to_owned()];
        if table.wide_key {
            let (length, plain) = (self.rng.random_range(1..LONGEST_KEY), self.rng.random_bool(0.5));
            row.push(values::long_text(&mut self.rng, length, plain));
        }
        for column in table.other_columns().filter(|column| column.generated.is_none()) {
            if self.rng.random_bool(0.85) {
                names.push(column.name.clone());
                row.push(column_value(&mut self.rng, column));
            }
        }
        (names, row)
    }

    fn next_id(&mut self, table: usize, count: i64) -> i64 {
        let root = self.root(table);
        let next = self.tables[root].next_id;
        self.tables[root].next_id += count;
        next
    }

    pub(super) fn insert_into(&mut self, index: usize) {
        let rows = self.weighted(&[(12, 1), (4, 2), (4, 5)]);
        let repeat = self.tables[index].has_primary_key && self.chance(0.2);
        let mut lines = Vec::new();
        let mut names = Vec::new();
        for number in 0..rows {
            let id = if repeat {
                let root = self.root(index);
                let next = self.tables[root].next_id.max(2);
                self.rng.random_range(1..next)
            } else {
                self.next_id(index, 1)
            };
            let (columns, row) = self.row(index, &id.to_string());
            if number == 0 {
                names = columns.clone();
            }
            // All rows of a statement have the same columns.
            if columns == names {
                lines.push(format!("({})", row.join(", ")));
            }
        }
        let table = &self.tables[index];
        let mut sql =
            format!("INSERT INTO {} ({}) VALUES {}", table.qualified(), names.join(", "), lines.join(", "));
        let mut covers = if lines.len() > 1 { "insert of several rows" } else { "insert" };
        if repeat {
            let settable =
                table.other_columns().find(|column| column.generated.is_none() && column.values.is_none());
            let update = settable.filter(|_| table.has_identity()).cloned();
            let key = table.key_columns().join(", ");
            match update.filter(|_| self.rng.random_bool(0.6)) {
                Some(column) => {
                    let value = column_value(&mut self.rng, &column);
                    sql += &format!(" ON CONFLICT ({key}) DO UPDATE SET {} = {value}", column.name);
                    covers = "insert on conflict do update";
                }
                None => {
                    sql += " ON CONFLICT DO NOTHING";
                    covers = "insert on conflict do nothing";
                }
            }
        }
        self.emit(sql, covers);
    }

    fn copy_into(&mut self, index: usize) {
        let rows = self.rng.random_range(1..20);
        let first = self.next_id(index, rows);
        let table = &self.tables[index];
        let mut names = table.key_columns();
        let texts: Vec<_> = table
            .other_columns()
            .filter(|column| column.generated.is_none() && column.values.is_none())
            .filter(|column| matches!(column.kind.class, Class::Text(limit) if limit > 20))
            .filter(|column| !column.kind.sql.ends_with("raw"))
            .take(2)
            .map(|column| column.name.clone())
            .collect();
        let widths = usize::from(table.wide_key) + texts.len();
        names.extend(texts);
        let mut sql = format!("COPY {} ({}) FROM STDIN", table.qualified(), names.join(", "));
        for id in first..first + rows {
            sql += &format!("\n{id}");
            for _ in 0..widths {
                let value = ["", "copied", "with\\ttab", "é", "x"].choose(&mut self.rng).copied();
                sql += &format!("\t{}", value.unwrap_or_default());
            }
        }
        self.emit(sql, "copy");
    }

    /// A condition that picks some rows.
    fn some_rows(&mut self, index: usize) -> String {
        let table = &self.tables[index];
        let (name, key) = (table.qualified(), table.key().name.clone());
        let next = self.tables[self.root(index)].next_id.max(2);
        let id = self.rng.random_range(1..next);
        let count = self.rng.random_range(1..4);
        let mut condition = match self.rng.random_range(0..10) {
            0..5 => {
                format!("{key} IN (SELECT {key} FROM {name} ORDER BY {key} LIMIT {count} OFFSET {})", id % 7)
            }
            5 => format!("{key} = {id}"),
            6 => format!("{key} BETWEEN {id} AND {}", id + 3),
            7 => format!("{key} % 4 = 1"),
            8 if self.chance(0.2) => "true".to_owned(),
            _ => format!("{key} IN (SELECT {key} FROM {name} ORDER BY {key} DESC LIMIT {count})"),
        };
        // Each session has rows of its own, so that they don't wait for each other all the time.
        if self.others_are_open() && self.chance(0.8) {
            let own = self.session.unwrap_or(0);
            condition += &format!(" AND abs({key}) % 3 = {own}");
        }
        condition
    }

    fn update(&mut self, index: usize) {
        let table = self.tables[index].clone();
        let key = &table.key().name;
        let mut sets = Vec::new();
        let mut covers = "update";
        if table.parent.is_none() && self.chance(0.4) {
            covers = if table.strategy.is_some() { "update of a partition key" } else { "update of a key" };
            sets.push(match self.rng.random_range(0..8) {
                0 | 1 => format!("{key} = -{key} - 1"),
                2..5 => format!("{key} = {key} - 1000"),
                far => format!("{key} = {key} + {}", (far - 4) * 1000),
            });
        }
        if table.wide_key && self.chance(0.15) {
            let (length, plain) = (self.rng.random_range(1..LONGEST_KEY), self.rng.random_bool(0.5));
            let value = values::long_text(&mut self.rng, length, plain);
            sets.push(format!("{} = {value}", table.columns[1].name));
            covers = "update of a toasted key";
        }
        let settable: Vec<_> = table
            .other_columns()
            .filter(|column| column.generated.is_none() && column.values.is_none())
            .collect();
        let count = self.weighted(&[(2, 0), (8, 1), (3, 2), (1, 5)]);
        for column in settable.sample(&mut self.rng, count).cloned().collect::<Vec<_>>() {
            let value =
                if self.chance(0.1) { column.name.clone() } else { column_value(&mut self.rng, column) };
            sets.push(format!("{} = {value}", column.name));
        }
        if sets.is_empty() {
            sets.push(format!("{key} = {key}"));
        }
        let rows = self.some_rows(index);
        self.emit(format!("UPDATE {} SET {} WHERE {rows}", table.qualified(), sets.join(", ")), covers);
    }

    /// An update of keys in the table whose publication has a filter for them, or rows for the next.
    pub(super) fn cross(&mut self) {
        let Some(index) = self.crossed else { return };
        if !self.usable(|_| true).contains(&index) {
            return;
        }
        if self.chance(0.25) {
            return self.insert_into(index);
        }
        let table = &self.tables[index];
        let (name, key) = (table.qualified(), table.key().name.clone());
        let (set, rows) = self.weighted(&[(3, ("+ 1000", "< 500")), (2, ("- 1000", "> 500"))]);
        let others = if self.others_are_open() {
            format!(" AND abs({key}) % 3 = {}", self.session.unwrap_or(0))
        } else {
            String::new()
        };
        self.emit(
            format!("UPDATE {name} SET {key} = {key} {set} WHERE {key} {rows}{others}"),
            "update of a key",
        );
    }

    fn delete_from(&mut self, index: usize) {
        let rows = self.some_rows(index);
        self.emit(format!("DELETE FROM {} WHERE {rows}", self.tables[index].qualified()), "delete");
    }

    fn merge_into(&mut self, index: usize) {
        let table = self.tables[index].clone();
        let settable =
            table.other_columns().find(|column| column.generated.is_none() && column.values.is_none());
        let Some(column) = settable else { return };
        let value = column_value(&mut self.rng, column);
        let first = self.rng.random_range(0..20);
        let key = &table.key().name;
        self.emit(
            format!(
                "MERGE INTO {} t USING generate_series({first}, {}) s(i) ON t.{key} = s.i \
                 WHEN MATCHED AND s.i % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET {} = {value}",
                table.qualified(),
                first + 6,
                column.name
            ),
            "merge",
        );
    }

    fn select_for_update(&mut self, index: usize) {
        let rows = self.some_rows(index);
        let table = self.tables[index].qualified();
        self.emit(
            format!("SELECT count(*) FROM (SELECT FROM {table} WHERE {rows} FOR UPDATE) q"),
            "select for update",
        );
    }

    /// So many rows that their changes don't fit the smallest `logical_decoding_work_mem`.
    pub(super) fn bulk(&mut self) {
        let usable = self.usable(|table| table.parent.is_none() && table.text_column().is_some());
        let Some(index) = self.one_of(&usable) else { return };
        let table = self.tables[index].clone();
        let Some(column) = table.text_column() else { return };
        let key = &table.key().name;
        let letter = self.one_of(&["x", "y", "z"]).unwrap_or_default();
        if table.has_identity() && table.identity == Identity::Full && self.chance(0.2) {
            let text = format!("repeat('{letter}', 1700)");
            self.emit(
                format!("UPDATE {} SET {} = {text} WHERE {key} < 100", table.qualified(), column.name),
                "large transaction",
            );
            return;
        }
        let (rows, length) =
            self.weighted(&[(4, (45, 1750)), (2, (300, 60)), (1, (130, 1750)), (1, (30, 4000))]);
        let first = self.next_id(index, rows);
        let (names, values) = bulk_columns(&table, &column.name, letter, length);
        self.emit(
            format!(
                "INSERT INTO {} ({names}) SELECT {values} FROM generate_series({first}, {}) i",
                table.qualified(),
                first + rows - 1
            ),
            "large transaction",
        );
    }

    /// A statement with more subtransactions than a backend remembers in shared memory, some of them rolled back.
    pub(super) fn many_subtransactions(&mut self) {
        let usable = self.usable(|table| table.parent.is_none() && table.schema != "pg_temp");
        let Some(index) = self.one_of(&usable) else { return };
        let rows = self.weighted(&[(1, 6), (1, 80)]);
        let first = self.next_id(index, rows);
        let table = &self.tables[index];
        let names = table.key_columns().join(", ");
        let values = if table.wide_key { "i, 'k'" } else { "i" };
        self.emit(
            format!(
                "DO $$BEGIN FOR i IN {first}..{} LOOP BEGIN INSERT INTO {} ({names}) VALUES ({values}); \
                 IF i % 3 = 0 THEN RAISE EXCEPTION 'no'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; \
                 END LOOP; END$$",
                first + rows - 1,
                table.qualified()
            ),
            "many subtransactions",
        );
    }

    /// TRUNCATE.
    pub(super) fn truncate(&mut self) {
        let mut tables = Vec::new();
        for _ in 0..self.weighted(&[(6, 1), (3, 2), (1, 4)]) {
            let usable = self.usable(|_| true);
            if let Some(table) = self.one_of(&usable)
                && !tables.contains(&table)
            {
                tables.push(table);
            }
        }
        if tables.is_empty() {
            return;
        }
        let only = self.chance(0.05) && tables.iter().all(|table| self.tables[*table].strategy.is_none());
        let names: Vec<_> = tables.iter().map(|table| self.tables[*table].qualified()).collect();
        let (options, covers) = self.weighted(&[
            (4, ("", "truncate")),
            (3, (" CASCADE", "truncate cascade")),
            (1, (" RESTART IDENTITY", "truncate restart identity")),
            (1, (" RESTART IDENTITY CASCADE", "truncate restart identity cascade")),
        ]);
        let only = if only { "ONLY " } else { "" };
        self.emit(format!("TRUNCATE {only}{}{options}", names.join(", ")), covers);
        for table in tables {
            self.touch_family(table);
        }
    }
}

fn bulk_columns(table: &Table, column: &str, letter: &str, length: u32) -> (String, String) {
    let mut names = table.key_columns();
    let mut values = vec!["i".to_owned()];
    if table.wide_key {
        values.push("repeat('k', 400)".to_owned());
    }
    names.push(column.to_owned());
    values.push(format!("repeat('{letter}', {length})"));
    (names.join(", "), values.join(", "))
}
