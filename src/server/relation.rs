//! Relations and their tuple descriptors.

use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::NonNull;

use pgrx::pg_sys;
use pgrx::pg_sys::Oid;

use super::memory::MemoryContext;

/// An open relation.
#[derive(Clone, Copy, Debug)]
pub struct Relation<'a> {
    raw: NonNull<pg_sys::RelationData>,
    open: PhantomData<&'a pg_sys::RelationData>,
}

/// REPLICA IDENTITY FULL in pg_class.relreplident.
const REPLICA_IDENTITY_FULL: u8 = b'f';

impl<'a> Relation<'a> {
    /// Wraps a relation that the server has opened.
    ///
    /// # Safety
    /// `raw` must stay open for `'a`.
    pub unsafe fn from_raw(raw: pg_sys::Relation) -> Self {
        // SAFETY: the server never passes a null relation.
        Relation { raw: unsafe { NonNull::new_unchecked(raw) }, open: PhantomData }
    }

    /// Opens the relation for the call of `f`, without a lock: what it shows is what the snapshot of the change
    /// being decoded sees. Returns `None` if that snapshot sees no such relation.
    ///
    /// An ERROR in `f` leaves the closing to the server's resource owner.
    pub fn with<R>(oid: Oid, f: impl FnOnce(Relation<'_>) -> R) -> Option<R> {
        // SAFETY: a look-up in the relcache; the reference is given back below.
        let raw = unsafe { pg_sys::RelationIdGetRelation(oid) };
        let relation = Relation { raw: NonNull::new(raw)?, open: PhantomData };
        let result = f(relation);
        // SAFETY: `raw` is the reference taken above, and `relation` isn't used after.
        unsafe { pg_sys::RelationClose(raw) };
        Some(result)
    }

    /// Keeps it open until the server's resource owner closes it: silently, since decoding always ends with an abort.
    ///
    /// What it is for: a relation that is open is read again at once when it is invalidated, and reading catalogs is
    /// what notices that the transaction being decoded has been aborted meanwhile. The built-in plugin leaves relations
    /// open, and so notices then.
    pub fn keep_open(&self) {
        // SAFETY: the relation exists; the reference is the resource owner's.
        unsafe { pg_sys::RelationIdGetRelation(self.oid()) };
    }

    fn get(&self) -> &'a pg_sys::RelationData {
        // SAFETY: open for `'a`.
        unsafe { self.raw.as_ref() }
    }

    fn class(&self) -> &'a pg_sys::FormData_pg_class {
        // SAFETY: an open relation has its pg_class row.
        unsafe { &*self.get().rd_rel }
    }

    /// The server's own pointer.
    pub fn as_ptr(&self) -> pg_sys::Relation {
        self.raw.as_ptr()
    }

    /// Its oid.
    pub fn oid(&self) -> Oid {
        self.get().rd_id
    }

    /// Its name, in the database's encoding.
    pub fn name(&self) -> &'a CStr {
        // SAFETY: a NameData is NUL-terminated.
        unsafe { CStr::from_ptr(self.class().relname.data.as_ptr()) }
    }

    /// Its schema.
    pub fn namespace(&self) -> Oid {
        self.class().relnamespace
    }

    /// Whether it is a partition.
    pub fn is_partition(&self) -> bool {
        self.class().relispartition
    }

    /// Whether it is a partitioned table.
    pub fn is_partitioned_table(&self) -> bool {
        self.class().relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE
    }

    /// The replica identity, as pg_class.relreplident has it.
    pub fn replica_identity(&self) -> u8 {
        self.class().relreplident as u8
    }

    /// Whether it has REPLICA IDENTITY FULL.
    pub fn is_replica_identity_full(&self) -> bool {
        self.replica_identity() == REPLICA_IDENTITY_FULL
    }

    /// Whether a publication can publish it: an ordinary or partitioned table, permanent and logged, that isn't
    /// of the catalogs.
    pub fn is_publishable(&self) -> bool {
        // SAFETY: the relation is open.
        unsafe { pg_sys::is_publishable_relation(self.as_ptr()) }
    }

    /// Its tuple descriptor.
    pub fn descriptor(&self) -> TupleDescriptor<'a> {
        TupleDescriptor { raw: self.get().rd_att, owner: PhantomData }
    }

    /// The attribute numbers of its replica identity, empty if it has no index for one.
    pub fn identity_columns(&self) -> AttributeSet {
        // SAFETY: the relation is open; the bitmap is a copy in the current memory context.
        let bitmap = unsafe { pg_sys::RelationGetIdentityKeyBitmap(self.as_ptr()) };
        // These bitmaps are shifted, so that system columns have a place in them.
        AttributeSet::from_bitmapset(bitmap, pg_sys::FirstLowInvalidHeapAttributeNumber)
    }
}

/// A set of attribute numbers of user columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributeSet(Vec<i16>);

impl AttributeSet {
    /// The members of the server's bitmap, whose bits are attribute numbers less `offset`.
    pub fn from_bitmapset(bitmap: *const pg_sys::Bitmapset, offset: i32) -> Self {
        let mut members = Vec::new();
        let mut member = -1;
        loop {
            // SAFETY: a valid bitmap or null, which is the empty one.
            member = unsafe { pg_sys::bms_next_member(bitmap, member) };
            if member < 0 {
                return AttributeSet(members);
            }
            members.push((member + offset) as i16);
        }
    }

    /// Whether `attribute` is a member.
    pub fn contains(&self, attribute: i16) -> bool {
        self.0.binary_search(&attribute).is_ok()
    }

    /// The number of members.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<i16> for AttributeSet {
    fn from_iter<T: IntoIterator<Item = i16>>(attributes: T) -> Self {
        let mut members: Vec<i16> = attributes.into_iter().collect();
        members.sort_unstable();
        members.dedup();
        AttributeSet(members)
    }
}

/// A tuple descriptor that its owner keeps for `'a`.
#[derive(Clone, Copy, Debug)]
pub struct TupleDescriptor<'a> {
    raw: pg_sys::TupleDesc,
    owner: PhantomData<&'a ()>,
}

impl<'a> TupleDescriptor<'a> {
    /// The server's own pointer.
    pub fn as_ptr(self) -> pg_sys::TupleDesc {
        self.raw
    }

    /// How many attributes it has, dropped and generated ones among them.
    pub fn len(self) -> usize {
        // SAFETY: valid for `'a`.
        unsafe { (*self.raw).natts as usize }
    }

    /// Its attributes in order.
    pub fn attributes(self) -> impl Iterator<Item = Attribute<'a>> {
        // SAFETY: `index` is below the number of attributes, and the attribute lives with the descriptor.
        (0..self.len()).map(move |index| Attribute(unsafe { &*super::attribute(self.raw, index) }))
    }

    /// For each attribute of `target`, the index of this descriptor's attribute of the same name, `None` for a
    /// dropped one. `None` altogether if the two have the same layout.
    pub fn map_to(self, target: TupleDescriptor<'_>) -> Option<Vec<Option<u16>>> {
        // SAFETY: both descriptors are valid; the map is in the current memory context and read at once.
        unsafe {
            let map = super::attribute_map(self.raw, target.raw).as_ref()?;
            let numbers = core::slice::from_raw_parts(map.attnums, map.maplen as usize);
            Some(numbers.iter().map(|number| (*number as u16).checked_sub(1)).collect())
        }
    }

    /// Copies it with its defaults for missing attributes into `context`, for as long as that lives.
    pub fn copy(self, context: MemoryContext) -> OwnedDescriptor {
        let entered = context.enter();
        // SAFETY: the descriptor is valid.
        let raw = unsafe { pg_sys::CreateTupleDescCopyConstr(self.raw) };
        entered.leave();
        OwnedDescriptor { raw }
    }
}

/// A descriptor in a memory context of a relation entry. It is a handle without ownership, like the context.
#[derive(Clone, Copy, Debug)]
pub struct OwnedDescriptor {
    raw: pg_sys::TupleDesc,
}

impl OwnedDescriptor {
    /// The descriptor.
    pub fn get(&self) -> TupleDescriptor<'_> {
        TupleDescriptor { raw: self.raw, owner: PhantomData }
    }
}

/// One attribute of a descriptor.
#[derive(Clone, Copy)]
pub struct Attribute<'a>(&'a pg_sys::FormData_pg_attribute);

/// How a column is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generated {
    /// Not at all.
    No,
    /// GENERATED ALWAYS AS … STORED.
    Stored,
    /// GENERATED ALWAYS AS … VIRTUAL.
    Virtual,
}

impl<'a> Attribute<'a> {
    /// Its number, from 1.
    pub fn number(self) -> i16 {
        self.0.attnum
    }

    /// Its name, in the database's encoding.
    pub fn name(self) -> &'a CStr {
        // SAFETY: a NameData is NUL-terminated.
        unsafe { CStr::from_ptr(self.0.attname.data.as_ptr()) }
    }

    /// Its type.
    pub fn type_oid(self) -> Oid {
        self.0.atttypid
    }

    /// Its type's modifier.
    pub fn type_modifier(self) -> i32 {
        self.0.atttypmod
    }

    /// Whether its values have a varlena header and so can be toasted.
    pub fn is_varlena(self) -> bool {
        self.0.attlen == -1
    }

    /// Whether it has been dropped.
    pub fn is_dropped(self) -> bool {
        self.0.attisdropped
    }

    /// How it is generated.
    pub fn generated(self) -> Generated {
        match self.0.attgenerated as u8 {
            0 => Generated::No,
            b's' => Generated::Stored,
            _ => Generated::Virtual,
        }
    }
}
