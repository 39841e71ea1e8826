//! Values of every type, as text and as binary, under settings that change how they look.

use std::process::ExitCode;

use anyhow::Result;
use pgoutput_tests::{Differential, Options, Test, quote, runner, tests};

fn main() -> ExitCode {
    runner::main(tests![every_type, columns_of_many_types, user_defined_types, array_without_binary_form])
}

/// Sessions whose settings change the text of values.
const SESSIONS: &[&[(&str, &str)]] = &[
    &[],
    &[
        ("DateStyle", "German, DMY"),
        ("IntervalStyle", "iso_8601"),
        ("TimeZone", "Asia/Kathmandu"),
        ("bytea_output", "escape"),
        ("extra_float_digits", "0"),
    ],
    &[
        ("DateStyle", "SQL, DMY"),
        ("IntervalStyle", "sql_standard"),
        ("TimeZone", "America/St_Johns"),
        ("extra_float_digits", "-15"),
        ("search_path", "odd, public"),
    ],
    &[
        ("DateStyle", "Postgres, MDY"),
        ("IntervalStyle", "postgres_verbose"),
        ("TimeZone", "<+0530>-5:30"),
        ("extra_float_digits", "3"),
        ("quote_all_identifiers", "on"),
    ],
    &[("client_encoding", "LATIN1"), ("xmlbinary", "hex")],
];

/// Values by hand. Every type that isn't here gets at least a null, and arrays get what their element type has.
const VALUES: &[(&str, &[&str])] = &[
    ("bool", &["t", "f"]),
    ("bytea", &["", r"\x00", r"\x00ff5c27225c5c", "abc", r"\x7f80"]),
    ("char", &["", "x", r"\377", r"\001", "\"", "\\"]),
    (
        "name",
        &["", "a", "Ä\"quoted\" name", "012345678901234567890123456789012345678901234567890123456789abc"],
    ),
    ("int8", &["0", "-1", "9223372036854775807", "-9223372036854775808", "10000000000", "99999999"]),
    ("int2", &["0", "-1", "32767", "-32768", "10"]),
    ("int4", &["0", "-1", "2147483647", "-2147483648", "100", "99", "10", "9"]),
    ("int2vector", &["", "1 -2 3"]),
    ("oidvector", &["", "1 4294967295"]),
    ("text", &["", " ", "NULL", "a\\b\"c'd", "two\nlines\ttab", "äöü ß", "{braces,comma}", "\u{1}"]),
    ("oid", &["0", "4294967295", "2147483648"]),
    ("tid", &["(0,0)", "(4294967295,65535)"]),
    ("xid", &["0", "4294967295"]),
    ("cid", &["0", "4294967295"]),
    ("xid8", &["0", "18446744073709551615"]),
    ("json", &["null", "{ \"a\" :  [1, 2.50, \"\\u00e4\"], \"a\":1 }", "\"\"", "[]"]),
    (
        "jsonb",
        &[
            "null",
            "{\"b\": [1, 2.50, \"\\u00e4\\n\"], \"a\": {\"x\": null, \"\": true}}",
            "\"\"",
            "[]",
            "{}",
            "1e400",
            "-0.00",
            "false",
            "\"\\b\\f\\n\\r\\t\\u0001\\u001f\u{7f}\\\"\\\\/é\"",
            "[[], {}, [[]], {\"a\": {}}, \"\", null, true]",
            // Of every 32 elements one is stored in another way.
            "[0,1,2.5,3,4,\"5\",6,7,8,9,10,1e3,12,13,14,15,16,[17],18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,\"34\"]",
            "{\"k0\":0,\"k1\":1,\"k2\":[2],\"k3\":\"3\",\"k4\":4,\"k5\":{\"a\":5},\"k6\":6,\"k7\":7,\"k8\":8,\"k9\":9,\"k10\":10,\
             \"k11\":11,\"k12\":12,\"k13\":13,\"k14\":14,\"k15\":15,\"k16\":16.16,\"k17\":null}",
            // Deeper than what is put out without the server's function.
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\
             ]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        ],
    ),
    (
        "jsonpath",
        &["$", "lax $.a[*] ? (@.b > 1.5 && @.c like_regex \"^x\" flag \"i\")", "strict $.**{2 to 4}"],
    ),
    ("point", &["(0,0)", "(1e300,-1e-300)", "(Infinity,NaN)", "(-0,0.1)"]),
    ("lseg", &["[(0,0),(1,1)]", "[(0.1,0.2),(-Infinity,3)]"]),
    ("path", &["[(0,0),(1,1),(2,0)]", "((0,0),(1,1),(2,0.3))"]),
    ("box", &["(1,1),(0,0)", "(0.1,0.2),(-3,4)"]),
    ("polygon", &["((0,0),(1,1),(2,0.1))", "((0,0))"]),
    ("line", &["{1,2,3}", "{0,-1,0.3}"]),
    ("circle", &["<(0,0),1>", "<(0.1,-0.2),0>", "<(1,2),Infinity>"]),
    (
        "float4",
        &[
            "0",
            "-0",
            "1",
            "0.1",
            "3.4028235e38",
            "1e-45",
            "1.17549435e-38",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e15",
            "123456.79",
        ],
    ),
    (
        "float8",
        &[
            "0",
            "-0",
            "1",
            "0.1",
            "1.7976931348623157e308",
            "5e-324",
            "2.2250738585072014e-308",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e15",
            "1e16",
            "123456789012345680",
            "0.0001",
            "0.00001",
            "0.30000000000000004",
            "9007199254740993",
        ],
    ),
    ("money", &["0", "0.01", "-1234567.89", "92233720368547758.07", "-92233720368547758.08"]),
    ("macaddr", &["08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff"]),
    ("macaddr8", &["08:00:2b:01:02:03:04:05", "00:00:00:00:00:00:00:00"]),
    (
        "inet",
        &[
            "0.0.0.0",
            "255.255.255.255/0",
            "192.168.1.5/24",
            "::",
            "::1/127",
            "::ffff:1.2.3.4",
            "2001:db8::a:0:0:1/64",
            "1:0:0:2::3",
        ],
    ),
    ("cidr", &["10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "2001:db8::/32", "::/0"]),
    ("bpchar", &["", "x", "trailing  ", "ä"]),
    ("varchar", &["", "x", "trailing  ", "ä"]),
    (
        "date",
        &[
            "2000-01-01",
            "1999-12-31",
            "4713-11-24 BC",
            "5874897-12-31",
            "infinity",
            "-infinity",
            "0001-01-01",
            "0044-03-15 BC",
        ],
    ),
    ("time", &["00:00:00", "24:00:00", "23:59:59.999999", "12:34:56.7", "01:02:03.000001"]),
    (
        "timetz",
        &["00:00:00+00", "24:00:00-12", "23:59:59.999999+15:59:59", "12:34:56.7-03:30", "01:02:03+05:45:10"],
    ),
    (
        "timestamp",
        &[
            "2000-01-01 00:00:00",
            "1999-12-31 23:59:59.999999",
            "4713-11-24 00:00:00 BC",
            "294276-12-31 23:59:59.999999",
            "infinity",
            "-infinity",
            "0001-01-01 00:00:00.5 BC",
            "2024-02-29 12:34:56.1",
        ],
    ),
    (
        "timestamptz",
        &[
            "2000-01-01 00:00:00+00",
            "1999-12-31 23:59:59.999999+00",
            "4713-11-24 00:00:00+00 BC",
            "294276-12-31 23:59:59.999999+00",
            "infinity",
            "-infinity",
            "1883-11-18 12:00:00+00",
            "1935-03-31 00:00:00+00",
            "2024-07-01 12:34:56.1+00",
            "1985-12-31 18:30:00+00",
            "0001-01-01 00:00:00+00",
        ],
    ),
    (
        "interval",
        &[
            "0",
            "1 year 2 mons -3 days 04:05:06.789",
            "-1 year -2 mons +3 days -04:05:06.000001",
            "178000000 years",
            "-178000000 years",
            "1 day",
            "-00:00:00.5",
            "2562047788:00:54.775807",
            "-1 day 1 hour",
        ],
    ),
    ("bit", &["0", "1"]),
    ("varbit", &["", "1", "10101010", "101010101"]),
    (
        "numeric",
        &[
            "0",
            "0.00",
            "-0.1",
            "1e130",
            "1e-130",
            "-1e130",
            "NaN",
            "Infinity",
            "-Infinity",
            "10000",
            "9999.9999",
            "99990000.00010000",
            "12345678901234567890.123456789",
            "1e1000",
            "1e-1000",
            "0.0001",
            "1.50",
            "100000000",
        ],
    ),
    ("refcursor", &["", "cursor"]),
    ("uuid", &["00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"]),
    ("pg_lsn", &["0/0", "FFFFFFFF/FFFFFFFF", "16/B374D848"]),
    ("tsvector", &["", "'a':1A,2B,3 'it''s' 'b\\\\c':16383", "fat:2 cat:3C"]),
    ("tsquery", &["", "fat & (cat | !rat:AB*) <-> dog <3> 'it''s'", "!a"]),
    ("txid_snapshot", &["10:20:10,14,15", "1:1:"]),
    ("pg_snapshot", &["10:20:10,14,15", "1:1:"]),
    ("regproc", &["-", "now", "pg_catalog.int4in", "99999"]),
    ("regprocedure", &["-", "abs(integer)", "public.odd_function(odd.\"Odd Table\",integer[])"]),
    ("regoper", &["0", "||/"]),
    ("regoperator", &["0", "+(integer,integer)", "!!(NONE,tsquery)"]),
    ("regclass", &["-", "pg_class", "odd.\"Odd Table\"", "public.plain", "99999"]),
    ("regtype", &["-", "integer", "character varying", "odd.\"Odd Table\"", "int4[]", "99999"]),
    ("regcollation", &["-", "\"C\"", "\"default\""]),
    ("regconfig", &["english", "99999"]),
    ("regdictionary", &["simple"]),
    ("regrole", &["-", "postgres", "99999"]),
    ("regnamespace", &["-", "pg_catalog", "odd", "99999"]),
    ("aclitem", &["postgres=r*w/postgres", "=U/postgres"]),
    ("int4range", &["empty", "[1,10)", "(,)", "(,5]", "[-2147483648,)"]),
    ("int8range", &["empty", "[1,10)", "(,)", "[9223372036854775806,)"]),
    ("numrange", &["empty", "(1.10,2.200]", "[NaN,]", "(-Infinity,Infinity)", "[1e130,)"]),
    ("tsrange", &["empty", "[2000-01-01 00:00,2001-01-01 00:00:00.5)", "(,infinity]", "[-infinity,)"]),
    ("tstzrange", &["empty", "[2000-01-01 00:00+00,2001-07-01 00:00:00.5+00)", "(,infinity]"]),
    ("daterange", &["empty", "[2000-01-01,2001-01-01]", "(,)", "[-infinity,infinity]", "[0044-03-15 BC,)"]),
    ("int4multirange", &["{}", "{[1,3),[5,8)}", "{(,1),[9,)}"]),
    ("int8multirange", &["{}", "{[1,3),[5,8)}"]),
    ("nummultirange", &["{}", "{[1.1,3.30),(5,8]}", "{(,)}"]),
    ("tsmultirange", &["{}", "{[2000-01-01 00:00,2001-01-01 00:00:00.5)}"]),
    ("tstzmultirange", &["{}", "{[2000-01-01 00:00+00,2001-07-01 00:00:00.5+00),[2010-01-01 00:00+00,)}"]),
    ("datemultirange", &["{}", "{[2000-01-01,2001-01-01),[2010-01-01,infinity]}"]),
    ("_int4", &["{}", "{{1,2},{3,NULL}}", "[-1:0][5:6]={{1,NULL},{NULL,4}}", "{{{{{{1}}}}}}", "[2:2]={7}"]),
    ("_text", &["{}", "{\"\",NULL,\"NULL\",null,\"a,b\",\"{\",\"\\\"\",\"\\\\\",\" \"}", "[0:1]={a,ä}"]),
    ("_box", &["{(1,1),(0,0);(3,3),(2,2)}"]),
    ("_int2vector", &["{\"1 2\",\"3\"}"]),
    ("_oidvector", &["{\"1 2\",NULL}"]),
];

/// Values that can't be written as text: queries for them.
const QUERIES: &[(&str, &str)] = &[
    ("pg_node_tree", "SELECT adbin FROM pg_attrdef WHERE adrelid = 'plain'::regclass"),
    ("pg_ndistinct", "SELECT stxdndistinct FROM pg_statistic_ext_data"),
    ("pg_dependencies", "SELECT stxddependencies FROM pg_statistic_ext_data"),
    ("pg_mcv_list", "SELECT stxdmcv FROM pg_statistic_ext_data"),
];

/// A function that fills a table of each type, and the tables; what a value is written with comes from above.
const TABLES: &str = r#"
    CREATE SCHEMA odd;
    CREATE TABLE odd."Odd Table" (x int);
    CREATE FUNCTION public.odd_function(odd."Odd Table", int[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
    CREATE TABLE plain (a int DEFAULT 1 + 2, b int);
    INSERT INTO plain SELECT i % 10, i % 10 FROM generate_series(1, 1000) i;
    CREATE STATISTICS plain_statistics ON a, b FROM plain;
    ANALYZE plain;

    CREATE SCHEMA every;
    CREATE VIEW every_type AS
        SELECT t.oid, t.typname, t.typsubscript = 'array_subscript_handler'::regproc AND t.typlen = -1
                                 AND t.typelem <> 0 AND t.typcategory = 'A' AND t.typname !~ 'vector$' AS is_array,
               t.typelem
        FROM pg_type t
        WHERE t.typtype IN ('b', 'r', 'm') AND t.typcategory <> 'P' AND t.typisdefined
              AND t.typnamespace = 'pg_catalog'::regnamespace
              -- The rows of catalogs: their elements are composites.
              AND NOT EXISTS (SELECT 1 FROM pg_type e WHERE e.oid = t.typelem AND e.typtype NOT IN ('b', 'r', 'm'));
    DO $$
    DECLARE
        type record;
    BEGIN
        FOR type IN SELECT * FROM every_type ORDER BY oid LOOP
            EXECUTE format('CREATE TABLE every.%I (id serial, v pg_catalog.%I)', type.typname, type.typname);
            EXECUTE format('ALTER TABLE every.%I REPLICA IDENTITY FULL', type.typname);
        END LOOP;
    END
    $$;

    -- Arrays of all that there is of the elements, if they have a binary form: one- and two-dimensional, with another lower bound.
    CREATE PROCEDURE fill_arrays() LANGUAGE plpgsql AS $$
    DECLARE
        type record;
        elements text;
    BEGIN
        FOR type IN
            SELECT a.typname, e.typname AS element FROM every_type a JOIN pg_type e ON e.oid = a.typelem
            WHERE a.is_array AND e.typname !~ 'vector$' AND e.typsend <> 0 ORDER BY a.oid
        LOOP
            elements := format('(SELECT array_agg(v ORDER BY id) FROM every.%I)', type.element);
            EXECUTE format('INSERT INTO every.%I (v) SELECT %s', type.typname, elements);
            EXECUTE format('INSERT INTO every.%I (v) SELECT array_agg(%s) FROM generate_series(1, 2)',
                           type.typname, elements);
            -- An array with bounds of its own is written so.
            IF type.element NOT LIKE 'pg\_%' AND type.element <> 'gtsvector' THEN
                EXECUTE format('INSERT INTO every.%I (v)
                                SELECT format(''[-1:%%s]=%%s'', cardinality(a) - 2, a)::%I FROM (SELECT %s AS a) a',
                               type.typname, type.typname, elements);
            END IF;
        END LOOP;
    END
    $$;

    -- Old rows as well.
    CREATE PROCEDURE change_all() LANGUAGE plpgsql AS $$
    DECLARE
        type record;
    BEGIN
        FOR type IN SELECT * FROM every_type ORDER BY oid LOOP
            EXECUTE format('UPDATE every.%I SET id = -id', type.typname);
            EXECUTE format('DELETE FROM every.%I', type.typname);
        END LOOP;
    END
    $$;
    CREATE PUBLICATION p FOR TABLES IN SCHEMA every
"#;

fn every_type(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut differential = Differential::with_setup(&cluster, TABLES)?;
    for session in SESSIONS {
        differential =
            differential.case(Options::new(1, "p"), session).case(Options::new(1, "p").binary(), session);
    }
    let mut tables = 0;
    let seen = differential.run(|client| {
        let types = client.query("SELECT typname::text FROM every_type ORDER BY oid", &[])?;
        tables = types.len();
        let mut script = String::from("BEGIN;\n");
        for row in types {
            let name: &str = row.get(0);
            let table = format!("every.{}", quote::identifier(name));
            script += &format!("INSERT INTO {table} (v) VALUES (NULL);\n");
            for (_, values) in VALUES.iter().filter(|(of, _)| *of == name) {
                for value in *values {
                    script += &format!("INSERT INTO {table} (v) VALUES ({});\n", quote::literal(value));
                }
            }
            for (_, query) in QUERIES.iter().filter(|(of, _)| *of == name) {
                script += &format!("INSERT INTO {table} (v) {query};\n");
            }
        }
        // A server without libxml takes no xml.
        script += "DO $$ BEGIN
                       INSERT INTO every.xml (v) VALUES ('<a b=\"1\">ä</a>'), ('text'), ('<?xml version=\"1.0\"?><x/>');
                   EXCEPTION WHEN feature_not_supported THEN NULL; END $$;\n";
        script += "COMMIT; CALL fill_arrays(); CALL change_all();";
        client.batch_execute(&script)?;
        Ok(())
    })?;
    seen.expect("BCRIUD")?;
    // Each stream brings each table.
    let streams = SESSIONS.len() * 2 * 2;
    anyhow::ensure!(tables > 100 && seen.count('R') == tables * streams, "{tables} tables, {:?}", seen);
    Ok(())
}

fn columns_of_many_types(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (
             a numeric(10,3), b varchar(7), c char(9), d bit(5), e varbit(9), f timestamp(3), g timestamptz(0),
             h time(1), i timetz(2), j interval day to second(3), k interval year to month, l numeric(3,-2),
             m char, n \"char\", o float(10), p smallserial, q numeric(5,5)[], r varchar(4)[],
             PRIMARY KEY (a, b, g)
         );
         CREATE PUBLICATION p FOR TABLE t",
    )?;
    for session in SESSIONS {
        differential =
            differential.case(Options::new(1, "p"), session).case(Options::new(1, "p").binary(), session);
    }
    let seen = differential.run_script(
        "INSERT INTO t VALUES (1234567.8915, 'abc', 'x', B'10101', B'1', '2020-01-01 12:00:00.123456',
             '1930-06-01 12:00:00.9+00', '12:00:00.16', '12:00:00.125+01', '3 days 04:05:06.7891', '14 months',
             12345, 'y', 'z', 0.1, 7, '{0.12345,NULL}', '{ab,\"c,d\"}');
         INSERT INTO t (a, b, g) VALUES (0, '', '-infinity'), ('NaN', 'äöü', '4000-01-01 BC');
         UPDATE t SET c = 'changed';
         UPDATE t SET b = b || '+', g = g + '1 day' WHERE g <> '-infinity';
         DELETE FROM t",
    )?;
    seen.expect("BCRIUD")
}

fn user_defined_types(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut differential = Differential::with_setup(
        &cluster,
        "CREATE SCHEMA \"Types\";
         CREATE TYPE mood AS ENUM ('sad', 'it''s', 'Ä', '', 'a \"b\"');
         CREATE TYPE \"Types\".pair AS (a int, b text, \"C c\" numeric);
         CREATE TYPE nested AS (p \"Types\".pair, m mood[], d date);
         CREATE DOMAIN positive AS int CHECK (VALUE > 0);
         CREATE DOMAIN more_positive AS positive CHECK (VALUE > 1);
         CREATE DOMAIN moods AS mood[];
         CREATE DOMAIN pairs AS \"Types\".pair;
         CREATE TYPE timerange AS RANGE (SUBTYPE = time, MULTIRANGE_TYPE_NAME = times);
         CREATE TYPE moodrange AS RANGE (SUBTYPE = mood);
         CREATE TYPE opaque;
         CREATE FUNCTION opaque_in(cstring) RETURNS opaque LANGUAGE internal STRICT IMMUTABLE AS 'textin';
         CREATE FUNCTION opaque_out(opaque) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE AS 'textout';
         CREATE TYPE opaque (INPUT = opaque_in, OUTPUT = opaque_out, LIKE = text);
         CREATE TABLE row_type (x int, y mood);
         CREATE TABLE t (id int PRIMARY KEY, a mood, b \"Types\".pair, c nested, d positive, e more_positive, f moods,
                         g pairs, h timerange, i times, j moodrange, k opaque, l row_type, m mood[], n \"Types\".pair[],
                         o more_positive[], p opaque[], q times[], r mood, s row_type[],
                         t information_schema.cardinal_number);
         CREATE TABLE key (m mood, d more_positive, v int, PRIMARY KEY (m, d));
         ALTER TABLE row_type DROP COLUMN x, ADD COLUMN z text;
         CREATE PUBLICATION p FOR TABLE t, key",
    )?;
    for session in SESSIONS {
        differential =
            differential.case(Options::new(1, "p"), session).case(Options::new(1, "p").binary(), session);
    }
    let seen = differential.run_script(
        "BEGIN;
         INSERT INTO t (id) VALUES (1);
         INSERT INTO t VALUES (2, 'sad', '(1,\"a,\"\"b\",1.50)', '(\"(,,)\",\"{sad,NULL}\",2000-01-01)', 1, 2,
             '{sad,it''s,\"\"}', '(,\"\",NaN)', '[01:00,02:00)', '{[01:00,02:00),[03:00,)}', '[sad,Ä]', 'opaque text',
             '(Ä,\"\")', '[0:1]={sad,NULL}', '{\"(1,,)\",NULL}', '{2,3}', NULL, '{\"{[01:00,02:00)}\"}', '',
             '{\"(sad,z)\",NULL}', 5);
         INSERT INTO key VALUES ('sad', 2, 1), ('Ä', 3, 1);
         UPDATE key SET v = 2;
         UPDATE key SET m = 'it''s' WHERE m = 'sad';
         -- Values from before.
         ALTER TYPE mood RENAME VALUE 'Ä' TO 'Ö';
         ALTER TYPE mood ADD VALUE 'new' BEFORE 'sad';
         -- It can be used when it is committed.
         COMMIT;
         BEGIN;
         INSERT INTO key VALUES ('new', 9, 9);
         UPDATE t SET a = 'Ö', l = '(Ö,x)';
         ALTER TYPE mood RENAME TO \"Mood\";
         UPDATE t SET a = 'sad';
         ALTER TYPE \"Types\".pair ADD ATTRIBUTE d inet;
         UPDATE t SET b = '(1,b,2,::1)' WHERE id = 2;
         ALTER TABLE t ADD COLUMN u \"Mood\" DEFAULT 'new';
         DELETE FROM key;
         COMMIT",
    )?;
    seen.expect("BCRYIUD")
}

fn array_without_binary_form(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (a aclitem, b aclitem[]);
         CREATE PUBLICATION p FOR TABLE t",
    )?;
    let workload = "INSERT INTO t VALUES ('postgres=r/postgres', NULL), (NULL, '{=r/postgres}')";
    differential.options(Options::new(1, "p")).run_script(workload)?.expect("BRIC")?;
    let differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (a aclitem, b aclitem[]);
         CREATE PUBLICATION p FOR TABLE t",
    )?;
    differential.options(Options::new(1, "p").binary()).run_script(workload)?.expect_error("42883")
}
