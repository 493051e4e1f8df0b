package mirror

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// network is a fake network. Its behaviour by address may change while a fence is checked.
type network struct {
	mu    sync.Mutex
	is    map[string]string
	dials int
	ends  []net.Conn
}

func (n *network) set(addr, is string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.is[addr] = is
}

func (n *network) of(addr string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.is[addr]
}

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	switch n.is[addr] {
	case "refuses":
		return fail(syscall.ECONNREFUSED)
	case "unreachable":
		return fail(syscall.EHOSTUNREACH)
	case "no descriptors":
		return fail(syscall.EMFILE)
	case "drops":
		n.mu.Unlock()
		<-ctx.Done()
		n.mu.Lock()
		return fail(ctx.Err())
	}
	here, there := net.Pipe()
	n.ends = append(n.ends, there)
	go n.serve(there, addr)
	return here, nil
}

// serve answers one request as the address behaves at that time. Existing connections may
// behave in another way than new ones.
func (n *network) serve(conn net.Conn, addr string) {
	if n.of(addr) == "closes" {
		_ = conn.Close()
		return
	}
	buf := make([]byte, 100)
	size, err := conn.Read(buf)
	is := n.of(addr)
	if old := n.of(addr + " old"); old != "" {
		is = old
	}
	switch {
	case err != nil, is == "closes after reading":
		_ = conn.Close()
	case is == "answers", is == "answers srvr" && string(buf[:size]) == "srvr", is == "answers clients" && size > 20:
		_, _ = io.WriteString(conn, "Zookeeper version: 3.9.5")
	case is == "answers clients":
		_ = conn.Close()
	}
}

// fenced makes an address refuse new connections. Existing ones behave as given: "ended" ends
// them at this moment.
func (n *network) fenced(addr, old string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.is[addr], n.is[addr+" old"] = "refuses", old
	for _, conn := range n.ends {
		if old == "ended" {
			_ = conn.Close()
		}
	}
}

// fence returns an armed fence around addresses that behave as given.
func fence(t *testing.T, is map[string]string, proxies ...string) (*Fence, *network) {
	t.Helper()
	n := &network{is: is}
	f := &Fence{Dial: n.dial, Proxies: proxies, Resolve: func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }}
	for addr := range is {
		f.Addrs = append(f.Addrs, addr)
	}
	must.Do(t, f.Arm(t.Context()))
	t.Cleanup(func() {
		f.Disarm()
		for _, conn := range n.ends {
			_ = conn.Close()
		}
	})
	return f, n
}

// TestFence lists what counts as open and as closed.
func TestFence(t *testing.T) {
	t.Parallel()
	for is, want := range map[string]string{
		"refuses":                    "",
		"unreachable":                "",
		"drops":                      "",
		"answers":                    `zk:1 still answers: "Zookeeper version: 3.9.5"`,
		"silent":                     "zk:1 still accepts connections; if it is a proxy",
		"closes":                     "zk:1 still accepts connections",
		"closes after reading":       "zk:1 still accepts connections",
		"no descriptors":             "zk:1 can't be checked: dial tcp",
		"proxy closes":               "",
		"proxy refuses":              "",
		"proxy answers srvr":         `zk:1 still answers: "Zookeeper version`,
		"proxy answers clients":      `zk:1 still answers: "Zookeeper version`,
		"proxy silent":               "zk:1 still accepts connections, and leaves them open",
		"proxy closes after reading": "",
	} {
		t.Run(is, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				is, proxy := strings.CutPrefix(is, "proxy ")
				var proxies []string
				if proxy {
					proxies = []string{"zk:1"}
				}
				f, n := fence(t, map[string]string{"zk:1": is}, proxies...)
				before := n.dials
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				begin := time.Now()
				err := f.Closed(ctx)
				took := time.Since(begin)
				if want == "" {
					if err != nil || took > 2*time.Second || n.dials-before < f.Tries {
						t.Errorf("%v after %v and %d attempts", err, took, n.dials-before)
					}
				} else if !errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), want) || took < 10*time.Second {
					t.Errorf("%v after %v, want %q", err, took, want)
				}
			})
		})
	}
}

// Closed waits until the last address is closed, and its error at the deadline names only the open
// addresses.
func TestFenceWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, n := fence(t, map[string]string{"zk1:1": "refuses", "zk2:1": "answers"})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Closed(short); !errors.Is(err, ErrOpen) || strings.Contains(err.Error(), "zk1:1") || !strings.Contains(err.Error(), "zk2:1 still answers") {
			t.Error(err)
		}
		go func() {
			time.Sleep(3 * time.Second)
			n.set("zk2:1", "refuses")
		}()
		begin := time.Now()
		if err := f.Closed(t.Context()); err != nil || time.Since(begin) < 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// A fence that only refuses new connections is open until the server has ended the existing
// ones.
func TestFenceWithOldConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, want string // how existing connections behave, and the error
		after     time.Duration
	}{
		"answers":                {"answers", `still serves existing ones: it answers "Zookeeper`, 0},
		"closes on data":         {"closes after reading", "it closes one only when we send something", 0},
		"drops":                  {"silent", "", 0},
		"closed":                 {"ended", "", 0},
		"closed a long time ago": {"ended", "", 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, n := fence(t, map[string]string{"zk:1": "silent"})
				time.Sleep(31 * time.Second)
				synctest.Wait()
				if n.dials != mostHeld+31 {
					t.Errorf("%d connections in 31 s", n.dials)
				}
				n.fenced("zk:1", c.old)
				time.Sleep(c.after)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := f.Closed(ctx)
				if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if got := len(f.Unverified()) > 0; got != (c.old != "ended") {
					t.Errorf("unverified: %q", f.Unverified())
				}
			})
		})
	}
}

// The server is stopped after we have found that it serves existing connections.
func TestFenceThatCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, n := fence(t, map[string]string{"zk:1": "silent"})
		time.Sleep(5 * time.Second)
		n.fenced("zk:1", "answers")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Closed(short); !errors.Is(err, ErrOpen) {
			t.Error(err)
		}
		n.fenced("zk:1", "ended")
		if err := f.Closed(t.Context()); err != nil || len(f.Unverified()) > 0 {
			t.Error(err, f.Unverified())
		}
	})
}

// A server that was closed before can't show its connections. The same goes for a server with
// connections so old that it may have closed them because of their age.
func TestFenceUnverified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, _ := fence(t, map[string]string{"zk:1": "refuses"})
		if err := f.Closed(t.Context()); err != nil || len(f.Unverified()) != 1 {
			t.Error(err, f.Unverified())
		}
		f, n := fence(t, map[string]string{"zk:1": "silent"})
		f.stop() // so that nothing looks at the connections before
		n.fenced("zk:1", "answers")
		time.Sleep(tooOld)
		if err := f.Closed(t.Context()); err != nil || len(f.Unverified()) != 1 {
			t.Error(err, f.Unverified())
		}
	})
}

func TestFenceErrors(t *testing.T) {
	t.Parallel()
	f := &Fence{}
	if err := f.Closed(t.Context()); err == nil || !strings.Contains(err.Error(), "armed") {
		t.Error(err)
	}
	must.Do(t, f.Arm(t.Context()))
	if err := f.Closed(t.Context()); err == nil || !strings.Contains(err.Error(), "--clients") {
		t.Error("nothing to check is closed:", err)
	}
	f.Disarm()
	f.Disarm()
	f.Addrs, f.Resolve = []string{"gone:1"}, func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	if err := f.Arm(t.Context()); err == nil || !strings.Contains(err.Error(), "gone:1: no such host") {
		t.Error(err)
	}
	f.Addrs = []string{"gone"}
	if err := f.Arm(t.Context()); err == nil || !strings.Contains(err.Error(), "missing port") {
		t.Error(err)
	}
}

// With real sockets: a port is open while a process listens, also if it never accepts.
func TestFenceOnSockets(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	f := &Fence{Addrs: []string{l.Addr().String()}, Timeout: 100 * time.Millisecond}
	must.Do(t, f.Arm(t.Context()))
	defer f.Disarm()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := f.Closed(ctx); !errors.Is(err, ErrOpen) {
		t.Error(err)
	}
	must.Do(t, l.Close())
	must.Do(t, f.Closed(t.Context()))
}
