//! Statements that make and change publications.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::Generator;
use crate::random::schema::{Column, Identity, Publication};
use crate::random::values;

impl Generator {
    /// Notes a publication for everything that is made right now, in the setup. Returns its name, quoted.
    pub(super) fn add_publication(&mut self, name: String) -> String {
        let publication =
            Publication { name, exists: true, all_tables: false, needs_identity: true, via_root: false };
        let quoted = publication.quoted();
        self.publications.push(publication);
        quoted
    }

    pub(super) fn create_publication(&mut self) {
        let number = self.number();
        let name = match self.rng.random_range(0..6) {
            0 => format!("Pub Lication {number}"),
            1 => format!("pub\"quote, {number}"),
            _ => format!("p{number}"),
        };
        let (publish, needs_identity) = self.draw_publish();
        let mut publication =
            Publication { name, exists: false, all_tables: false, needs_identity, via_root: false };
        let mut options = Vec::new();
        let mut covers = vec![];
        if let Some(publish) = publish {
            options.push(format!("publish = '{publish}'"));
            covers.push("publication of some actions");
        }
        let via_root = self.chance(0.4);
        publication.via_root = via_root;
        if via_root {
            options.push("publish_via_partition_root = true".to_owned());
            covers.push("publication via root");
        }
        if self.major >= 18 && self.chance(0.5) {
            let generated = self.one_of(&["none", "stored", "stored"]).unwrap_or_default();
            options.push(format!("publish_generated_columns = {generated}"));
            covers.push(if generated == "none" {
                "generated columns: none"
            } else {
                "generated columns: stored"
            });
        }
        let (what, kind) = match self.rng.random_range(0..20) {
            0..2 => {
                publication.all_tables = true;
                (" FOR ALL TABLES".to_owned(), "publication of all tables")
            }
            2..5 => {
                let schema = self.one_of(&self.schemas.clone()).unwrap_or_default();
                (format!(" FOR TABLES IN SCHEMA {schema}"), "publication of a schema")
            }
            5..7 => {
                let schema = self.one_of(&self.schemas.clone()).unwrap_or_default();
                match self.published_table(publication.needs_identity, false, via_root) {
                    Some((_, table)) => (
                        format!(" FOR TABLES IN SCHEMA {schema}, TABLE {table}"),
                        "publication of a schema and a table",
                    ),
                    None => return,
                }
            }
            7 => (String::new(), "publication of nothing"),
            _ => {
                let mut indexes = Vec::new();
                let mut tables = Vec::new();
                for _ in 0..self.rng.random_range(1..5) {
                    if let Some((index, table)) =
                        self.published_table(publication.needs_identity, true, via_root)
                        && !indexes.contains(&index)
                    {
                        indexes.push(index);
                        tables.push(table);
                    }
                }
                if tables.is_empty() {
                    return;
                }
                if tables.iter().any(|table| table.contains(" WHERE (")) {
                    covers.push("publication with a row filter");
                }
                if tables.iter().any(|table| table.ends_with(')') && !table.contains(" WHERE (")) {
                    covers.push("publication with a column list");
                }
                (format!(" FOR TABLE {}", tables.join(", ")), "publication of tables")
            }
        };
        let with = if options.is_empty() { String::new() } else { format!(" WITH ({})", options.join(", ")) };
        self.emit(format!("CREATE PUBLICATION {}{what}{with}", publication.quoted()), kind);
        for covers in covers {
            self.emit_coverage(covers);
        }
        let index = self.publications.len();
        self.publications.push(publication);
        self.touch_publication(index);
        self.publications[index].exists = true;
    }

    /// The actions, if not all, and whether updates or deletes are among them.
    fn draw_publish(&mut self) -> (Option<String>, bool) {
        if self.chance(0.6) {
            return (None, true);
        }
        let mut actions = Vec::new();
        for action in ["insert", "update", "delete", "truncate"] {
            if self.chance(0.6) {
                actions.push(action);
            }
        }
        let needs_identity = actions.contains(&"update") || actions.contains(&"delete");
        (Some(actions.join(", ")), needs_identity)
    }

    /// A table, and how it stands in FOR TABLE.
    fn published_table(
        &mut self,
        needs_identity: bool,
        list_allowed: bool,
        via_root: bool,
    ) -> Option<(usize, String)> {
        let careless = self.chance(0.05);
        let wants_partition = self.chance(0.2);
        let wanted = self.usable(|table| {
            !table.is_unpublished_kind
                && (careless || !needs_identity || table.has_identity())
                && table.parent.is_some() == wants_partition
        });
        let index = self.one_of(&wanted)?;
        let table = self.tables[index].clone();
        let mut text = table.qualified();
        // A partitioned table has these only if rows are published under its name.
        if table.strategy.is_some() && !via_root && self.chance(0.95) {
            return Some((index, text));
        }
        if list_allowed {
            let list = match &table.agreed_list {
                _ if self.chance(0.12) => Some(self.draw_column_list(index)),
                agreed => agreed.clone(),
            };
            if let Some(list) = list {
                text += &format!(" ({})", list.join(", "));
            }
        }
        if self.chance(0.6) {
            let is_testable = |column: &&Column| !column.kind.sql.contains("types.");
            // Rows of partitions have the identity of the partition.
            let is_full =
                self.descendants(index).iter().all(|member| self.tables[*member].identity == Identity::Full);
            let columns: Vec<_> = if careless || !needs_identity || is_full {
                table.columns.iter().filter(is_testable).cloned().collect()
            } else {
                table
                    .columns
                    .iter()
                    .take(1 + usize::from(table.wide_key))
                    .filter(is_testable)
                    .cloned()
                    .collect()
            };
            text += &format!(" WHERE ({})", self.filter(&columns));
        }
        Some((index, text))
    }

    fn filter(&mut self, columns: &[Column]) -> String {
        let mut terms = Vec::new();
        for _ in 0..self.weighted(&[(5, 1), (3, 2), (1, 3)]) {
            match columns.choose(&mut self.rng) {
                Some(column) if !self.chance(0.07) => {
                    // Virtual columns are tested, too; those in an old version aren't there.
                    terms.push(values::condition(&mut self.rng, &column.name, &column.kind));
                }
                _ => terms
                    .push(self.one_of(&["true", "false", "NULL", "1 = 1"]).unwrap_or_default().to_owned()),
            }
        }
        let operator = self.one_of(&[" AND ", " OR "]).unwrap_or_default();
        terms.join(operator)
    }

    /// Emits what the last statement covers, too.
    fn emit_coverage_of_publication(&mut self, index: usize, covers: &'static str, sql: String) {
        self.touch_publication(index);
        self.emit(sql, covers);
        self.emit_coverage("publication changed in mid-stream");
    }

    /// Any statement that changes a publication, or makes one.
    pub(super) fn change_publications(&mut self) {
        let existing: Vec<_> = (0..self.publications.len())
            .filter(|index| self.publications[*index].exists && !self.publications[*index].all_tables)
            .collect();
        let Some(index) = self.one_of(&existing).filter(|_| self.chance(0.75)) else {
            return self.create_publication();
        };
        let Publication { needs_identity, .. } = self.publications[index];
        let name = self.publications[index].quoted();
        let via_root = self.publications[index].via_root;
        let table = self.published_table(needs_identity, true, via_root).map(|(_, table)| table);
        let table_of = |table: Option<String>| table.unwrap_or_else(|| "missing".to_owned());
        let usable = self.usable(|table| !table.is_unpublished_kind);
        let plain = self.one_of(&usable).map(|table| self.tables[table].qualified());
        let schema = self.one_of(&self.schemas.clone()).unwrap_or_default();
        match self.rng.random_range(0..22) {
            0..5 => self.emit_coverage_of_publication(
                index,
                "table added to a publication",
                format!("ALTER PUBLICATION {name} ADD TABLE {}", table_of(table)),
            ),
            5..7 => self.emit_coverage_of_publication(
                index,
                "tables of a publication replaced",
                format!("ALTER PUBLICATION {name} SET TABLE {}", table_of(table)),
            ),
            7..10 => self.emit_coverage_of_publication(
                index,
                "table dropped from a publication",
                format!("ALTER PUBLICATION {name} DROP TABLE {}", table_of(plain)),
            ),
            10..12 => self.emit_coverage_of_publication(
                index,
                "schema added to a publication",
                format!("ALTER PUBLICATION {name} ADD TABLES IN SCHEMA {schema}"),
            ),
            12 | 13 => self.emit_coverage_of_publication(
                index,
                "schema dropped from a publication",
                format!("ALTER PUBLICATION {name} DROP TABLES IN SCHEMA {schema}"),
            ),
            14 => {
                let (publish, needs_identity) = self.draw_publish();
                let publish = publish.unwrap_or_else(|| "insert, update, delete, truncate".to_owned());
                self.emit_coverage_of_publication(
                    index,
                    "actions of a publication changed",
                    format!("ALTER PUBLICATION {name} SET (publish = '{publish}')"),
                );
                self.publications[index].needs_identity = needs_identity;
            }
            15..17 => {
                let value = self.chance(0.5);
                self.emit_coverage_of_publication(
                    index,
                    "via root changed",
                    format!("ALTER PUBLICATION {name} SET (publish_via_partition_root = {value})"),
                );
                self.publications[index].via_root = value;
            }
            17..19 if self.major >= 18 => {
                let value = self.one_of(&["none", "stored"]).unwrap_or_default();
                self.emit_coverage_of_publication(
                    index,
                    "generated columns changed",
                    format!("ALTER PUBLICATION {name} SET (publish_generated_columns = {value})"),
                );
            }
            17..20 => {
                let new = format!("p{}", self.number());
                self.emit_coverage_of_publication(
                    index,
                    "publication renamed",
                    format!("ALTER PUBLICATION {name} RENAME TO {new}"),
                );
                self.publications[index].name = new;
            }
            _ => {
                self.emit_coverage_of_publication(
                    index,
                    "publication dropped",
                    format!("DROP PUBLICATION {name}"),
                );
                if let Some((_, table)) = self.published_table(needs_identity, true, false)
                    && self.chance(0.4)
                {
                    self.emit(
                        format!("CREATE PUBLICATION {name} FOR TABLE {table}"),
                        "publication made again",
                    );
                } else {
                    self.publications[index].exists = false;
                }
            }
        }
    }
}
