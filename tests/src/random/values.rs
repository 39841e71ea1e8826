//! Types of columns, and values of them as SQL expressions.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

/// What values a type takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Whole numbers up to so many.
    Integer(i64),
    /// Characters, at most so many.
    Text(usize),
    /// Bytes.
    Bytes,
    /// One of these expressions.
    OneOf(&'static [&'static str]),
    /// `numeric`.
    Numeric,
    /// `real`.
    Float4,
    /// `double precision`.
    Float8,
    /// `json`.
    Json,
    /// `uuid`.
    Uuid,
    /// Arrays of integers.
    IntegerArray,
    /// Arrays of text.
    TextArray,
}

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its name in SQL.
    pub sql: &'static str,
    /// Its values.
    pub class: Class,
    /// What using it covers.
    pub covers: &'static str,
}

const fn builtin(sql: &'static str, class: Class) -> Type {
    Type { sql, class, covers: "column of a built-in type" }
}

const fn own(sql: &'static str, class: Class, covers: &'static str) -> Type {
    Type { sql, class, covers }
}

/// `int`, for keys.
pub const INT: Type = builtin("int", Class::Integer(i32::MAX as i64));

/// `text`.
pub const TEXT: Type = builtin("text", Class::Text(usize::MAX));

/// `boolean`.
pub const BOOLEAN: Type = builtin("boolean", Class::OneOf(&["true", "false"]));

/// The types that a key column may have.
pub const KEY_TYPES: &[Type] = &[
    INT,
    INT,
    INT,
    builtin("bigint", Class::Integer(i64::MAX)),
    builtin("smallint", Class::Integer(i16::MAX as i64)),
    builtin("numeric", Class::Numeric),
    own("types.small_domain", Class::Integer(i32::MAX as i64), "column of a domain"),
];

/// The schema of the types that are made for a case.
pub const TYPE_SCHEMA: &str = "types";

/// The statements that make them.
pub const TYPE_SETUP: &[&str] = &[
    "CREATE SCHEMA types",
    "CREATE DOMAIN types.small_domain AS int",
    "CREATE DOMAIN types.\"Text Domain\" AS text CHECK (VALUE <> 'never')",
    "CREATE DOMAIN types.nested_domain AS types.\"Text Domain\"",
    "CREATE DOMAIN types.array_domain AS int[]",
    "CREATE TYPE types.mood AS ENUM ('sad', 'ok', 'hap''py')",
    "CREATE TYPE types.pair AS (a int, \"B\" text)",
    "CREATE TYPE types.nested AS (m types.mood, p types.pair, d types.nested_domain)",
    "CREATE DOMAIN types.pair_domain AS types.pair",
    "CREATE TYPE types.float_range AS RANGE (subtype = float8)",
    "CREATE TYPE types.raw",
    "CREATE FUNCTION types.raw_in(cstring) RETURNS types.raw AS 'textin' LANGUAGE internal IMMUTABLE STRICT",
    "CREATE FUNCTION types.raw_out(types.raw) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE STRICT",
    "CREATE TYPE types.raw (INPUT = types.raw_in, OUTPUT = types.raw_out, LIKE = text)",
];

/// The types that any other column may have.
pub const TYPES: &[Type] = &[
    INT,
    TEXT,
    TEXT,
    TEXT,
    builtin("smallint", Class::Integer(i16::MAX as i64)),
    builtin("bigint", Class::Integer(i64::MAX)),
    builtin("oid", Class::OneOf(&["0", "1", "4294967295", "16384"])),
    BOOLEAN,
    builtin("real", Class::Float4),
    builtin("double precision", Class::Float8),
    builtin("numeric", Class::Numeric),
    builtin(
        "numeric(12,4)",
        Class::OneOf(&["0", "-1.5", "12345678.0001", "'NaN'", "0.00004", "99999999.9999"]),
    ),
    builtin("varchar(20)", Class::Text(20)),
    builtin("char(5)", Class::Text(5)),
    builtin("\"char\"", Class::OneOf(&["'a'", "''", "'é'", "'\\377'"])),
    builtin("name", Class::Text(60)),
    builtin("bytea", Class::Bytes),
    builtin("bytea", Class::Bytes),
    builtin("uuid", Class::Uuid),
    builtin(
        "date",
        Class::OneOf(&[
            "'2024-02-29'",
            "'infinity'",
            "'-infinity'",
            "'0044-03-15 BC'",
            "'5874897-12-31'",
            "'1999-12-31'",
            "'2000-01-01'",
            "'0001-01-01'",
        ]),
    ),
    builtin("time", Class::OneOf(&["'00:00'", "'23:59:59.999999'", "'24:00:00'", "'12:34:56.7'"])),
    builtin("time(2)", Class::OneOf(&["'23:59:59.999'", "'12:34:56.78'"])),
    builtin("timetz", Class::OneOf(&["'12:00+02'", "'23:59:59.5-11:30'", "'24:00:00+15:59'"])),
    builtin(
        "timestamp",
        Class::OneOf(&[
            "'2024-02-29 12:34:56.789'",
            "'infinity'",
            "'-infinity'",
            "'4713-01-01 00:00:00 BC'",
            "'294276-12-31 23:59:59.999999'",
            "'2000-01-01'",
            "'1999-12-31 23:59:59.999999'",
        ]),
    ),
    builtin(
        "timestamptz",
        Class::OneOf(&[
            "'2024-07-01 12:34:56.789+02'",
            "'2024-01-01 12:34:56+00'",
            "'infinity'",
            "'-infinity'",
            "'0044-03-15 00:00:00+00 BC'",
            "'1883-11-18 12:00:00+00'",
            "'294276-12-31 00:00:00+00'",
        ]),
    ),
    builtin(
        "interval",
        Class::OneOf(&[
            "'1 year -2 mons 3 days 04:05:06.789'",
            "'-1 day'",
            "'0'",
            "'178000000 years'",
            "'1 mon'",
            "'-00:00:00.000001'",
        ]),
    ),
    builtin("json", Class::Json),
    builtin("jsonb", Class::Json),
    builtin("inet", Class::OneOf(&["'10.1.2.3/8'", "'::1'", "'fe80::/10'", "'127.0.0.1'"])),
    builtin("cidr", Class::OneOf(&["'10.0.0.0/8'", "'2001:db8::/32'"])),
    builtin("macaddr", Class::OneOf(&["'08:00:2b:01:02:03'"])),
    builtin("macaddr8", Class::OneOf(&["'08:00:2b:01:02:03:04:05'"])),
    builtin("bit(5)", Class::OneOf(&["B'10101'", "B'00000'"])),
    builtin("varbit", Class::OneOf(&["B''", "B'101010101'", "B'1'"])),
    builtin("point", Class::OneOf(&["'(1,2)'", "'(-0.1,1e300)'", "'(NaN,Infinity)'"])),
    builtin("box", Class::OneOf(&["'(1,2),(3,4)'"])),
    builtin("path", Class::OneOf(&["'[(1,2),(3,4)]'", "'((1,2),(3,4.5))'"])),
    builtin("polygon", Class::OneOf(&["'((0,0),(1,0),(1,1))'"])),
    builtin("circle", Class::OneOf(&["'<(0,0),1.5>'"])),
    builtin("line", Class::OneOf(&["'{1,-1,0}'"])),
    builtin("lseg", Class::OneOf(&["'[(1,2),(3,4)]'"])),
    builtin("money", Class::OneOf(&["'12.34'", "'-92233720368547758.08'"])),
    builtin("tsvector", Class::OneOf(&["'a:1 fat:2A ''c d'':3'", "''"])),
    builtin("tsquery", Class::OneOf(&["'fat & (rat | !cat)'", "'a <-> b:*'"])),
    builtin("int4range", Class::OneOf(&["'[1,10)'", "'empty'", "'(,5]'", "'[7,)'"])),
    builtin("numrange", Class::OneOf(&["'[1.1,2.2]'", "'empty'"])),
    builtin("tstzrange", Class::OneOf(&["'[2024-01-01 00:00+00,2024-02-01 00:00+00)'", "'(,)'"])),
    builtin("int4multirange", Class::OneOf(&["'{[1,3),[7,9)}'", "'{}'"])),
    builtin("int[]", Class::IntegerArray),
    builtin("text[]", Class::TextArray),
    builtin("date[]", Class::OneOf(&["'{2024-02-29,NULL,infinity}'", "'{}'"])),
    builtin("float8[]", Class::OneOf(&["'{1.1,NaN,-0}'", "'[5:6]={0.1,1e-300}'"])),
    builtin("pg_lsn", Class::OneOf(&["'16/B374D848'", "'0/0'"])),
    builtin("xid8", Class::OneOf(&["'18446744073709551615'", "'3'"])),
    builtin("xid", Class::OneOf(&["'4294967295'", "'3'"])),
    builtin("tid", Class::OneOf(&["'(0,1)'", "'(4294967295,65535)'"])),
    builtin("regclass", Class::OneOf(&["'pg_class'", "'0'", "'4294967295'"])),
    builtin("regtype", Class::OneOf(&["'integer'", "'text[]'", "'types.mood'"])),
    builtin("pg_snapshot", Class::OneOf(&["'10:20:10,14,15'"])),
    builtin("int2vector", Class::OneOf(&["'1 2 3'", "''"])),
    builtin("oidvector", Class::OneOf(&["'1 2 4294967295'"])),
    own(
        "aclitem",
        Class::OneOf(&["'=r/postgres'", "'postgres=arw*/postgres'"]),
        "type without send function",
    ),
    own("types.raw", Class::Text(100), "type without send function"),
    own("types.small_domain", Class::Integer(i32::MAX as i64), "column of a domain"),
    own("types.\"Text Domain\"", Class::Text(usize::MAX), "column of a domain"),
    own("types.nested_domain", Class::Text(usize::MAX), "column of a domain over a domain"),
    own("types.array_domain", Class::IntegerArray, "column of a domain"),
    own("types.mood", Class::OneOf(&["'sad'", "'ok'", "'hap''py'"]), "column of an enum"),
    own("types.mood[]", Class::OneOf(&["'{sad,NULL,ok}'", "'{}'"]), "column of an array of a user's type"),
    own(
        "types.pair",
        Class::OneOf(&["ROW(1, 'x')", "ROW(NULL, NULL)", "ROW(-5, 'a \"quoted\", é')"]),
        "column of a composite type",
    ),
    own(
        "types.nested",
        Class::OneOf(&["ROW('ok', ROW(1, 'x'), 'y')", "ROW(NULL, NULL, '')"]),
        "column of a composite type",
    ),
    own("types.pair_domain", Class::OneOf(&["ROW(7, 'seven')"]), "column of a domain"),
    own(
        "types.pair[]",
        Class::OneOf(&["ARRAY[ROW(1, 'x'), NULL]::types.pair[]"]),
        "column of an array of a user's type",
    ),
    own("types.float_range", Class::OneOf(&["'[0.1,0.2)'", "'empty'"]), "column of a range type"),
];

/// Lengths of text and bytes that are interesting: around the limits of short headers and of toasting.
const LENGTHS: &[usize] = &[0, 1, 5, 20, 126, 127, 300, 1000, 2100, 2500, 5000];

/// A quoted text of a length in characters.
fn text(rng: &mut impl Rng, limit: usize) -> String {
    const PLAIN: &[&str] = &[
        "''",
        "'a'",
        "'x y'",
        "'it''s'",
        "'back\\slash'",
        "'tab\tand \"quotes\"'",
        "'é'",
        "'naïve ÿ'",
        "'b'",
    ];
    if limit < 200 || rng.random_bool(0.7) {
        if limit >= 20 && rng.random_bool(0.01) {
            return "'表 😀'".to_owned();
        }
        let text = PLAIN.choose(rng).copied().unwrap_or_default();
        return if limit < 20 { format!("left({text}, {limit})") } else { text.to_owned() };
    }
    let mut length = *LENGTHS.choose(rng).unwrap_or(&0);
    if rng.random_bool(0.01) {
        length *= 40;
    }
    let plain = rng.random_bool(0.5);
    long_text(rng, length, plain)
}

/// A text of a length; one that can't be compressed well if not `plain`.
pub fn long_text(rng: &mut impl Rng, length: usize, plain: bool) -> String {
    if plain {
        let letter = ['x', 'y', 'é', '0'].choose(rng).copied().unwrap_or('x');
        return format!("repeat('{letter}', {length})");
    }
    let (pieces, seed) = (length / 32 + 1, rng.random_range(0..1000));
    format!(
        "(SELECT left(string_agg(md5((i + {seed})::text), ''), {length}) FROM generate_series(1, {pieces}) i)"
    )
}

fn integer(rng: &mut impl Rng, limit: i64) -> String {
    let value = match rng.random_range(0..10) {
        0 => limit,
        1 => -limit - 1,
        2 => 0,
        _ => rng.random_range(-100..100),
    };
    value.to_string()
}

/// An expression that gives a value, never null.
pub fn value(rng: &mut impl Rng, kind: &Type) -> String {
    const FLOATS: &[&str] = &[
        "0",
        "'-0'",
        "1.5",
        "'NaN'",
        "'Infinity'",
        "'-Infinity'",
        "0.1",
        "-123456.789",
        "1e15",
        "1e-5",
        "100000",
    ];
    const NUMERICS: &[&str] = &[
        "0",
        "'NaN'",
        "'Infinity'",
        "1e20",
        "0.000001",
        "-12345.6789",
        "10000",
        "1.10",
        "123456789012345678901234567890.12345",
        "1e-30",
        "99999999",
    ];
    const DOUBLES: &[&str] =
        &["1e300", "5e-324", "1.7976931348623157e308", "0.30000000000000004", "9007199254740993"];
    const SINGLES: &[&str] = &["1e38", "1e-45", "16777217", "3.4028235e38"];
    const LARGE_JSON: &[&str] = &[
        "to_json(array_fill(-0.50::numeric, ARRAY[70]))",
        "to_json(array_fill('é\"'::text, ARRAY[3, 40]))",
        "json_build_object('list', array_fill(1234567890.5, ARRAY[33]), 'text', repeat(E'a\\n\\x01\\x1f\"\\\\é', 40), 'none', null)",
        "(repeat('[', 80) || repeat(']', 80))::json",
    ];
    const JSON: &[&str] = &[
        "'{}'",
        "'null'",
        "'{\"a\": [1, 2.50, \"é\"], \"b\": {\"c\": null}}'",
        "'[1,  2]'",
        "'\"text\"'",
        "'{\"b\": 1, \"a\": 2}'",
    ];
    let one_of = |rng: &mut _, choices: &[&str]| choices.choose(rng).copied().unwrap_or("NULL").to_owned();
    match kind.class {
        Class::Integer(limit) => integer(rng, limit),
        Class::Text(limit) => text(rng, limit),
        Class::Bytes if rng.random_bool(0.4) => {
            let text = text(rng, usize::MAX);
            format!("convert_to({text}, 'UTF8')")
        }
        Class::Bytes => one_of(rng, &["'\\x'", "'\\x00ff5c27'", "'\\xdeadbeef'", "'abc'"]),
        Class::OneOf(choices) => one_of(rng, choices),
        Class::Numeric => one_of(rng, NUMERICS),
        Class::Float4 if rng.random_bool(0.3) => one_of(rng, SINGLES),
        Class::Float8 if rng.random_bool(0.3) => one_of(rng, DOUBLES),
        Class::Float4 | Class::Float8 => one_of(rng, FLOATS),
        Class::Json if rng.random_bool(0.15) => {
            let text = long_text(rng, 3000, false);
            format!("to_json({text})")
        }
        Class::Json if rng.random_bool(0.2) => one_of(rng, LARGE_JSON),
        Class::Json => one_of(rng, JSON),
        Class::Uuid => {
            let (high, low): (u64, u64) = (rng.random(), rng.random());
            format!("'{high:016x}{low:016x}'")
        }
        Class::IntegerArray => one_of(
            rng,
            &["'{}'", "'{1,NULL,-3}'", "'{{1,2},{3,4}}'", "'[0:1]={7,8}'", "array_fill(7, ARRAY[800])"],
        ),
        Class::TextArray => one_of(
            rng,
            &[
                "'{}'",
                "'{a,NULL,\"NULL\",\"\",\"q\\\"uote\"}'",
                "ARRAY[ARRAY['a', 'b'], ARRAY['c', 'é']]",
                "array_fill('text'::text, ARRAY[300])",
            ],
        ),
    }
}

/// A condition on a column, legal in a row filter when the column's type is built in.
pub fn condition(rng: &mut impl Rng, column: &str, kind: &Type) -> String {
    let number = rng.random_range(0..40);
    let choices: Vec<String> = match kind.class {
        Class::Integer(_) | Class::Numeric => vec![
            format!("{column} > {number}"),
            format!("{column} < {number}"),
            format!("{column} % 2 = 0"),
            format!("{column} % 3 <> 1"),
            format!("{column} BETWEEN {number} AND {}", number + 20),
            format!("{column} IN (1, 2, 3, {number})"),
            format!("abs({column}) >= {number}"),
            format!("{column}::text LIKE '%1%'"),
            // Updates of keys by a thousand go from one side to the other.
            format!("{column} < 500"),
            format!("{column} < 500"),
            format!("{column} > 500"),
            format!("{column} > 500"),
            format!("NOT ({column} = {number})"),
            format!("CASE WHEN {column} > {number} THEN true ELSE NULL END"),
        ],
        Class::Text(_) => vec![
            format!("length({column}) > {number}"),
            format!("length({column}) < 200"),
            format!("{column} LIKE 'x%'"),
            format!("{column} <> 'a'"),
            format!("{column} || 'y' <> 'by'"),
            format!("upper({column}) = {column}"),
            format!("{column} IS NULL"),
            format!("coalesce({column}, 'b') > 'a'"),
            format!("{column} ~ '^[a-f0-9]'"),
        ],
        Class::Bytes => vec![format!("length({column}) > {number}"), format!("{column} IS NOT NULL")],
        _ if kind.sql == "boolean" => vec![
            column.to_owned(),
            format!("NOT {column}"),
            format!("{column} IS NOT TRUE"),
            format!("{column} IS UNKNOWN"),
        ],
        Class::Float4 | Class::Float8 => vec![format!("{column} > 0"), format!("{column} <> 'NaN'")],
        _ => vec![format!("{column} IS NOT NULL"), format!("{column} IS NULL")],
    };
    choices.choose(rng).cloned().unwrap_or_default()
}
