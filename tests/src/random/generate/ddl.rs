//! Statements that make and change tables.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::Generator;
use crate::random::schema::{self, Column, Identity, Strategy, Table};
use crate::random::values::{self, Class, INT, TEXT, Type};

impl Generator {
    fn any_schema(&mut self) -> String {
        let schemas = self.schemas.clone();
        self.one_of(&schemas).unwrap_or_default()
    }

    fn draw_identity(&mut self) -> Identity {
        self.weighted(&[
            (45, Identity::Default),
            (25, Identity::Full),
            (18, Identity::Index),
            (12, Identity::Nothing),
        ])
    }

    /// A table that doesn't exist yet: its columns, and nothing else.
    fn draw_table(&mut self, key_type: Type) -> Table {
        let wide_key = self.chance(0.25);
        self.draw_table_with(key_type, wide_key)
    }

    fn draw_table_with(&mut self, key_type: Type, wide_key: bool) -> Table {
        let number = self.number();
        let key = Column {
            name: self.one_of(&["id", "id", "\"Key\"", "\"k e\"\"y\""]).unwrap_or_default().to_owned(),
            kind: key_type,
            generated: None,
            values: None,
        };
        let mut columns = vec![key.clone()];
        if wide_key {
            let kind = Type { covers: "toastable key column", ..TEXT };
            columns.push(Column { name: "tk".to_owned(), kind, generated: None, values: None });
        }
        for _ in 0..self.rng.random_range(0..7) {
            let number = self.number();
            columns.push(schema::any_column(&mut self.rng, &key, number, self.major));
        }
        if self.chance(0.7) {
            let name = format!("txt{number}");
            columns.push(Column { name, kind: TEXT, generated: None, values: None });
        }
        Table {
            schema: self.any_schema(),
            name: schema::name(&mut self.rng, "t", number),
            columns,
            wide_key,
            has_primary_key: false,
            index: None,
            identity: Identity::Default,
            strategy: None,
            parent: None,
            is_unpublished_kind: false,
            agreed_list: None,
            next_id: 1,
            exists: true,
            holder: None,
        }
    }

    /// Notes a table that was just created. In a transaction, its rollback makes it unknown again.
    fn add_table(&mut self, table: Table) -> usize {
        let index = self.tables.len();
        self.tables.push(Table { exists: false, ..table });
        self.touch(index);
        self.tables[index].exists = true;
        for column in self.tables[index].columns.clone() {
            self.emit_coverage(column.kind.covers);
        }
        index
    }

    /// Notes that the last statement covers something more.
    pub(super) fn emit_coverage(&mut self, covers: &'static str) {
        let steps = if self.session.is_some() { &mut self.case.steps } else { &mut self.case.setup };
        if let Some(step) = steps.last_mut() {
            step.covers.push(covers);
        }
    }

    pub(super) fn create_table(&mut self) {
        let key_type = self.one_of(values::KEY_TYPES).unwrap_or(INT);
        let mut table = self.draw_table(key_type);
        table.has_primary_key = self.chance(0.7);
        let mut prefix = "";
        if self.chance(0.08) {
            table.is_unpublished_kind = true;
            // The session of the setup is another than those that use the table.
            prefix = if self.session.is_some() && self.chance(0.6) { "TEMPORARY " } else { "UNLOGGED " };
        }
        if prefix == "TEMPORARY " {
            table.schema = "pg_temp".to_owned();
            if let Some(session) = self.session {
                self.sessions[session].unpreparable = true;
            }
        }
        let mut definitions: Vec<_> = table
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| schema::definition(column, at <= usize::from(table.wide_key)))
            .collect();
        // Columns that are dropped at once leave holes.
        let mut holes = Vec::new();
        if self.chance(0.25) {
            for hole in 0..self.rng.random_range(1..3) {
                let at = self.rng.random_range(0..=definitions.len());
                definitions.insert(at, format!("hole{hole} int"));
                holes.push(format!("DROP COLUMN hole{hole}"));
            }
        }
        if table.has_primary_key {
            definitions.push(format!("PRIMARY KEY ({})", table.key_columns().join(", ")));
        }
        let storage = if self.chance(if table.wide_key { 0.6 } else { 0.35 }) {
            " WITH (toast_tuple_target = 128)"
        } else {
            ""
        };
        let name = table.qualified();
        let covers = match prefix {
            "" => "table",
            "UNLOGGED " => "unlogged table",
            _ => "temporary table",
        };
        self.emit(format!("CREATE {prefix}TABLE {name} ({}){storage}", definitions.join(", ")), covers);
        let index = self.add_table(table);
        if !holes.is_empty() {
            self.emit(format!("ALTER TABLE {name} {}", holes.join(", ")), "table with dropped columns");
        }
        self.set_storage(index, 0.5);
        self.set_identity(index);
        self.draw_agreed_list(index);
    }

    fn draw_agreed_list(&mut self, index: usize) {
        if self.chance(0.35) {
            self.tables[index].agreed_list = Some(self.draw_column_list(index));
        }
    }

    /// Columns for a list: those of the identity, and some others.
    pub(super) fn draw_column_list(&mut self, index: usize) -> Vec<String> {
        let table = self.tables[index].clone();
        let mut list: Vec<String> = if table.has_identity() { table.key_columns() } else { Vec::new() };
        // Rows of a partition are told by the partition's identity.
        let is_full = self.family(index).iter().any(|member| self.tables[*member].identity == Identity::Full);
        for column in &table.columns {
            let is_listed = is_full || self.chance(0.5);
            let may_be_listed =
                column.generated.as_ref().is_none_or(|generated| self.major >= 18 && !generated.is_virtual);
            if is_listed && may_be_listed && !list.contains(&column.name) {
                list.push(column.name.clone());
            }
        }
        if list.is_empty() {
            list.push(table.key().name.clone());
        }
        list.shuffle(&mut self.rng);
        list
    }

    /// STORAGE of some columns.
    fn set_storage(&mut self, index: usize, probability: f64) {
        let table = self.tables[index].clone();
        for column in &table.columns {
            let is_toastable = matches!(
                column.kind.class,
                Class::Text(usize::MAX) | Class::Bytes | Class::Json | Class::TextArray
            );
            let is_virtual = column.generated.as_ref().is_some_and(|generated| generated.is_virtual);
            // A key that is toasted shows how rows are completed for filters.
            let is_key = column.name == "tk";
            if !is_toastable || is_virtual || !(is_key || self.chance(probability)) {
                continue;
            }
            let (storage, covers) = self.weighted(&[
                (6, ("EXTERNAL", "storage external")),
                (2, ("MAIN", "storage main")),
                (1, ("EXTENDED", "storage extended")),
            ]);
            self.emit(
                format!(
                    "ALTER TABLE {} ALTER COLUMN {} SET STORAGE {storage}",
                    table.qualified(),
                    column.name
                ),
                covers,
            );
        }
    }

    fn set_identity(&mut self, index: usize) {
        let identity = self.draw_identity();
        self.set_identity_to(index, identity);
    }

    fn set_identity_to(&mut self, index: usize, identity: Identity) {
        let table = self.tables[index].clone();
        let name = table.qualified();
        let mut unique_index = table.index.clone();
        let (sql, covers) = match identity {
            Identity::Default if table.has_primary_key => ("DEFAULT".to_owned(), "identity default"),
            Identity::Default => ("DEFAULT".to_owned(), "identity default without primary key"),
            Identity::Full => ("FULL".to_owned(), "identity full"),
            Identity::Nothing => ("NOTHING".to_owned(), "identity nothing"),
            Identity::Index => {
                let unique = format!("unique{}", self.number());
                let key = table.key_columns().join(", ");
                self.emit(format!("CREATE UNIQUE INDEX {unique} ON {name} ({key})"), None);
                let sql = format!("USING INDEX {unique}");
                unique_index = Some(unique);
                (sql, "identity index")
            }
        };
        self.emit(format!("ALTER TABLE {name} REPLICA IDENTITY {sql}"), covers);
        self.touch(index);
        self.tables[index].identity = identity;
        self.tables[index].index = unique_index;
    }

    /// A table with a toasted key and a publication whose filter updates of that key cross.
    pub(super) fn create_crossed_table(&mut self) {
        let mut table = self.draw_table_with(INT, true);
        table.has_primary_key = true;
        let (name, key) = (table.qualified(), table.key().name.clone());
        let key_columns = table.key_columns().join(", ");
        let definitions: Vec<_> = table
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| schema::definition(column, at <= 1))
            .collect();
        self.emit(
            format!(
                "CREATE TABLE {name} ({}, PRIMARY KEY ({key_columns})) WITH (toast_tuple_target = 128)",
                definitions.join(", ")
            ),
            "table",
        );
        let index = self.add_table(table);
        self.emit(format!("ALTER TABLE {name} ALTER COLUMN tk SET STORAGE EXTERNAL"), "storage external");
        if self.chance(0.3) {
            self.set_identity_to(index, Identity::Full);
        }
        let condition = self.one_of(&["> 500", "< 500"]).unwrap_or_default();
        let more = self
            .one_of(&["", " AND tk <> 'x'", " AND length(tk) > 500", " OR tk LIKE 'x%'"])
            .unwrap_or_default();
        let publication = self.add_publication(format!("crossed {index}"));
        self.emit(
            format!("CREATE PUBLICATION {publication} FOR TABLE {name} WHERE ({key} {condition}{more})"),
            "publication with a row filter",
        );
        self.crossed = Some(index);
    }

    /// A table whose rows refer to those of another.
    pub(super) fn create_referencing_table(&mut self) {
        let targets = self.usable(|table| {
            table.has_primary_key && !table.wide_key && !table.is_unpublished_kind && table.parent.is_none()
        });
        let Some(target) = self.one_of(&targets) else { return };
        let target = self.tables[target].clone();
        let mut table = self.draw_table(INT);
        table.has_primary_key = true;
        table.wide_key = false;
        table.columns.truncate(1);
        let (to, to_key) = (target.qualified(), &target.key().name);
        table.columns.push(Column {
            name: "parent".to_owned(),
            kind: target.key().kind,
            generated: None,
            values: Some(format!("(SELECT min({to_key}) FROM {to})")),
        });
        let on_delete = self.one_of(&["CASCADE", "SET NULL"]).unwrap_or_default();
        self.emit(
            format!(
                "CREATE TABLE {} ({} int PRIMARY KEY, parent {} REFERENCES {to} ({to_key}) ON DELETE {on_delete} ON UPDATE CASCADE)",
                table.qualified(),
                table.key().name,
                target.key().kind.sql
            ),
            "foreign key",
        );
        self.add_table(table);
    }

    /// A partitioned table with its partitions.
    pub(super) fn create_partitioned_table(&mut self) {
        let mut root = self.draw_table(INT);
        root.has_primary_key = self.chance(0.7);
        let strategy = self.weighted(&[(4, Strategy::Range), (2, Strategy::List), (2, Strategy::Hash)]);
        root.strategy = Some(strategy);
        let mut definitions: Vec<_> = root
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                // In the partitions they can be only stored.
                schema::definition(column, at <= usize::from(root.wide_key))
            })
            .collect();
        if root.has_primary_key {
            definitions.push(format!("PRIMARY KEY ({})", root.key_columns().join(", ")));
        }
        let covers = match strategy {
            Strategy::Range => "partitioned by range",
            Strategy::List => "partitioned by list",
            Strategy::Hash => "partitioned by hash",
        };
        self.emit(
            format!(
                "CREATE TABLE {} ({}) PARTITION BY {} ({})",
                root.qualified(),
                definitions.join(", "),
                strategy.sql(),
                root.key().name
            ),
            covers,
        );
        let root = self.add_table(root);
        self.set_storage(root, 0.4);
        let identity = self.draw_identity();
        for bound in strategy.bounds() {
            self.create_partition(root, bound, 1, identity);
        }
        let own = if self.chance(0.5) { identity } else { self.draw_identity() };
        self.set_identity_to(root, own);
        self.draw_agreed_list(root);
    }

    fn create_partition(&mut self, parent: usize, bound: &'static str, depth: u32, identity: Identity) {
        let above = self.tables[parent].clone();
        let number = self.number();
        let mut table = Table {
            schema: self.any_schema(),
            name: schema::name(&mut self.rng, "part", number),
            parent: Some((parent, bound)),
            strategy: None,
            index: None,
            ..above.clone()
        };
        if depth < 3 && self.chance(0.25) {
            table.strategy = Some(self.weighted(&[(1, Strategy::Range), (1, Strategy::Hash)]));
        }
        let name = table.qualified();
        let by = table.strategy.map_or(String::new(), |strategy| {
            format!(" PARTITION BY {} ({})", strategy.sql(), table.key().name)
        });
        let index;
        if self.chance(0.55) {
            self.emit(
                format!("CREATE TABLE {name} PARTITION OF {} {bound}{by}", above.qualified()),
                if depth > 1 { "partition of a partition" } else { "partition" },
            );
            index = self.add_table(table);
        } else {
            let mut definitions: Vec<_> = table
                .columns
                .iter()
                .enumerate()
                .map(|(at, column)| schema::definition(column, at <= usize::from(table.wide_key)))
                .collect();
            definitions.shuffle(&mut self.rng);
            let at = self.rng.random_range(0..=definitions.len());
            definitions.insert(at, "hole int".to_owned());
            self.emit(format!("CREATE TABLE {name} ({}){by}", definitions.join(", ")), None);
            index = self.add_table(table);
            self.emit(format!("ALTER TABLE {name} DROP COLUMN hole"), None);
            self.emit(
                format!("ALTER TABLE {} ATTACH PARTITION {name} {bound}", above.qualified()),
                "partition with another layout attached",
            );
        }
        if let Some(strategy) = self.tables[index].strategy {
            for bound in strategy.bounds() {
                self.create_partition(index, bound, depth + 1, identity);
            }
        }
        let own = if self.chance(0.75) { identity } else { self.draw_identity() };
        self.set_identity_to(index, own);
    }

    /// Any statement that changes a table, or makes one.
    pub(super) fn change_schema(&mut self) {
        type Choice = fn(&mut Generator, usize);
        let usable = self.usable(|table| table.parent.is_none() && table.schema != "pg_temp");
        let partitioned: Vec<_> =
            usable.iter().copied().filter(|table| self.tables[*table].strategy.is_some()).collect();
        let prefers_partitioned = self.chance(0.4);
        let partitioned = self.one_of(&partitioned).filter(|_| prefers_partitioned);
        let Some(index) = partitioned.or_else(|| self.one_of(&usable)) else { return self.create_table() };
        // All of the tree is locked, and nobody else may hold any of it.
        let own = self.session.map(super::Holder::Session);
        let is_held = |table: &usize| self.tables[*table].holder.is_some_and(|holder| Some(holder) != own);
        if self.family(index).iter().any(is_held) {
            return;
        }
        let is_partitioned = self.tables[index].strategy.is_some();
        let choices: &[(u32, Choice)] = &[
            (8, |generator, _| generator.create_table()),
            (14, Generator::add_column),
            (9, Generator::drop_column),
            (5, Generator::rename_column),
            (4, Generator::alter_type),
            (5, |generator, table| generator.set_storage(table, 0.6)),
            (4, Generator::rename_table),
            (3, Generator::set_schema),
            (8, Generator::change_identity),
            (if is_partitioned { 24 } else { 0 }, Generator::move_partition),
            (3, Generator::drop_table),
            (3, |generator, table| {
                let name = generator.tables[table].qualified();
                generator.touch(table);
                generator.emit(format!("COMMENT ON TABLE {name} IS 'comment'"), None);
            }),
            (3, |generator, table| {
                let (name, key) =
                    (generator.tables[table].qualified(), generator.tables[table].key().name.clone());
                generator.touch_family(table);
                generator.emit(format!("CREATE INDEX ON {name} (({key} + 1))"), "index created");
            }),
            (3, Generator::create_table_as),
            (3, Generator::change_persistence),
            (4, Generator::rename_type),
            (2, |generator, _| {
                generator
                    .emit("ALTER TYPE types.mood ADD VALUE IF NOT EXISTS 'new'", "enum with a new value");
            }),
        ];
        self.weighted(choices)(self, index);
    }

    fn add_column(&mut self, index: usize) {
        let number = self.number();
        let key = self.tables[index].key().clone();
        let column = schema::any_column(&mut self.rng, &key, number, self.major);
        let mut sql = format!(
            "ALTER TABLE {} ADD COLUMN {}",
            self.tables[index].qualified(),
            schema::definition(&column, false)
        );
        let mut covers = "column added";
        if column.generated.is_none() && self.chance(0.6) {
            let value = values::value(&mut self.rng, &column.kind);
            // A subquery can't be a default.
            if !value.contains("SELECT") {
                let text = if column.kind.class == Class::Text(usize::MAX) && self.chance(0.2) {
                    "md5(random()::text)".to_owned()
                } else {
                    value
                };
                sql += &format!(" DEFAULT {text}");
                covers = "column added with a default";
            }
        }
        self.emit(sql, covers);
        self.emit_coverage(column.kind.covers);
        for table in self.descendants(index) {
            self.touch(table);
            self.tables[table].columns.push(column.clone());
        }
        if self.chance(0.7) {
            self.update_some(index);
        }
    }

    fn update_some(&mut self, index: usize) {
        if self.tables[index].has_identity() {
            let (name, key) = (self.tables[index].qualified(), self.tables[index].key().name.clone());
            self.emit(
                format!("UPDATE {name} SET {key} = {key} WHERE {key} IN (SELECT {key} FROM {name} LIMIT 2)"),
                "update",
            );
        }
    }

    fn other_column(&mut self, index: usize) -> Option<Column> {
        let columns: Vec<_> =
            self.tables[index].other_columns().filter(|column| column.values.is_none()).cloned().collect();
        self.one_of(&columns)
    }

    fn drop_column(&mut self, index: usize) {
        let Some(column) = self.other_column(index) else { return };
        let cascade = if self.chance(0.5) { " CASCADE" } else { "" };
        self.emit(
            format!("ALTER TABLE {} DROP COLUMN {}{cascade}", self.tables[index].qualified(), column.name),
            "column dropped",
        );
        for table in self.descendants(index) {
            self.touch(table);
            self.tables[table].columns.retain(|other| other.name != column.name);
        }
    }

    fn rename_column(&mut self, index: usize) {
        let Some(column) = self.other_column(index) else { return };
        let number = self.number();
        let name = schema::name(&mut self.rng, "r", number);
        self.emit(
            format!("ALTER TABLE {} RENAME COLUMN {} TO {name}", self.tables[index].qualified(), column.name),
            "column renamed",
        );
        for table in self.descendants(index) {
            self.touch(table);
            let agreed = self.tables[table].agreed_list.iter_mut().flatten();
            agreed.filter(|other| **other == column.name).for_each(|other| other.clone_from(&name));
            let columns = self.tables[table].columns.iter_mut();
            columns.filter(|other| other.name == column.name).for_each(|other| other.name.clone_from(&name));
        }
    }

    fn alter_type(&mut self, index: usize) {
        let Some(column) = self.other_column(index).filter(|column| column.generated.is_none()) else {
            return;
        };
        self.emit(
            format!(
                "ALTER TABLE {} ALTER COLUMN {} TYPE text USING {1}::text",
                self.tables[index].qualified(),
                column.name
            ),
            "type of a column changed",
        );
        for table in self.descendants(index) {
            self.touch(table);
            let columns = self.tables[table].columns.iter_mut();
            columns.filter(|other| other.name == column.name).for_each(|other| other.kind = TEXT);
        }
    }

    fn rename_table(&mut self, index: usize) {
        let members = self.family(index);
        let index = self.one_of(&members).unwrap_or(index);
        let number = self.number();
        let name = schema::name(&mut self.rng, "renamed", number);
        self.emit(
            format!("ALTER TABLE {} RENAME TO {name}", self.tables[index].qualified()),
            "table renamed",
        );
        self.touch(index);
        self.tables[index].name = name;
    }

    fn set_schema(&mut self, index: usize) {
        let members = self.family(index);
        let index = self.one_of(&members).unwrap_or(index);
        let schema = self.any_schema();
        if schema == self.tables[index].schema {
            return;
        }
        self.emit(
            format!("ALTER TABLE {} SET SCHEMA {schema}", self.tables[index].qualified()),
            "table moved to another schema",
        );
        self.touch(index);
        self.tables[index].schema = schema;
    }

    fn change_identity(&mut self, index: usize) {
        let members = self.family(index);
        let index = self.one_of(&members).unwrap_or(index);
        self.set_identity(index);
        self.emit_coverage("identity changed in mid-stream");
    }

    /// Detaches a partition and attaches it, or another in its place.
    fn move_partition(&mut self, root: usize) {
        let members: Vec<_> = self.descendants(root).into_iter().skip(1).collect();
        let Some(index) = self.one_of(&members) else { return };
        let Some((parent, bound)) = self.tables[index].parent else { return };
        let (parent_name, name) = (self.tables[parent].qualified(), self.tables[index].qualified());
        self.touch_family(root);
        self.emit(format!("ALTER TABLE {parent_name} DETACH PARTITION {name}"), "partition detached");
        let key = self.tables[index].key().name.clone();
        if self.tables[index].has_identity() && self.chance(0.6) {
            self.emit(format!("UPDATE {name} SET {key} = {key}"), "update of a detached partition");
        }
        if self.chance(0.7) {
            self.emit(
                format!("ALTER TABLE {parent_name} ATTACH PARTITION {name} {bound}"),
                "partition attached again",
            );
        } else {
            for table in self.descendants(index) {
                self.touch(table);
            }
            let next_id = self.tables[self.root(index)].next_id;
            self.tables[index].parent = None;
            self.tables[index].next_id = next_id;
            let identity = self.draw_identity();
            self.create_partition(parent, bound, 2, identity);
        }
        self.insert_into(root);
    }

    fn drop_table(&mut self, index: usize) {
        if self.usable(|table| table.parent.is_none()).len() < 3 {
            return;
        }
        self.emit(format!("DROP TABLE {} CASCADE", self.tables[index].qualified()), "table dropped");
        for table in self.descendants(index) {
            self.touch(table);
            self.tables[table].exists = false;
        }
    }

    fn create_table_as(&mut self, index: usize) {
        let number = self.number();
        let schema = self.any_schema();
        let from = self.tables[index].qualified();
        let what = self.one_of(&["TABLE", "MATERIALIZED VIEW"]).unwrap_or_default();
        self.emit(
            format!("CREATE {what} {schema}.made{number} AS SELECT * FROM {from}"),
            "table made from a query",
        );
        if what != "TABLE" && self.chance(0.5) {
            self.emit(format!("REFRESH MATERIALIZED VIEW {schema}.made{number}"), None);
        }
    }

    fn change_persistence(&mut self, index: usize) {
        let table = &self.tables[index];
        if table.strategy.is_some() {
            return;
        }
        let is_unlogged = table.is_unpublished_kind;
        let to = if is_unlogged { "LOGGED" } else { "UNLOGGED" };
        // A published table can't become unlogged on all versions: then this fails.
        if !is_unlogged && self.in_transaction() {
            return;
        }
        self.emit(format!("ALTER TABLE {} SET {to}", table.qualified()), None);
        self.touch(index);
        self.tables[index].is_unpublished_kind = !is_unlogged;
    }

    /// A type has another name for a while.
    fn rename_type(&mut self, index: usize) {
        let (kind, old, new) = self.weighted(&[
            (1, ("DOMAIN", "small_domain", "renamed_domain")),
            (1, ("DOMAIN", "nested_domain", "renamed_nested")),
            (1, ("TYPE", "mood", "renamed_mood")),
            (1, ("TYPE", "pair", "renamed_pair")),
        ]);
        self.emit(format!("ALTER {kind} types.{old} RENAME TO {new}"), "type renamed");
        self.update_some(index);
        self.emit(format!("ALTER {kind} types.{new} RENAME TO {old}"), None);
    }

    /// A schema has another name from now on. Outside transactions, when nobody else is in one.
    pub(super) fn rename_schema(&mut self) {
        if self.others_are_open() || self.in_transaction() || self.schemas.len() < 2 {
            return;
        }
        let at = self.rng.random_range(1..self.schemas.len());
        let number = self.number();
        let new = schema::name(&mut self.rng, "renamed", number);
        let old = std::mem::replace(&mut self.schemas[at], new.clone());
        self.emit(format!("ALTER SCHEMA {old} RENAME TO {new}"), "schema renamed");
        for table in self.tables.iter_mut().filter(|table| table.schema == old) {
            table.schema.clone_from(&new);
        }
    }

    /// What changes no rows. Outside transactions.
    pub(super) fn maintain(&mut self) {
        let usable = self.usable(|table| table.schema != "pg_temp");
        let Some(index) = self.one_of(&usable) else { return };
        let table = &self.tables[index];
        let name = table.qualified();
        let cluster = table.index.as_ref().map(|index| format!("CLUSTER {name} USING {index}"));
        let (sql, covers) = match self.rng.random_range(0..10) {
            0..5 => (format!("ANALYZE {name}"), "analyze"),
            5 => (format!("VACUUM {name}"), "vacuum"),
            6 => (format!("VACUUM FULL {name}"), "vacuum full"),
            7 => (format!("REINDEX TABLE {name}"), "reindex"),
            8 => (cluster.unwrap_or_else(|| format!("VACUUM FULL {name}")), "vacuum full"),
            _ => ("CHECKPOINT".to_owned(), "checkpoint"),
        };
        self.emit(sql, covers);
    }
}
