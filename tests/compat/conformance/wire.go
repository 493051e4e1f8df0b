package conformance

import "encoding/binary"

// encoder appends jute primitives.
type encoder struct{ b []byte }

func (e *encoder) byte(v byte)   { e.b = append(e.b, v) }
func (e *encoder) int(v int32)   { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *encoder) long(v int64)  { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }
func (e *encoder) raw(v []byte)  { e.b = append(e.b, v...) }
func (e *encoder) blob(v []byte) { e.int(int32(len(v))); e.raw(v) }

// framed returns a frame: the length and the payload.
func framed(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// decoder reads jute primitives from a payload. After the first read past the
// end, short is set and all reads return zero values.
type decoder struct {
	b     []byte
	short bool
}

func (d *decoder) take(n int) []byte {
	if d.short || n < 0 || n > len(d.b) {
		d.short = true
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) int() int32 {
	if v := d.take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (d *decoder) long() int64 {
	if v := d.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// blob reads a buffer or ustring; nil means null, unlike an empty one.
func (d *decoder) blob() []byte {
	n := d.int()
	if d.short || n == -1 {
		return nil
	}
	if v := d.take(int(n)); v != nil {
		return v
	}
	return []byte{}
}

// count reads the length of a vector; −1 is null. An element has at least min bytes.
func (d *decoder) count(min int) int {
	n := int(d.int())
	if n < -1 || n*min > len(d.b) {
		d.short = true
		return 0
	}
	return n
}
