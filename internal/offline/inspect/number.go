package inspect

import (
	"fmt"
	"strconv"
)

// Number is an index of a log or, when it is large, a zxid.
type Number uint64

// Hex is a zxid or the id of a session: it is written as ZooKeeper writes it.
type Hex int64

// String returns the number with 0x before it.
func (h Hex) String() string { return "0x" + strconv.FormatUint(uint64(h), 16) }

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, for hexadecimal digits with
// or without 0x before them.
func (h *Hex) UnmarshalText(b []byte) error {
	s := string(b)
	if len(s) > 2 && s[:2] == "0x" {
		s = s[2:]
	}
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return fmt.Errorf("%q is no hexadecimal number", b)
	}
	*h = Hex(v)
	return nil
}
