package inspect

import (
	"fmt"
	"strconv"
)

// Number is a log index or, if it's large, a zxid.
type Number uint64

// Hex is a zxid or a session id, formatted as in ZooKeeper.
type Hex int64

// String returns the number with the prefix 0x.
func (h Hex) String() string { return "0x" + strconv.FormatUint(uint64(h), 16) }

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler for hexadecimal digits with or
// without the prefix 0x.
func (h *Hex) UnmarshalText(b []byte) error {
	s := string(b)
	if len(s) > 2 && s[:2] == "0x" {
		s = s[2:]
	}
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return fmt.Errorf("%q is not a hexadecimal number", b)
	}
	*h = Hex(v)
	return nil
}
