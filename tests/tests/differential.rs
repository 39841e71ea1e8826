//! Both plugins on the same WAL send the same bytes.

use std::process::ExitCode;

use anyhow::Result;
use pgoutput_tests::{Differential, Options, Test, runner, tests};

fn main() -> ExitCode {
    runner::main(tests![insert_update_delete])
}

fn insert_update_delete(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let seen = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (id int PRIMARY KEY, v text);
         CREATE PUBLICATION p FOR TABLE t",
    )?
    .options_and_binary(Options::new(1, "p"))
    .run_script(
        "INSERT INTO t SELECT i, 'value ' || i FROM generate_series(1, 10) i;
         UPDATE t SET v = v || '!' WHERE id < 5;
         UPDATE t SET id = id + 100 WHERE id < 3;
         DELETE FROM t WHERE id = 4;
         TRUNCATE t",
    )?;
    seen.expect("BCRIUDT")
}
