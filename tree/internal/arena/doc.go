// Package arena is the memory of a tree's znodes: their slots, the text with path and
// data, the lists of children, and the index that finds a znode by its path. It imports
// proto, the access control lists and the standard library only.
//
// A tree can have millions of znodes, so the layout saves bytes, cache misses and work for
// the garbage collector:
//
//   - Nodes lie in blocks of slots and refer to each other by numbers. A number has half
//     the size of a pointer, and the collector doesn't follow it. A node never moves.
//   - Path, owner and data share one allocation, the text.
//   - The index stores hashes and numbers, and the paths only in the texts.
//
// A Node is valid until it is vacated: after that, its slot is reused for another node. A
// text never changes, so paths and data remain valid as long as they are referenced.
//
// # Unsafe code
//
// All unsafe code of the tree is in text.go. A text is a []byte of which a node keeps only
// the pointer to the first byte. Two rules make that safe: the pointer points to the start of
// an allocation, so it keeps the whole text alive, and the lengths in the text's header and in
// Text.size never change, so no access leaves the allocation. Bytes and View convert without a
// copy: the caller must not change the bytes while the string is in use.
package arena
