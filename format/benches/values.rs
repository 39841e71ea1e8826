//! What it takes to format a value of each type.
//!
//! Each benchmark goes through several values in turn, so that the processor can't foresee them all.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use pgoutput_format::{
    CAPACITY, Numeric, Text, date, float4, float8, hex, integer, numeric, time, timestamp, uuid,
};

/// As many values as each benchmark goes through.
const COUNT: u64 = 64;

/// Random words, the same in every run.
fn words() -> impl Iterator<Item = u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    core::iter::from_fn(move || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        Some(state.wrapping_mul(0x2545_F491_4F6C_DD1D))
    })
    .take(COUNT as usize)
}

/// Measures `format` on the values in turn.
fn bench<T: Copy>(
    criterion: &mut Criterion,
    name: &str,
    values: impl Iterator<Item = T>,
    format: impl Fn(&mut Text, T),
) {
    let values: Vec<T> = values.collect();
    let mut bytes = [0; CAPACITY];
    criterion.bench_function(name, |bencher| {
        let mut values = values.iter().cycle();
        bencher.iter(|| {
            if let Some(value) = values.next() {
                let mut text = Text::new(&mut bytes);
                format(&mut text, black_box(*value));
                black_box(text.length());
                black_box(&bytes);
            }
        });
    });
}

/// As [`bench`], of a function that leaves some values to the server. None of these is one.
fn bench_partial<T: Copy>(
    criterion: &mut Criterion,
    name: &str,
    values: impl Iterator<Item = T> + Clone,
    format: impl Fn(&mut Text, T) -> bool,
) {
    let is_formatted = |value| format(&mut Text::new(&mut [0; CAPACITY]), value);
    assert!(values.clone().all(is_formatted), "{name}: all are formatted");
    bench(criterion, name, values, |text, value| {
        format(text, value);
    });
}

fn integers(criterion: &mut Criterion) {
    bench(criterion, "int2", words().map(|word| word as i16), integer);
    bench(criterion, "int4", words().map(|word| word as i32), integer);
    bench(criterion, "int8", words().map(|word| word as i64), integer);
    bench(criterion, "oid", words().map(|word| word as u32), integer);
}

fn floats(criterion: &mut Criterion) {
    let whole = words().collect::<Vec<_>>();
    bench_partial(criterion, "float4", whole.iter().map(|word| (word % 100_000) as f32 / 100.0), float4);
    bench_partial(criterion, "float8", whole.iter().map(|word| (word % 1_000_000_000) as f64 / 1e4), float8);
    bench_partial(criterion, "float8, whole", whole.iter().map(|word| (word % 1_000_000_000) as f64), float8);
    let third = whole.iter().map(|word| (word % 1_000_000_000) as f64 / 3e4);
    bench(criterion, "float8, left to the server", third, |text, value| {
        float8(text, value);
    });
}

fn bytes(criterion: &mut Criterion) {
    let uuids = words().map(|word| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&word.to_be_bytes());
        bytes[8..].copy_from_slice(&word.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
        bytes
    });
    bench(criterion, "uuid", uuids, |text, value| uuid(text, &value));
    let mut digits = [0; 128];
    let words: Vec<_> = words().take(8).flat_map(u64::to_be_bytes).collect();
    criterion.bench_function("bytea, 64 bytes", |bencher| {
        bencher.iter(|| {
            hex(black_box(&words), &mut digits);
            black_box(&digits);
        });
    });
}

fn dates_and_times(criterion: &mut Criterion) {
    const DAY: u64 = 86_400_000_000;
    // 2000 to 2030.
    let timestamps = || words().map(|word| (word % (30 * 365 * DAY)) as i64);
    bench(criterion, "date", words().map(|word| (word % (30 * 365)) as i32), date);
    bench(criterion, "time", words().map(|word| (word % DAY) as i64), time);
    bench(criterion, "timestamp", timestamps(), |text, value| timestamp(text, value, None));
    bench(criterion, "timestamptz", timestamps(), |text, value| timestamp(text, value, Some(7200)));
    let seconds = timestamps().map(|value| value / 1_000_000 * 1_000_000);
    bench(criterion, "timestamp, whole seconds", seconds, |text, value| timestamp(text, value, None));
}

fn numerics(criterion: &mut Criterion) {
    let digits: Vec<[u8; 12]> = words()
        .map(|word| {
            let mut bytes = [0; 12];
            for (index, digit) in bytes.chunks_exact_mut(2).enumerate() {
                let number = (word >> (index * 10)) % 10_000;
                digit.copy_from_slice(&(number as u16).max(1).to_ne_bytes());
            }
            bytes
        })
        .collect();
    let numbers = |weight: i16, display_scale: u16, stored: usize| {
        digits.iter().map(move |digits| Numeric::Finite {
            negative: false,
            weight,
            display_scale,
            digits: &digits[..2 * stored],
        })
    };
    bench_partial(criterion, "numeric(10, 2)", numbers(1, 2, 3), numeric);
    bench_partial(criterion, "numeric, whole", numbers(2, 0, 3), numeric);
    bench_partial(criterion, "numeric(20, 10)", numbers(2, 10, 6), numeric);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .sample_size(30)
        .nresamples(10_000);
    targets = integers, floats, bytes, dates_and_times, numerics
}
criterion_main!(benches);
