//! Unmodified subscribers end with what the publisher has, in each mode and whatever is interrupted.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pgoutput_tests::random::values;
use pgoutput_tests::subscriber::{
    Pair, Way, check_equal, check_plugin, subscribe, wait_for_catch_up, wait_for_copy,
};
use pgoutput_tests::traffic::{PUBLISHED, SCHEMA};
use pgoutput_tests::{Cluster, Settings, Stop, Test, Traffic, quote, runner, tests, wait_until};
use postgres::Client;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() -> ExitCode {
    runner::main(tests![
        two_phase,
        every_mode_interrupted,
        soak,
        streaming,
        streaming_every_change,
        both_directions,
        binary_types,
        synchronous,
    ])
}

/// No copy, since the tables are empty, and the streaming that asks most of the plugin.
fn streaming_option(test: &Test) -> &'static str {
    if test.server().major >= 16 {
        ", copy_data = false, streaming = parallel"
    } else {
        ", copy_data = false, streaming = on"
    }
}

/// A publisher and a subscriber with the tables of [`Traffic`], and walsenders that stream what is not small.
fn traffic_pair(test: &Test) -> Result<Pair> {
    let pair = Pair::new(test, Way::InPlace)?;
    pair.on_both(SCHEMA)?;
    publish_traffic(&mut pair.publisher()?)?;
    Ok(pair)
}

fn publish_traffic(client: &mut Client) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE PUBLICATION pub FOR TABLE {PUBLISHED};
         ALTER DATABASE {} SET logical_decoding_work_mem = '64kB'",
        Pair::DATABASE
    ))?;
    Ok(())
}

/// What may happen to a pair at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    WalsendersKilled,
    SubscriberStopped(Stop),
    PublisherStopped(Stop),
}

impl Interruption {
    const ALL: [Interruption; 5] = [
        Interruption::WalsendersKilled,
        Interruption::SubscriberStopped(Stop::Fast),
        Interruption::PublisherStopped(Stop::Immediate),
        Interruption::SubscriberStopped(Stop::Immediate),
        Interruption::PublisherStopped(Stop::Fast),
    ];

    /// Has it happen, and waits until all slots are in use again.
    fn happen(self, pair: &Pair) -> Result<()> {
        let restart = |cluster: &Cluster, how| {
            cluster.stop(how)?;
            cluster.start_again()
        };
        match self {
            Interruption::WalsendersKilled => return kill_walsenders(&pair.publisher),
            Interruption::SubscriberStopped(how) => restart(&pair.subscriber, how)?,
            Interruption::PublisherStopped(how) => restart(&pair.publisher, how)?,
        }
        slots(&pair.publisher)?.iter().try_for_each(|slot| pair.publisher.walsender(slot).map(drop))
    }
}

fn slots(cluster: &Cluster) -> Result<Vec<String>> {
    let rows = cluster.client("postgres")?.query("SELECT slot_name::text FROM pg_replication_slots", &[])?;
    ensure!(!rows.is_empty(), "the publisher has no slots");
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Kills the walsenders of all slots, and waits for others.
fn kill_walsenders(cluster: &Cluster) -> Result<()> {
    let mut client = cluster.client("postgres")?;
    let mut killed = Vec::new();
    for slot in slots(cluster)? {
        let walsender = cluster.walsender(&slot)?;
        client.execute("SELECT pg_terminate_backend($1)", &[&walsender.cast_signed()])?;
        killed.push((slot, walsender));
    }
    killed.iter().try_for_each(|(slot, walsender)| {
        wait_until("another walsender", || Ok(cluster.walsender(slot)? != *walsender))
    })
}

/// Checks that transactions were streamed, since the publisher was started.
fn check_streamed(pair: &Pair) -> Result<()> {
    let mut publisher = pair.publisher()?;
    wait_until("streamed transactions in the slot's statistics", || {
        let row = publisher.query_one(
            "SELECT stream_txns FROM pg_stat_replication_slots WHERE slot_name = $1",
            &[&Pair::SUBSCRIPTION],
        )?;
        Ok(row.get::<_, i64>(0) > 0)
    })
}

/// Checks that the subscriber has a worker for streamed transactions, where it can.
fn check_parallel(pair: &Pair) -> Result<()> {
    if pair.publisher.server().major < 16 {
        return Ok(());
    }
    let row = pair
        .subscriber()?
        .query_one("SELECT count(*) FROM pg_stat_subscription WHERE leader_pid IS NOT NULL", &[])?;
    ensure!(row.get::<_, i64>(0) > 0, "no worker applies in parallel");
    Ok(())
}

fn streaming(test: &Test) -> Result<()> {
    stream(test, "logical_decoding_work_mem = '64kB'", 100)
}

/// Every change is a stream block of its own.
fn streaming_every_change(test: &Test) -> Result<()> {
    // The setting came with 16.
    if test.server().major < 16 {
        return Ok(());
    }
    stream(test, "debug_logical_replication_streaming = immediate", 40)
}

fn stream(test: &Test, setting: &str, portion: u32) -> Result<()> {
    let pair = traffic_pair(test)?;
    pair.publisher()?.batch_execute(&format!("ALTER DATABASE {} SET {setting}", Pair::DATABASE))?;
    pair.subscribe_in_place("pub", streaming_option(test))?;
    let traffic = Traffic::new(&pair.publisher, Pair::DATABASE, 1).big(0.3);
    traffic.run(portion, 0, |_| Ok(()))?;
    pair.check_equal()?;
    check_streamed(&pair)?;
    check_parallel(&pair)?;

    pair.on_both(
        "ALTER TABLE item ADD gone int;
         ALTER TABLE item DROP COLUMN gone, ADD more text DEFAULT 'more', ALTER n TYPE bigint;
         ALTER TABLE history ADD at timestamptz DEFAULT '2026-01-01';
         ALTER TABLE unkeyed RENAME v TO w;
         ALTER TABLE emptied DROP CONSTRAINT emptied_pkey, ADD PRIMARY KEY (v, id)",
    )?;
    traffic.run(portion, 1, |_| kill_walsenders(&pair.publisher))?;
    pair.check_equal().context("after changes of tables")?;
    pair.check_plugin()
}

/// Waits until the server has turned two-phase commit on, which it does after the copy of the tables.
fn wait_for_two_phase(subscriber: &mut Client) -> Result<()> {
    wait_until("two-phase commit to be on", || {
        let row = subscriber.query_one(
            "SELECT subtwophasestate FROM pg_subscription s JOIN pg_database d ON d.oid = subdbid
             WHERE datname = current_database()",
            &[],
        )?;
        Ok(row.get::<_, i8>(0) == b'e'.cast_signed())
    })
}

/// How many transactions with changes are prepared on the publisher. Checks that the same are on the subscriber.
fn check_prepared(pair: &Pair) -> Result<usize> {
    pair.catch_up()?;
    let xids = |client: &mut Client, query: &str| -> Result<Vec<String>> {
        Ok(client.query(query, &[])?.iter().map(|row| row.get(0)).collect())
    };
    let publisher = xids(
        &mut pair.publisher()?,
        &format!(
            "SELECT transaction::text FROM pg_prepared_xacts WHERE split_part(gid, ' ', 2) <> '{EMPTY}' ORDER BY 1"
        ),
    )?;
    // There they are called after the subscription and the transaction.
    let subscriber =
        xids(&mut pair.subscriber()?, "SELECT split_part(gid, '_', 4) FROM pg_prepared_xacts ORDER BY 1")?;
    ensure!(
        publisher == subscriber,
        "{publisher:?} are prepared on the publisher, {subscriber:?} on the subscriber"
    );
    Ok(publisher.len())
}

/// A name for a prepared transaction, as long as one may be.
fn longest_gid(start: &str) -> String {
    const BYTES: usize = 199;
    let wide = format!("{start}{}", "é".repeat((BYTES - start.len()) / 2));
    let rest = "-".repeat(BYTES - wide.len());
    wide + &rest
}

/// What is prepared. `$first` stands for a number after which keys are free.
const BODIES: [&str; 7] = [
            "INSERT INTO history SELECT -1, $first + i, 'small' FROM generate_series(1, 10) i",
            "INSERT INTO item SELECT $first + i, i, md5(i::text) FROM generate_series(1, 2000) i",
            "INSERT INTO item SELECT $first + 10000 + i, i, md5(i::text) FROM generate_series(1, 2000) i;
                 SAVEPOINT a; INSERT INTO history SELECT -1, $first + 1000 + i, 'gone' FROM generate_series(1, 2000) i;
                 ROLLBACK TO a; INSERT INTO unkeyed SELECT -1, i, 'kept' FROM generate_series(1, 10) i;
                 SAVEPOINT b; UPDATE item SET n = -n WHERE id > $first + 10000; RELEASE b",
            "SELECT 1",
            "INSERT INTO unpublished VALUES (1)",
            "SELECT pg_logical_emit_message(true, 'two', 'phases')",
            "TRUNCATE emptied; INSERT INTO emptied SELECT i, '$first' FROM generate_series(1, 5) i",
        ];
const SUBTRANSACTIONS: usize = 2;
/// Of an empty transaction nothing is decoded.
const EMPTY: usize = 3;
const TRUNCATES: usize = 6;

/// Transactions are prepared, something is interrupted, and they are settled.
fn two_phase(test: &Test) -> Result<()> {
    let pair = traffic_pair(test)?;
    pair.subscribe_in_place("pub", &format!(", two_phase = true{}", streaming_option(test)))?;
    wait_for_two_phase(&mut pair.subscriber()?)?;
    pair.check_plugin()?;

    for (round, interruption) in Interruption::ALL.into_iter().enumerate() {
        let first = i64::try_from(round)? * 100_000;
        let mut publisher = pair.publisher()?;
        let mut gids = Vec::new();
        for (number, body) in BODIES.iter().enumerate() {
            // The lock of TRUNCATE lets only one be prepared; an 18 doesn't stand rolled back subtransactions well.
            let ends: &[&str] = match number {
                SUBTRANSACTIONS if test.server().major >= 18 => &["COMMIT"],
                TRUNCATES => &["COMMIT"],
                _ => &["ROLLBACK", "COMMIT"],
            };
            for end in ends {
                let gid = quote::literal(&longest_gid(&format!("{round} {number} {end} ")));
                // Keys of their own, since nobody else can tell yet which are free.
                let first = if *end == "ROLLBACK" { first + 50_000 } else { first };
                let body = body.replace("$first", &first.to_string());
                publisher.batch_execute(&format!("BEGIN; {body}; PREPARE TRANSACTION {gid}"))?;
                gids.push((*end, gid, number));
            }
        }
        // The subscriber has all of them in every second round.
        if round % 2 == 0 {
            check_prepared(&pair)?;
            check_streamed(&pair)?;
        }
        interruption.happen(&pair)?;
        let prepared = check_prepared(&pair).with_context(|| format!("after {interruption:?}"))?;
        let wanted = gids.iter().filter(|(.., number)| *number != EMPTY).count();
        ensure!(prepared == wanted, "{prepared} transactions are prepared, not {wanted}");

        let mut publisher = pair.publisher()?;
        publisher.batch_execute("INSERT INTO history VALUES (-2, 0, 'between')")?;
        let (some, others) = gids.split_at(gids.len() / 2);
        for (end, gid, _) in some {
            publisher.batch_execute(&format!("{end} PREPARED {gid}"))?;
        }
        // Nobody has waited for the subscriber.
        interruption.happen(&pair)?;
        let mut publisher = pair.publisher()?;
        for (end, gid, _) in others {
            publisher.batch_execute(&format!("{end} PREPARED {gid}"))?;
        }
        publisher.batch_execute("DELETE FROM unpublished")?;
        let prepared = check_prepared(&pair)?;
        ensure!(prepared == 0, "{prepared} transactions are still prepared");
        pair.check_equal().with_context(|| format!("after {interruption:?}"))?;
    }
    pair.check_plugin()
}

/// Subscriptions in several modes at once, while everything is interrupted in the middle of traffic.
fn every_mode_interrupted(test: &Test) -> Result<()> {
    let streaming = streaming_option(test);
    let modes = Modes::subscribe(
        test,
        &[
            ("streaming", Way::InPlace, streaming.to_owned()),
            ("two_phase", Way::InPlace, format!(", two_phase = true{streaming}")),
            ("binary_mode", Way::InPlace, ", copy_data = false, binary = true".to_owned()),
        ],
    )?;
    modes.run(2, 80, &Interruption::ALL)
}

/// Walsenders are killed all the time.
fn soak(test: &Test) -> Result<()> {
    let streaming = streaming_option(test);
    let modes = Modes::subscribe(
        test,
        &[
            ("plain", Way::InPlace, ", copy_data = false".to_owned()),
            ("by_name", Way::ByName, format!(", binary = true{streaming}")),
        ],
    )?;
    modes.run(3, 40, &[Interruption::WalsendersKilled; 8])
}

/// Subscriptions to the same publication, each in a database of its own that has its name.
struct Modes {
    pair: Pair,
    names: Vec<&'static str>,
}

impl Modes {
    fn subscribe(test: &Test, modes: &[(&'static str, Way, String)]) -> Result<Modes> {
        let pair = traffic_pair(test)?;
        for (name, way, options) in modes {
            pair.subscriber.create_database_named(name)?;
            let mut subscriber = pair.subscriber.client(name)?;
            subscriber.batch_execute(SCHEMA)?;
            subscribe(*way, name, (&pair.publisher, Pair::DATABASE), &mut subscriber, "pub", options)?;
            wait_for_copy(&mut subscriber)?;
            if options.contains("two_phase") {
                wait_for_two_phase(&mut subscriber)?;
            }
        }
        Ok(Modes { pair, names: modes.iter().map(|(name, ..)| *name).collect() })
    }

    /// Traffic with interruptions, after which all have the same.
    fn run(&self, seed: u64, portion: u32, interruptions: &[Interruption]) -> Result<()> {
        let Modes { pair, names } = self;
        self.check_plugin()?;
        let mut traffic = Traffic::new(&pair.publisher, Pair::DATABASE, seed).prepared();
        if interruptions.iter().any(|what| matches!(what, Interruption::PublisherStopped(_))) {
            traffic = traffic.stopped();
        }
        traffic.run(portion, interruptions.len().try_into()?, |call| {
            let interruption = interruptions[call as usize];
            interruption.happen(pair).with_context(|| format!("{interruption:?}"))
        })?;
        wait_for_catch_up(&pair.publisher, Pair::DATABASE, names)?;
        for name in names {
            let mut subscriber = pair.subscriber.client(name)?;
            check_equal(&mut pair.publisher()?, &mut subscriber).with_context(|| (*name).to_owned())?;
            let left = subscriber.query("SELECT gid FROM pg_prepared_xacts", &[])?;
            ensure!(left.is_empty(), "{} transactions are still prepared on the subscriber", left.len());
        }
        self.check_plugin()
    }

    fn check_plugin(&self) -> Result<()> {
        let publisher = &self.pair.publisher;
        self.names.iter().try_for_each(|name| check_plugin(publisher, name).map(drop))
    }
}

/// Each side publishes to the other what it has not got from there.
fn both_directions(test: &Test) -> Result<()> {
    // `origin` came with 16.
    if test.server().major < 16 {
        return Ok(());
    }
    let settings = Way::InPlace.settings(test);
    let pair = Pair::with_settings(test, settings.clone(), settings)?;
    pair.on_both(SCHEMA)?;
    let sides = [(&pair.publisher, "forth"), (&pair.subscriber, "back")];
    for (cluster, _) in sides {
        publish_traffic(&mut cluster.client(Pair::DATABASE)?)?;
    }
    for ((from, name), (to, _)) in [(sides[0], sides[1]), (sides[1], sides[0])] {
        let options = format!(", origin = none{}", streaming_option(test));
        let mut to = to.client(Pair::DATABASE)?;
        subscribe(Way::InPlace, name, (from, Pair::DATABASE), &mut to, "pub", &options)?;
        check_plugin(from, name)?;
    }
    let traffic = |cluster| Traffic::new(cluster, Pair::DATABASE, 4).without_origin();
    thread::scope(|scope| {
        let back = scope.spawn(|| {
            traffic(&pair.subscriber).other_keys().run(60, 3, |_| kill_walsenders(&pair.subscriber))
        });
        traffic(&pair.publisher).run(60, 3, |_| kill_walsenders(&pair.publisher))?;
        back.join().map_err(|_| anyhow::anyhow!("the traffic back panicked"))?
    })?;
    for (cluster, name) in sides {
        wait_for_catch_up(cluster, Pair::DATABASE, &[name])?;
    }
    check_equal(&mut pair.publisher()?, &mut pair.subscriber()?)?;

    // What has an origin doesn't pass, however it is called.
    let mut publisher = pair.publisher()?;
    publisher.batch_execute(
        "SELECT pg_replication_origin_create('elsewhere');
         SELECT pg_replication_origin_session_setup('elsewhere');
         INSERT INTO history VALUES (-1, 1, 'from elsewhere');
         SELECT pg_replication_origin_session_reset();
         INSERT INTO history VALUES (-1, 2, 'from here')",
    )?;
    wait_for_catch_up(&pair.publisher, Pair::DATABASE, &["forth"])?;
    let arrived = pair.subscriber()?.query("SELECT v FROM history WHERE session = -1", &[])?;
    let arrived: Vec<&str> = arrived.iter().map(|row| row.get(0)).collect();
    ensure!(arrived == ["from here"], "what arrived: {arrived:?}");
    for (cluster, name) in sides {
        check_plugin(cluster, name)?;
    }
    Ok(())
}

/// Values of many types, to a subscriber whose types have other OIDs and whose columns have another order.
fn binary_types(test: &Test) -> Result<()> {
    const ROWS: u32 = 60;
    let pair = Pair::new(test, Way::InPlace)?;
    // The binary form of a regtype is an OID, which names another type there. That of an empty vector is refused.
    let types: Vec<_> = values::TYPES
        .iter()
        .filter(|kind| !["regtype", "int2vector", "oidvector"].contains(&kind.sql))
        .collect();
    let columns: Vec<_> =
        types.iter().enumerate().map(|(number, kind)| format!("c{number} {}", kind.sql)).collect();
    let setup = values::TYPE_SETUP.join(";");
    pair.publisher()?.batch_execute(&format!(
        "{setup}; CREATE TABLE t (id int PRIMARY KEY, {}); ALTER TABLE t REPLICA IDENTITY FULL;
         CREATE PUBLICATION pub FOR ALL TABLES",
        columns.join(", ")
    ))?;
    let reversed: Vec<_> = columns.iter().rev().cloned().collect();
    pair.subscriber()?.batch_execute(&format!(
        "CREATE TYPE other AS ENUM ('one', 'two'); {setup};
         CREATE TABLE t ({}, id int PRIMARY KEY)",
        reversed.join(", ")
    ))?;
    // From 16 on the copy is binary too, which not all of these types can be.
    pair.subscribe_in_place("pub", ", binary = true, copy_data = false")?;

    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut value = |kind| {
        if rng.random_bool(0.1) { "NULL".to_owned() } else { values::value(&mut rng, kind) }
    };
    let mut publisher = pair.publisher()?;
    for id in 0..ROWS {
        let row: Vec<_> = types.iter().map(|kind| value(kind)).collect();
        publisher.batch_execute(&format!("INSERT INTO t VALUES ({id}, {})", row.join(", ")))?;
    }
    for id in (0..ROWS).step_by(2) {
        let row: Vec<_> = types
            .iter()
            .enumerate()
            .skip(id as usize % 7)
            .step_by(7)
            .map(|(number, kind)| format!("c{number} = {}", value(kind)))
            .collect();
        publisher.batch_execute(&format!("UPDATE t SET {} WHERE id = {id}", row.join(", ")))?;
    }
    publisher
        .batch_execute("DELETE FROM t WHERE id % 5 = 0; UPDATE t SET id = id + 1000 WHERE id % 3 = 0")?;
    let names: Vec<_> = (0..types.len()).map(|number| format!("c{number}")).collect();
    let query = format!("SELECT id, {} FROM t", names.join(", "));
    pair.check_rows(&query, &query)
}

/// Commits wait for the subscriber: none of them may wait for output that was gathered and not sent.
fn synchronous(test: &Test) -> Result<()> {
    /// Far more than any commit takes, and far less than a commit that nothing wakes.
    const LIMIT: Duration = Duration::from_secs(20);
    // Neither side sends anything from time to time, which would hide that something was kept.
    let pair = Pair::with_settings(
        test,
        Way::InPlace.settings(test).set("wal_sender_timeout", "0"),
        Settings::default().set("wal_receiver_status_interval", "1h").set("wal_receiver_timeout", "0"),
    )?;
    pair.on_both(SCHEMA)?;
    let mut publisher = pair.publisher()?;
    publish_traffic(&mut publisher)?;
    publisher
        .batch_execute(&format!("ALTER DATABASE {} SET pgoutput_rs.flush_bytes = '16MB'", Pair::DATABASE))?;
    let options = format!(", synchronous_commit = on, two_phase = true{}", streaming_option(test));
    pair.subscribe_in_place("pub", &options)?;
    wait_for_two_phase(&mut pair.subscriber()?)?;
    let is_synchronous = |wanted: bool| {
        wait_until("the subscription to be synchronous, or not", || {
            let row = pair.publisher()?.query_one(
                "SELECT count(*) FROM pg_stat_replication WHERE application_name = $1 AND sync_state = 'sync'",
                &[&Pair::SUBSCRIPTION],
            )?;
            Ok((row.get::<_, i64>(0) == 1) == wanted)
        })
    };
    publisher
        .batch_execute(&format!("ALTER SYSTEM SET synchronous_standby_names = {}", Pair::SUBSCRIPTION))?;
    publisher.batch_execute("SELECT pg_reload_conf()")?;
    is_synchronous(true)?;

    let mut slowest = Duration::ZERO;
    for round in 0..4 {
        for script in [
            format!("INSERT INTO history VALUES (1, {round}, 'v')"),
            "INSERT INTO unpublished VALUES (1)".to_owned(),
            "INSERT INTO unpublished SELECT i FROM generate_series(1, 3000) i".to_owned(),
            "SELECT pg_logical_emit_message(true, 'a', 'b')".to_owned(),
            "SELECT pg_logical_emit_message(false, 'a', 'b'); INSERT INTO unpublished VALUES (1)".to_owned(),
            format!("INSERT INTO item SELECT {round} * 10000 + i, i, md5(i::text) FROM generate_series(1, 300) i"),
            format!(
                "INSERT INTO item SELECT {round} * 10000 + 1000 + i, i, md5(i::text) FROM generate_series(1, 3000) i"
            ),
            "UPDATE item SET n = n + 1 WHERE id % 3 = 0".to_owned(),
            "BEGIN; SAVEPOINT a; INSERT INTO unkeyed SELECT 1, i FROM generate_series(1, 3000) i; ROLLBACK TO a;
             INSERT INTO unkeyed VALUES (2, 2); COMMIT"
                .to_owned(),
            "TRUNCATE emptied".to_owned(),
            "BEGIN; INSERT INTO unkeyed VALUES (3, 3); PREPARE TRANSACTION 'one'".to_owned(),
            "COMMIT PREPARED 'one'".to_owned(),
            "BEGIN; INSERT INTO unkeyed VALUES (4, 4); PREPARE TRANSACTION 'two'".to_owned(),
            "ROLLBACK PREPARED 'two'".to_owned(),
            "BEGIN; INSERT INTO unpublished VALUES (1); PREPARE TRANSACTION 'three'".to_owned(),
            "COMMIT PREPARED 'three'".to_owned(),
            "CREATE TABLE IF NOT EXISTS later (id int); DROP TABLE later".to_owned(),
        ] {
            let started = Instant::now();
            publisher.batch_execute(&script).with_context(|| script.clone())?;
            let took = started.elapsed();
            ensure!(took < LIMIT, "took {took:?}: {script}");
            slowest = slowest.max(took);
        }
    }
    // Many sessions at once.
    let started = Instant::now();
    Traffic::new(&pair.publisher, Pair::DATABASE, 6).prepared().run(60, 0, |_| Ok(()))?;
    let took = started.elapsed();
    ensure!(took < LIMIT, "the traffic took {took:?}, single transactions at most {slowest:?}");
    is_synchronous(true)?;
    publisher.batch_execute("ALTER SYSTEM RESET synchronous_standby_names")?;
    publisher.batch_execute("SELECT pg_reload_conf()")?;
    is_synchronous(false)?;
    pair.check_equal()?;
    pair.check_plugin()
}
