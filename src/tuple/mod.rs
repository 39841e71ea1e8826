//! From heap tuples to TupleData.
//!
//! "TupleData" of "Logical Replication Message Formats" in the PostgreSQL manual.

#[cfg(feature = "microbench")]
mod bench;
mod native;

use pgoutput_protocol::row;
use pgrx::pg_sys::{Datum, Oid};
use rustc_hash::FxHashMap;

use crate::error::{CatalogObject, Error};
use crate::server::catalog;
use crate::server::format_settings::FormatSettings;
use crate::server::function::Function;
use crate::server::invalidation::Watch;
use crate::server::memory::MemoryContext;
use crate::server::relation::{Attribute, TupleDescriptor};
use crate::server::string_info::StringInfoBuffer;
use crate::server::transaction::HeapTuple;
use crate::server::varlena;

use native::{Formatter, NativeType};

/// The values of a tuple, one for each attribute of its descriptor.
///
/// Values of types that are passed by reference point into the tuple: a row is good until the callback ends.
#[derive(Debug, Default)]
pub struct Row {
    values: Vec<Datum>,
    nulls: Vec<bool>,
}

impl Row {
    /// The values.
    pub fn values(&self) -> &[Datum] {
        &self.values
    }

    /// Which of them are null.
    pub fn nulls(&self) -> &[bool] {
        &self.nulls
    }

    fn resize(&mut self, length: usize) {
        self.values.resize(length, Datum::null());
        self.nulls.resize(length, true);
    }

    /// Takes a tuple apart. Attributes that a shorter tuple hasn't get their missing value.
    pub fn deform(&mut self, tuple: HeapTuple<'_>, descriptor: TupleDescriptor<'_>) {
        self.resize(descriptor.len());
        // SAFETY: the tuple is one of the descriptor's relation, and there is room for all its attributes. An ERROR (for
        // lack of memory, of a missing value) passes over frames that hold nothing to drop, up to the callback's entry:
        // rows belong to the session.
        unsafe {
            crate::server::unguarded::heap_deform_tuple(
                tuple.as_ptr(),
                descriptor.as_ptr(),
                self.values.as_mut_ptr(),
                self.nulls.as_mut_ptr(),
            );
        }
    }

    /// Takes the values of `other` over, rearranged.
    pub fn map(&mut self, other: &Row, map: &AttributeMap) {
        self.resize(map.0.len());
        for (index, source) in map.0.iter().enumerate() {
            (self.values[index], self.nulls[index]) = match source {
                Some(source) => {
                    let source = usize::from(*source);
                    (other.values[source], other.nulls[source])
                }
                None => (Datum::null(), true),
            };
        }
    }

    /// Makes this row `new`, but with the values of `old` where `new` has only a pointer to a value toasted on
    /// disk and `old` has the value itself. Returns whether there was such a value; if not, this row is unchanged.
    ///
    /// A key column that is toasted and unchanged is logged with the old row only.
    pub fn complete(&mut self, new: &Row, old: &Row, descriptor: TupleDescriptor<'_>) -> bool {
        let mut completed = false;
        for (index, attribute) in descriptor.attributes().enumerate() {
            if new.nulls[index] || old.nulls[index] || !attribute.is_varlena() {
                continue;
            }
            // SAFETY: the attribute is a varlena and neither value is null.
            let replace = unsafe {
                varlena::is_external_on_disk(new.values[index])
                    && !varlena::is_external_on_disk(old.values[index])
            };
            if replace {
                if !completed {
                    self.values.clone_from(&new.values);
                    self.nulls.clone_from(&new.nulls);
                    completed = true;
                }
                self.values[index] = old.values[index];
            }
        }
        completed
    }
}

/// For each attribute of a descriptor, where its value is in a row of another.
#[derive(Debug)]
pub struct AttributeMap(Vec<Option<u16>>);

impl AttributeMap {
    /// The map from rows of `source` to rows of `target`; `None` if the two have the same layout.
    pub fn between(source: TupleDescriptor<'_>, target: TupleDescriptor<'_>) -> Option<Self> {
        source.map_to(target).map(AttributeMap)
    }
}

/// A column that is published.
#[derive(Debug)]
pub struct Column {
    /// Its place in a row.
    index: u16,
    /// Whether its values can be toasted.
    varlena: bool,
    /// Its type.
    type_oid: Oid,
    /// What the type cache has of its type, once a value has asked for it.
    ///
    /// Not before: reading a catalog is what notices that the transaction being decoded has been aborted meanwhile,
    /// which ends its changes, so types are looked up no earlier and no later than the built-in plugin does.
    cached: Option<CachedType>,
}

/// A type in the type cache.
#[derive(Clone, Copy, Debug)]
struct CachedType {
    /// How its values are put out without its function, if they can be.
    native: Option<Native>,
    /// Where its function is.
    index: u32,
}

/// How values are put out natively.
#[derive(Clone, Copy, Debug)]
enum Native {
    /// In text form.
    Text(NativeType),
    /// In binary form.
    Binary(NativeType),
}

/// What of a row is published, and how.
#[derive(Debug)]
pub struct Columns {
    columns: Vec<Column>,
    /// The type cache's generation that the types' places belong to.
    generation: Option<u32>,
}

impl Columns {
    /// The columns that are made of these attributes, in their order.
    pub fn new<'a>(attributes: impl Iterator<Item = Attribute<'a>>) -> Self {
        let mut columns = Columns { columns: Vec::new(), generation: None };
        for attribute in attributes {
            columns.columns.push(Column {
                index: (attribute.number() - 1) as u16,
                varlena: attribute.is_varlena(),
                type_oid: attribute.type_oid(),
                cached: None,
            });
        }
        columns
    }

    /// Makes them follow the type cache.
    fn refresh(&mut self, types: &TypeCache) {
        if self.generation != Some(types.generation) {
            for column in &mut self.columns {
                column.cached = None;
            }
            self.generation = Some(types.generation);
        }
    }

    /// Writes the TupleData of a row.
    pub fn write(
        &mut self,
        buffer: &mut StringInfoBuffer<'_>,
        values: &Row,
        types: &mut TypeCache,
        settings: FormatSettings,
    ) -> Result<(), Error> {
        self.refresh(types);
        row::tuple_columns(buffer, self.columns.len() as u16);
        for column in &mut self.columns {
            let index = usize::from(column.index);
            if values.nulls[index] {
                row::null(buffer);
                continue;
            }
            let value = values.values[index];
            // SAFETY: the value isn't null, and `varlena` says what it is.
            if column.varlena && unsafe { varlena::is_external_on_disk(value) } {
                row::unchanged_toast(buffer);
                continue;
            }
            let cached = match column.cached {
                Some(cached) => cached,
                None => *column.cached.insert(types.look_up(column.type_oid)),
            };
            // SAFETY: the native type is that of the column's type.
            let written = unsafe {
                match cached.native {
                    Some(Native::Text(native)) => types.formatter.write_text(buffer, native, value, settings),
                    Some(Native::Binary(native)) => {
                        types.formatter.write_binary(buffer, native, value, settings)
                    }
                    None => false,
                }
            };
            if !written {
                // SAFETY: `cached` is what the cache has of the column's type.
                unsafe { types.call(cached, buffer, value, settings)? };
            }
        }
        Ok(())
    }
}

/// The function that values of a type are put out with.
#[derive(Debug)]
enum Output {
    /// In text form.
    Text(Function),
    /// In binary form.
    Binary(Function),
    /// There is no such type. It matters only when a value must be put out.
    Unknown(Oid),
}

/// The functions of the types that have been met, resolved.
///
/// The built-in plugin looks them up for every value and so sees every change of pg_type and pg_proc at once; this
/// cache starts anew when one of the two is invalidated.
#[derive(Debug)]
pub struct TypeCache {
    binary: bool,
    memory: MemoryContext,
    generation: u32,
    types: FxHashMap<Oid, CachedType>,
    functions: Vec<Output>,
    formatter: Formatter,
}

impl TypeCache {
    /// A cache whose functions live in `memory`, which must be its own. `binary` prefers send functions.
    pub fn new(binary: bool, memory: MemoryContext) -> Self {
        TypeCache {
            binary,
            memory,
            generation: 0,
            types: FxHashMap::default(),
            functions: Vec::new(),
            formatter: Formatter::default(),
        }
    }

    /// Starts anew if a type or function has been invalidated. Only between rows: a place in the cache is good for
    /// one row.
    pub fn follow(&mut self, watch: &Watch) {
        if !watch.types_valid.replace(true) {
            self.types.clear();
            self.functions.clear();
            self.memory.reset();
            self.generation = self.generation.wrapping_add(1);
        }
    }

    fn look_up(&mut self, oid: Oid) -> CachedType {
        if let Some(cached) = self.types.get(&oid) {
            return *cached;
        }
        let (native, output) = match catalog::type_functions(oid) {
            Some(functions) => match functions.send {
                Some(send) if self.binary => (
                    NativeType::of_send_function(send).map(Native::Binary),
                    Output::Binary(Function::resolve(send, self.memory)),
                ),
                _ => (
                    NativeType::of_output_function(functions.output).map(Native::Text),
                    Output::Text(Function::resolve(functions.output, self.memory)),
                ),
            },
            None => (None, Output::Unknown(oid)),
        };
        let cached = CachedType { native, index: self.functions.len() as u32 };
        self.functions.push(output);
        self.types.insert(oid, cached);
        cached
    }

    /// Writes a value with its type's function.
    ///
    /// # Safety
    /// `value` must be of the type.
    unsafe fn call(
        &mut self,
        cached: CachedType,
        buffer: &mut StringInfoBuffer<'_>,
        value: Datum,
        settings: FormatSettings,
    ) -> Result<(), Error> {
        match &mut self.functions[cached.index as usize] {
            // SAFETY: the caller's contract, and the function is the one that pg_type has for the type.
            Output::Text(function) => unsafe {
                function.output(value, |text| row::text(buffer, settings.encoding.convert(text)));
            },
            // SAFETY: likewise.
            Output::Binary(function) => unsafe {
                function.send(value, |bytes| row::binary(buffer, bytes));
            },
            Output::Unknown(oid) => {
                return Err(Error::CacheLookupFailed { what: CatalogObject::Type, oid: oid.to_u32() });
            }
        }
        Ok(())
    }
}
