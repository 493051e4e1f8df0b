package ensemble

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// client is one session that lives throughout a test. It owns an ephemeral znode, writes
// one znode after another, and moves to another server when its connection ends. We record
// which writes were acknowledged.
type client struct {
	name string
	done chan struct{}
	stop chan struct{}

	mu    sync.Mutex
	addrs []string
	acked []string
	moves int
	err   error
}

// sessionTimeout is longer than any disruption by the tests.
const sessionTimeout = 40 * time.Second

// enough is the number of writes that show progress.
const enough = 20

// connect starts a client that knows the given servers, and waits until it has written
// enough.
func (c *cluster) connect(name string, ids ...int) *client {
	c.t.Helper()
	w := &client{name: name, done: make(chan struct{}), stop: make(chan struct{})}
	w.knows(c, ids...)
	go w.run()
	c.t.Cleanup(func() { w.halt() })
	w.more(c, enough)
	return w
}

// knows gives the client the addresses of servers.
func (w *client) knows(c *cluster, ids ...int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addrs = nil
	for _, id := range ids {
		w.addrs = append(w.addrs, c.nodes[id].addr())
	}
}

// more waits until n more writes have been acknowledged.
func (w *client) more(c *cluster, n int) {
	c.t.Helper()
	from := w.count()
	c.eventually(fmt.Sprintf("%d more writes of %s", n, w.name), func() bool {
		select {
		case <-w.done:
			c.t.Fatalf("client %s: %v", w.name, w.err)
		default:
		}
		return w.count() >= from+n
	})
}

func (w *client) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// halt stops the client's writes; its session stays.
func (w *client) halt() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	<-w.done
}

func (w *client) run() {
	defer close(w.done)
	var session int64
	var password []byte
	for at := 0; ; at++ {
		select {
		case <-w.stop:
			return
		default:
		}
		w.mu.Lock()
		addr := w.addrs[at%len(w.addrs)]
		w.mu.Unlock()
		cl, err := process.Connect(addr, session, password, sessionTimeout)
		if errors.Is(err, proto.ErrSessionExpired) && session != 0 {
			w.fail(fmt.Errorf("the session expired, or %s does not know it", addr))
			return
		}
		if err != nil {
			select {
			case <-w.stop:
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		first := session == 0
		session, password = cl.Session, cl.Password
		if err := w.write(cl, first); err != nil {
			w.fail(err)
		}
		_ = cl.Close()
		if w.failed() {
			return
		}
		w.mu.Lock()
		w.moves++
		w.mu.Unlock()
	}
}

func (w *client) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *client) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// write writes until the connection ends; an error reply from the server is an error.
func (w *client) write(cl *process.Client, first bool) error {
	if first {
		switch err := cl.Create("/e-"+w.name, nil, proto.ModeEphemeral); {
		case refusal(err):
			return err
		case err != nil:
			return nil
		}
	} else if _, _, err := cl.Get("/e-" + w.name); refusal(err) {
		return fmt.Errorf("its ephemeral znode: %w", err)
	}
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-w.stop:
			return nil
		case <-pace.C:
		}
		path := fmt.Sprintf("/%s-%d-%d", w.name, cl.Session&0xffff, time.Now().UnixNano())
		switch err := cl.Create(path, nil, proto.ModePersistent); {
		case refusal(err):
			return fmt.Errorf("create %s: %w", path, err)
		case err != nil:
			return nil
		}
		w.mu.Lock()
		w.acked = append(w.acked, path)
		w.mu.Unlock()
	}
}

// refusal reports whether err is an error reply and not the end of a connection.
func refusal(err error) bool {
	var code proto.Code
	return errors.As(err, &code)
}

// verify stops the clients and checks that the given servers have all that was
// acknowledged. It logs the number of writes.
func (c *cluster) verify(clients []*client, ids ...int) {
	c.t.Helper()
	total := 0
	for _, w := range clients {
		w.halt()
		if w.err != nil {
			c.t.Errorf("client %s: %v", w.name, w.err)
		}
		total += len(w.acked)
	}
	for _, id := range ids {
		cl := c.admin(id)
		must.Get(cl.Do(proto.OpSync, &proto.SyncRequest{Path: "/"}))(c.t)
		names := must.Get(cl.Children("/"))(c.t)
		slices.Sort(names)
		for _, w := range clients {
			for _, path := range append([]string{"/e-" + w.name}, w.acked...) {
				if _, found := slices.BinarySearch(names, path[1:]); !found {
					c.t.Errorf("server %d has lost %s", id, path)
				}
			}
		}
	}
	if total < enough {
		c.t.Errorf("only %d writes were acknowledged: this shows nothing", total)
	}
	c.t.Logf("%d acknowledged writes", total)
}
