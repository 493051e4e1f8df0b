package proto

// Record is a structure of zookeeper.jute.
type Record interface {
	// Decode reads the record's fields in order. Whether that succeeded is the
	// Reader's Err.
	Decode(r *Reader)
	// Append appends the record's encoding to b.
	Append(b []byte) []byte
}
