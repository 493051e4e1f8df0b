package proto

import "unicode/utf8"

// JavaString returns a copy of b decoded as Java decodes UTF-8: bytes that are
// no character become U+FFFD, one for what could be the beginning of a
// character, and one for a surrogate of three bytes.
func JavaString(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	s := make([]byte, 0, len(b)+utf8.UTFMax)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = malformed(b)
		}
		s = utf8.AppendRune(s, r)
		b = b[n:]
	}
	return string(s)
}

// malformed returns the number of bytes at the start of b that one U+FFFD stands
// for.
func malformed(b []byte) int {
	if len(b) > 1 && b[0] == 0xed && b[1] >= 0xa0 && b[1] <= 0xbf {
		if len(b) > 2 && b[2]&0xc0 == 0x80 {
			return 3
		}
		return 2
	}
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
