package client

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestConnectStrings(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct {
		addrs  []string
		chroot string
	}{
		"a":                          {[]string{"a:2181"}, ""},
		"a:1, b:2/x/y":               {[]string{"a:1", "b:2"}, "/x/y"},
		"a/":                         {[]string{"a:2181"}, ""},
		"[::1]:5,[fe80::1%eth0],::2": {[]string{"[::1]:5", "[fe80::1%eth0]:2181", "[::2]:2181"}, ""},
	} {
		addrs, chroot, err := parseConnectString(s)
		if err != nil || !slices.Equal(addrs, want.addrs) || chroot != want.chroot {
			t.Errorf("%q: %q, %q, %v", s, addrs, chroot, err)
		}
	}
	for s, says := range map[string]string{
		"":            "server at offset 0: it is empty",
		"a,":          "server at offset 2: it is empty",
		"a:x":         `"x" is not a port`,
		"a:0":         `"0" is not a port`,
		"a:65536":     "is not a port",
		"a:":          `"" is not a port`,
		":1":          "has no host",
		"[::1":        "bracket is not closed",
		"[a]:1":       "not an IPv6 address",
		"[::1]x":      "after the bracket",
		"a:1:2":       "neither host:port nor an IPv6 address",
		"a/x/":        "chroot at offset 1",
		"a/x//y":      "chroot at offset 1",
		"a b":         "white space",
		"a]:1":        "a bracket",
		"zk://a:2181": "is not a URL",
	} {
		if _, _, err := parseConnectString(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, should say %q", s, err, says)
		}
	}
}

func FuzzConnectString(f *testing.F) {
	for _, s := range []string{"a:1,b/c", "[::1]:2181/x", ",", "a:b:c", "0::%[0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		addrs, chroot, err := parseConnectString(s)
		if err != nil {
			return
		}
		for _, a := range addrs {
			if _, _, err := net.SplitHostPort(a); err != nil {
				t.Fatalf("%q: address %q: %v", s, a, err)
			}
		}
		if len(addrs) == 0 || chroot != "" && chroot[0] != '/' {
			t.Fatalf("%q: %q, %q", s, addrs, chroot)
		}
	})
}

func TestHosts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	lookups := 0
	cfg := newConfig([]Option{WithResolver(func(_ context.Context, host string) ([]string, error) {
		lookups++
		if host == "bad" {
			return nil, net.UnknownNetworkError("nowhere")
		}
		return []string{"10.0.0.1", "10.0.0.2"}, nil
	})})
	h := newHosts(&cfg, []string{"zk:1", "bad:1", "10.0.0.9:1"})
	seen := map[string]bool{}
	for i := range 3 {
		x, last, err := h.next(ctx)
		if err != nil || last != (i == 2) {
			t.Fatalf("%v, %v, %v", x, last, err)
		}
		seen[x.addr] = true
		h.last = x.addr
	}
	if len(seen) != 3 || lookups != 2 {
		t.Errorf("addresses %v, %d look-ups", seen, lookups)
	}
	// We should try the server of the last connection last, after a new lookup.
	for range 20 {
		h.restart()
		var order []string
		for last := false; !last; {
			var x target
			x, last, _ = h.next(ctx)
			order = append(order, x.addr)
		}
		if order[2] != h.last {
			t.Fatalf("order %v, the last was %s", order, h.last)
		}
	}
	// If no server in the ensemble's list is reachable, we should fall back to the connect
	// string.
	h.names = []string{"10.9.9.9:1"}
	h.restart()
	first, _, _ := h.next(ctx)
	second, _, _ := h.next(ctx)
	if first.addr != "10.9.9.9:1" || second.addr == first.addr {
		t.Errorf("%v, then %v", first, second)
	}
	h = newHosts(&cfg, []string{"bad:1"})
	if _, _, err := h.next(ctx); err == nil || !strings.Contains(err.Error(), "bad") {
		t.Errorf("no name can be looked up: %v", err)
	}
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"a:2888:3888:participant;b:2181":       "b:2181",
		"a:2888:3888:participant;0.0.0.0:2181": "a:2181",
		"a:2888:3888;2181":                     "a:2181",
		"a:2888:3888|b:1:2:observer;[::]:2181": "a:2181",
		"[::1]:2888:3888;2181":                 "[::1]:2181",
		"[::1]:2888:3888;[fe80::1]:2181":       "[fe80::1]:2181",
		"a:2888:3888:participant":              "",
	} {
		if got := clientAddress(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
