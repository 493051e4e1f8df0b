package client

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// defaultPort is the port of a host that has none.
const defaultPort = "2181"

// parseConnectString splits "host:port,host:port/chroot" into the addresses, each with a
// port, and the chroot, which may be "".
func parseConnectString(s string) (addrs []string, chroot string, err error) {
	fail := func(format string, args ...any) ([]string, string, error) {
		return nil, "", fmt.Errorf("client: connect string %q: %s", s, fmt.Sprintf(format, args...))
	}
	hosts := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		hosts, chroot = s[:i], s[i:]
		if strings.HasPrefix(chroot, "//") && strings.HasSuffix(hosts, ":") {
			return fail("it begins with the scheme %q, but a connect string is not a URL", hosts)
		}
		if chroot == "/" {
			chroot = ""
		} else if err := proto.ValidatePath(chroot); err != nil {
			return fail("chroot at offset %d: %v", i, err)
		}
	}
	at := 0
	for _, h := range strings.Split(hosts, ",") {
		addr, err := parseHost(strings.TrimSpace(h))
		if err != nil {
			return fail("server at offset %d: %v", at, err)
		}
		addrs = append(addrs, addr)
		at += len(h) + 1
	}
	return addrs, chroot, nil
}

// parseHost reads "host", "host:port", "[v6]", "[v6]:port" or a bare v6.
func parseHost(h string) (string, error) {
	host, port := h, defaultPort
	switch {
	case h == "":
		return "", errors.New("it is empty")
	case strings.HasPrefix(h, "["):
		end := strings.IndexByte(h, ']')
		if end < 0 {
			return "", fmt.Errorf("%q: the bracket is not closed", h)
		}
		host = h[1:end]
		if a, err := netip.ParseAddr(host); err != nil || !a.Is6() {
			return "", fmt.Errorf("%q: %q is not an IPv6 address", h, host)
		}
		if rest := h[end+1:]; rest != "" {
			if rest[0] != ':' {
				return "", fmt.Errorf("%q: %q after the bracket", h, rest)
			}
			port = rest[1:]
		}
	case strings.Count(h, ":") > 1:
		if a, err := netip.ParseAddr(h); err != nil || !a.Is6() {
			return "", fmt.Errorf("%q is neither host:port nor an IPv6 address", h)
		}
	default:
		if before, after, ok := strings.Cut(h, ":"); ok {
			host, port = before, after
		}
		if host == "" {
			return "", fmt.Errorf("%q has no host", h)
		}
		if strings.ContainsAny(host, "[]") {
			return "", fmt.Errorf("%q: a bracket in the host's name", h)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q: %q is not a port", h, port)
	}
	if strings.ContainsAny(host, " \t\r\n") {
		return "", fmt.Errorf("%q: white space in the host's name", h)
	}
	if strings.ContainsAny(host, "[]") { // can occur in the zone of an address
		return "", fmt.Errorf("%q: brackets inside the host name", host)
	}
	return net.JoinHostPort(host, port), nil
}
