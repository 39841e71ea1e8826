//! The server's growing buffer as a [`Buffer`] of the protocol.

use core::marker::PhantomData;

use pgoutput_protocol::Buffer;
use pgoutput_protocol::row::VALUE_HEADER;
use pgrx::pg_sys;

/// Appends to a StringInfo.
///
/// It grows as the server's own functions grow it, so that a message that gets too long is the same ERROR 54000
/// with the same numbers in it.
#[derive(Debug)]
pub struct StringInfoBuffer<'a> {
    raw: *mut pg_sys::StringInfoData,
    borrowed: PhantomData<&'a mut pg_sys::StringInfoData>,
}

impl StringInfoBuffer<'_> {
    /// Wraps a StringInfo.
    ///
    /// # Safety
    /// `raw` must be valid and not used otherwise while the wrapper lives.
    pub unsafe fn new(raw: *mut pg_sys::StringInfoData) -> Self {
        StringInfoBuffer { raw, borrowed: PhantomData }
    }

    /// Empties it, as the server does between messages.
    pub fn clear(&mut self) {
        // SAFETY: valid (new).
        unsafe { (*self.raw).len = 0 }
        self.terminate();
    }

    /// How many bytes it holds.
    pub fn length(&self) -> usize {
        self.position()
    }

    /// Takes back what has been put since it held `length` bytes.
    pub fn take_back(&mut self, length: usize) {
        debug_assert!(length <= self.length());
        // SAFETY: valid (new), and it has held as many bytes.
        unsafe { (*self.raw).len = length as core::ffi::c_int }
    }

    /// Sets the NUL behind the content that every StringInfo has and that doesn't count.
    pub fn terminate(&mut self) {
        // SAFETY: valid (new); `put` always leaves room for one byte more.
        unsafe { *(*self.raw).data.add((*self.raw).len as usize) = 0 }
    }

    /// Makes room for what will be put in parts and the server puts at once: if there can't be as much, the ERROR has
    /// the same numbers in it.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        if !self.has_room(bytes) {
            self.grow(bytes);
        }
    }

    /// Whether it holds as many bytes more without growing, and a final NUL.
    #[inline]
    fn has_room(&self, bytes: usize) -> bool {
        // SAFETY: valid (new).
        let free = unsafe { (*self.raw).maxlen - (*self.raw).len } as usize;
        free > bytes
    }

    /// The `N` bytes that are `offset` bytes behind the content, if the buffer has them without growing. They may hold
    /// anything, and count only after [`take_in`](Self::take_in).
    #[inline]
    pub fn spare<const N: usize>(&mut self, offset: usize) -> Option<&mut [u8; N]> {
        // SAFETY: valid (new); the bytes lie within the allocation, which is the server's, so that the compiler can't take
        // them for uninitialized; nobody else has them while `self` is borrowed.
        unsafe {
            let length = (*self.raw).len as usize + offset;
            // One byte stays for the final NUL.
            if length + N >= (*self.raw).maxlen as usize {
                return None;
            }
            Some(&mut *(*self.raw).data.cast::<u8>().add(length).cast::<[u8; N]>())
        }
    }

    /// Writes `header` behind the content, and makes it content together with the `length` bytes that follow it, which
    /// have been written into [`spare`](Self::spare)'s.
    ///
    /// # Safety
    /// Since `spare` gave at least `length` bytes `N` behind the content, nothing else has been put.
    #[inline]
    pub unsafe fn take_in<const N: usize>(&mut self, header: [u8; N], length: usize) {
        self.put(&header);
        // SAFETY: valid (new), and the bytes lie within the buffer (the caller's contract).
        unsafe { (*self.raw).len += length as core::ffi::c_int }
    }

    #[cold]
    fn grow(&mut self, by: usize) {
        // The server's limit is far below; a number that doesn't fit its parameter is over it too.
        let by = i32::try_from(by).unwrap_or(i32::MAX);
        // SAFETY: a valid StringInfo (new).
        unsafe { pg_sys::enlargeStringInfo(self.raw, by) }
    }
}

/// Copies bytes. Most are values of a few bytes whose number isn't known when this is compiled, for which a call of
/// `memcpy` takes longer than the copying: these are two copies of a constant length that overlap.
///
/// # Safety
/// `target` must be valid for writes of as many bytes, and not overlap them.
#[inline(always)]
unsafe fn copy(bytes: &[u8], target: *mut u8) {
    /// Copies the first and the last `N` bytes, of at least `N` and at most twice as many.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn ends<const N: usize>(bytes: &[u8], target: *mut u8) {
        // SAFETY: the caller's contract; a range of N bytes that ends with the last one lies within.
        unsafe {
            let (first, last) =
                (bytes.as_ptr().cast::<[u8; N]>(), bytes.as_ptr().add(bytes.len() - N).cast::<[u8; N]>());
            let (first, last) = (*first, *last);
            target.cast::<[u8; N]>().write(first);
            target.add(bytes.len() - N).cast::<[u8; N]>().write(last);
        }
    }
    // SAFETY: the caller's contract, and the length is that of the case.
    unsafe {
        match bytes.len() {
            0 => {}
            1 => *target = bytes[0],
            2..4 => ends::<2>(bytes, target),
            4..8 => ends::<4>(bytes, target),
            8..16 => ends::<8>(bytes, target),
            16..=32 => ends::<16>(bytes, target),
            length => core::ptr::copy_nonoverlapping(bytes.as_ptr(), target, length),
        }
    }
}

impl StringInfoBuffer<'_> {
    /// Room for `length` bytes behind the content, which then count as content.
    #[inline(always)]
    fn append(&mut self, length: usize) -> *mut u8 {
        self.reserve(length);
        // SAFETY: valid (new); the room lies within the buffer, which keeps a byte for the final NUL.
        unsafe {
            let start = (*self.raw).len as usize;
            (*self.raw).len = (start + length) as core::ffi::c_int;
            (*self.raw).data.cast::<u8>().add(start)
        }
    }
}

impl StringInfoBuffer<'_> {
    /// Appends bytes whose number isn't known when this is compiled, and is small as a rule.
    #[inline]
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        let room = self.append(bytes.len());
        // SAFETY: there is room, and the source can't overlap it since `self` is borrowed.
        unsafe { copy(bytes, room) }
    }

    /// Appends such bytes with others before and behind them, for which room is looked for only once.
    #[inline]
    pub fn put_between<const BEFORE: usize, const BEHIND: usize>(
        &mut self,
        before: &[u8; BEFORE],
        bytes: &[u8],
        behind: &[u8; BEHIND],
    ) {
        let room = self.append(BEFORE + bytes.len() + BEHIND);
        // SAFETY: as in `put_bytes`, of all three together.
        unsafe {
            room.cast::<[u8; BEFORE]>().write(*before);
            copy(bytes, room.add(BEFORE));
            room.add(BEFORE + bytes.len()).cast::<[u8; BEHIND]>().write(*behind);
        }
    }
}

impl Buffer for StringInfoBuffer<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let room = self.append(bytes.len());
        // SAFETY: there is room, and the source can't overlap it since `self` is borrowed.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), room, bytes.len()) }
    }

    #[inline]
    fn put_value(&mut self, header: [u8; VALUE_HEADER], bytes: &[u8]) {
        if !self.has_room(VALUE_HEADER + bytes.len()) {
            // One after the other, as the server does: see `reserve`.
            self.put(&header);
            self.put_bytes(bytes);
            return;
        }
        self.put_between(&header, bytes, &[]);
    }

    #[inline]
    fn position(&self) -> usize {
        // SAFETY: valid (new).
        unsafe { (*self.raw).len as usize }
    }

    #[inline]
    fn patch(&mut self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.position());
        // SAFETY: `at` is a position of bytes written before (the trait's contract, asserted above).
        unsafe {
            core::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                (*self.raw).data.cast::<u8>().add(at),
                bytes.len(),
            );
        }
    }
}
