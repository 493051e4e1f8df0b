package proto

import "unicode/utf8"

// JavaString returns a copy of b decoded as Java decodes UTF-8: invalid bytes
// become U+FFFD. An incomplete character becomes one U+FFFD, and so does a
// three-byte surrogate.
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

// malformed returns the number of bytes at the start of b that one U+FFFD
// replaces.
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
