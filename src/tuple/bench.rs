//! Measures the formatting of values against the server's own functions, inside a server.
//!
//! Only a build with the feature `microbench` has it, which is for `tests/benches/formatting.rs` and never installed.

use core::error::Error;
use core::ffi::{CStr, c_char, c_void};
use core::hint::black_box;

use pgrx::prelude::*;

use super::*;
use crate::server::memory::ContextSize;

unsafe extern "C-unwind" {
    // As the built-in plugin calls them: without the guard that pgrx puts around every call.
    fn OutputFunctionCall(function: *mut pg_sys::FmgrInfo, value: Datum) -> *mut c_char;
    fn SendFunctionCall(function: *mut pg_sys::FmgrInfo, value: Datum) -> *mut pg_sys::bytea;
    fn pfree(pointer: *mut c_void);
}

/// The processor's time that this process has taken, in nanoseconds: what other processes take doesn't count.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every system that the server runs on, and the structure is filled in.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Puts values of one type and one form out, in the ways that are compared.
struct Bench {
    binary: bool,
    native: NativeType,
    function: pg_sys::FmgrInfo,
    formatter: Formatter,
}

impl Bench {
    fn new(type_oid: Oid, binary: bool, memory: MemoryContext) -> Option<Self> {
        let functions = catalog::type_functions(type_oid)?;
        let (native, function) = if binary {
            let send = functions.send?;
            (NativeType::of_send_function(send)?, send)
        } else {
            (NativeType::of_output_function(functions.output)?, functions.output)
        };
        let mut resolved = pg_sys::FmgrInfo::default();
        // SAFETY: fills the structure; the context outlives it.
        unsafe { pg_sys::fmgr_info_cxt(function, &mut resolved, memory.as_ptr()) };
        Some(Bench { binary, native, function: resolved, formatter: Formatter::default() })
    }

    /// As this plugin does it. Returns `false` if it would ask the server's function.
    ///
    /// # Safety
    /// `value` must be of the type.
    #[inline]
    unsafe fn write_natively(
        &mut self,
        buffer: &mut StringInfoBuffer<'_>,
        value: Datum,
        settings: FormatSettings,
    ) -> bool {
        let native = black_box(self.native);
        // SAFETY: the caller's contract.
        unsafe {
            if self.binary {
                self.formatter.write_binary(buffer, native, value, settings)
            } else {
                self.formatter.write_text(buffer, native, value, settings)
            }
        }
    }

    /// As the built-in plugin does it, less what it takes to find the function.
    ///
    /// # Safety
    /// `value` must be of the type, and one that the function raises no ERROR for.
    #[inline]
    unsafe fn write_by_function(
        &mut self,
        buffer: &mut StringInfoBuffer<'_>,
        value: Datum,
        settings: FormatSettings,
    ) {
        // SAFETY: the caller's contract; what the functions give is palloc'd, and the text NUL-terminated.
        unsafe {
            if self.binary {
                let bytes = SendFunctionCall(&mut self.function, value);
                row::binary(buffer, pgrx::varlena::varlena_to_byte_slice(bytes));
                pfree(bytes.cast());
            } else {
                let text = OutputFunctionCall(&mut self.function, value);
                row::text(buffer, settings.encoding.convert(CStr::from_ptr(text)));
                pfree(text.cast());
            }
        }
    }
}

/// Writes the values of a query's only column over and over, as many times as `rows`, and returns how long
/// one value took, in nanoseconds of the processor's time.
///
/// The values are as a tuple holds them: short ones with a short header. An error if the query has none, or if the
/// two ways differ or one of the values isn't written natively, for then the figures would tell nothing.
#[pg_extern(sql = false)]
fn nanoseconds_per_value(
    query: &str,
    binary: bool,
    native: bool,
    rows: i64,
) -> Result<f64, Box<dyn Error + Send + Sync>> {
    Spi::connect(|client| {
        // SAFETY: the function's own context, which lives until it returns.
        let memory = unsafe { MemoryContext::from_raw(pg_sys::CurrentMemoryContext) };
        let mut table = client.select(query, None, &[])?;
        let type_oid = table.column_type_oid(1)?.value();
        let mut values = Vec::new();
        while table.next().is_some() {
            values.push(table.get_datum_by_ordinal(1)?.ok_or("the query has a null")?);
        }
        if values.is_empty() || rows < 1 {
            return Err("nothing to measure".into());
        }
        let mut bench = Bench::new(type_oid, binary, memory).ok_or("the type isn't a native one")?;

        // SAFETY: a new StringInfo of our own.
        let raw = unsafe { pg_sys::makeStringInfo() };
        // SAFETY: likewise.
        let mut buffer = unsafe { StringInfoBuffer::new(raw) };
        // As the plugins do it: a context for what functions leave behind, which is reset after each row.
        let row_memory = memory.create_child(c"formatting", ContextSize::Default);
        let entered = row_memory.enter();
        let settings = FormatSettings::current();
        for value in &values {
            buffer.clear();
            // SAFETY: the values are of the type; an ERROR is raised here, by the guarded call, if at all.
            unsafe {
                if binary {
                    pg_sys::SendFunctionCall(&mut bench.function, *value);
                } else {
                    pg_sys::OutputFunctionCall(&mut bench.function, *value);
                }
                bench.write_by_function(&mut buffer, *value, settings);
                let length = buffer.length();
                let written = bench.write_natively(&mut buffer, *value, settings);
                let bytes = core::slice::from_raw_parts((*raw).data.cast::<u8>(), buffer.length());
                if !written || bytes[..length] != bytes[length..] {
                    return Err("a value isn't written natively, or not the same".into());
                }
            }
        }
        row_memory.reset();

        let started = processor_time();
        for _ in 0..rows {
            buffer.clear();
            let settings = FormatSettings::current();
            for value in &values {
                // SAFETY: the values are of the type, and have been written before.
                unsafe {
                    if native {
                        black_box(bench.write_natively(&mut buffer, black_box(*value), settings));
                    } else {
                        bench.write_by_function(&mut buffer, black_box(*value), settings);
                    }
                }
            }
            row_memory.reset();
        }
        let elapsed = processor_time() - started;
        entered.leave();
        Ok(elapsed / rows as f64 / values.len() as f64)
    })
}
