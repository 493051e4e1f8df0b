package zoocfg

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// trim is Java's String.trim: it removes all characters up to U+0020 at both ends.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// split is Java's String.split. It drops empty parts at the end, so a text of
// separators has no parts, but the empty text has one.
func split(s, sep string) []string {
	if s == "" {
		return []string{""}
	}
	parts := strings.Split(s, sep)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// parseInt is Java's Integer.parseInt.
func parseInt(s string) (int, bool) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err == nil
}

// parseLong is Java's Long.parseLong.
func parseLong(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// decode is Java's Long.decode, which parses system properties: a leading 0x, 0X or #
// means hexadecimal, a leading 0 octal.
func decode(s string) (int64, bool) {
	sign, digits := "", s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, digits = s[:1], s[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		base, digits = 16, digits[2:]
	case strings.HasPrefix(digits, "#"):
		base, digits = 16, digits[1:]
	case strings.HasPrefix(digits, "0") && len(digits) > 1:
		base, digits = 8, digits[1:]
	}
	if digits == "" || digits[0] == '-' || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(sign+digits, base, 64)
	return n, err == nil
}

// hostString returns a host as Java represents it: names stay as written, and address
// literals are converted to Java's canonical form. It resolves no names.
func hostString(host string) string {
	if host == "" {
		return "localhost"
	}
	if a, ok := shortIPv4(host); ok {
		return a
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if a.Is4() || a.Is4In6() {
		return a.Unmap().String()
	}
	var b strings.Builder
	for i, bytes := 0, a.As16(); i < 16; i += 2 {
		if i > 0 {
			b.WriteByte(':')
		}
		fmt.Fprintf(&b, "%x", uint16(bytes[i])<<8|uint16(bytes[i+1]))
	}
	if a.Zone() != "" {
		b.WriteString("%" + a.Zone())
	}
	return b.String()
}

// anyAddress reports whether the host is a wildcard: empty, 0.0.0.0 or ::.
func anyAddress(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

// isLiteral reports whether the host is an address instead of a name.
func isLiteral(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.IsLoopback()
}

// shortIPv4 parses addresses of one to four decimal numbers. The last number fills
// the remaining bytes: 127.1 is 127.0.0.1.
func shortIPv4(host string) (string, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", false
	}
	var addr uint64
	for i, p := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, err := strconv.ParseUint(p, 10, bits)
		if err != nil {
			return "", false
		}
		addr = addr<<bits | n
	}
	b := [4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}
	return netip.AddrFrom4(b).String(), true
}

// hostAndPort splits host:port:… at the colons. A host in brackets is one part.
func hostAndPort(s string) ([]string, error) {
	if !strings.HasPrefix(s, "[") {
		return split(s, ":"), nil
	}
	end := strings.IndexByte(s, ']')
	switch {
	case end < 0:
		return nil, fmt.Errorf("%w: %s starts with '[' but has no matching ']:'", ErrWrongFormat, s)
	case end+2 == len(s):
		return nil, fmt.Errorf("%w: %s doesn't have a port after colon", ErrWrongFormat, s)
	case end+2 > len(s):
		return []string{s[1:end]}, nil
	}
	return append([]string{s[1:end]}, split(s[end+2:], ":")...), nil
}
