package acl

import "strings"

// ipAddr is an address in the scheme ip: 4 or 16 bytes.
type ipAddr struct {
	b [16]byte
	n int
}

// ValidIP reports whether expr is an address or a network, address/bits.
func ValidIP(expr string) bool {
	_, _, ok := parseNet(expr)
	return ok
}

// ipMatches reports whether an address lies in the network expr.
func ipMatches(addr, expr string) bool {
	network, bits, ok := parseNet(expr)
	if !ok {
		return false
	}
	a, ok := parseIP(addr)
	if !ok || a.n != network.n {
		return false
	}
	for i := 0; i < a.n && bits > 0; i, bits = i+1, bits-8 {
		mask := byte(0xff)
		if bits < 8 {
			mask <<= 8 - bits
		}
		if (a.b[i]^network.b[i])&mask != 0 {
			return false
		}
	}
	return true
}

// parseNet splits expr into an address and a prefix length in bits.
func parseNet(expr string) (a ipAddr, bits int, ok bool) {
	addr, length, found := strings.Cut(expr, "/")
	if a, ok = parseIP(addr); !ok {
		return a, 0, false
	}
	if !found {
		return a, a.n * 8, true
	}
	v, ok := parseJavaInt(length, 10)
	return a, v, ok && v >= 0 && v <= a.n*8
}

// parseIP parses an address of either family by ZooKeeper's rules, which differ
// from Go's and from the RFCs: e.g. "+1.02.3.4" is valid.
func parseIP(s string) (a ipAddr, ok bool) {
	switch {
	case strings.Contains(s, ":"):
		return parseIPv6(s)
	case strings.Count(s, ".") != 3:
		return a, false
	}
	a.n = 4
	for i := range 4 {
		part, rest, _ := strings.Cut(s, ".")
		v, ok := parseJavaInt(part, 10)
		if !ok || v < 0 || v > 255 {
			return a, false
		}
		a.b[i], s = byte(v), rest
	}
	return a, true
}

func parseIPv6(s string) (a ipAddr, ok bool) {
	a.n = 16
	head, tail, compressed := strings.Cut(s, "::")
	if !compressed {
		n, ok := parseGroups(s, a.b[:])
		return a, ok && n == 8
	}
	if strings.Contains(tail, "::") {
		return a, false
	}
	var front, back [16]byte
	n, ok := parseGroups(head, front[:])
	if !ok {
		return a, false
	}
	m, ok := parseGroups(tail, back[:])
	if !ok || n+m >= 8 {
		return a, false
	}
	copy(a.b[:], front[:2*n])
	copy(a.b[16-2*m:], back[:2*m])
	return a, true
}

// parseGroups parses groups of hexadecimal digits separated by colons into b. It
// returns the number of groups, 0 for an empty string.
func parseGroups(s string, b []byte) (n int, ok bool) {
	for more := s != ""; more; n++ {
		var group string
		group, s, more = strings.Cut(s, ":")
		v, ok := parseJavaInt(group, 16)
		if !ok || len(group) > 4 || n == 8 {
			return 0, false
		}
		b[2*n], b[2*n+1] = byte(v>>8), byte(v)
	}
	return n, true
}

// parseJavaInt parses a number like Integer.parseInt: an optional sign, any number of
// leading zeros, nothing else, within 32 bits.
func parseJavaInt(s string, base int) (int, bool) {
	negative := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		negative = s[0] == '-'
		s = s[1:]
	}
	v := 0
	for i := range len(s) {
		d := 99
		switch c := s[i] | 0x20; {
		case s[i] >= '0' && s[i] <= '9':
			d = int(s[i] - '0')
		case c >= 'a' && c <= 'f':
			d = int(c-'a') + 10
		}
		if d >= base {
			return 0, false
		}
		if v = v*base + d; v > 1<<31 {
			return 0, false
		}
	}
	if negative {
		v = -v
	}
	return v, s != "" && v < 1<<31
}
