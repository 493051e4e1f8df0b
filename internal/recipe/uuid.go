package recipe

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// NewUUID returns a random UUID of version 4. We use it like clients in other languages,
// which put such a UUID into names that must be unique.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
