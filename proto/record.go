package proto

// Record is a structure of zookeeper.jute.
type Record interface {
	// Decode reads the record's fields in order. The Reader's Err reports whether
	// it succeeded.
	Decode(r *Reader)
	// Append appends the record's encoding to b.
	Append(b []byte) []byte
}
