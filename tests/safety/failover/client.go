package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// task is the work of a connected client.
type task uint8

const (
	write task = iota // set its own znode
	read              // read the root znode
	hold              // own an ephemeral znode, and ping
)

func (t task) String() string { return [...]string{"writer", "reader", "holder"}[t] }

// root is the parent of every znode used here.
const root = "/failover"

// connectionLoss is the name in the results for a request that lost its connection.
const connectionLoss = "ConnectionLoss"

// sessionTimeout is the timeout that every client requests.
const sessionTimeout = 10 * time.Second

// client is a client. Its session lives as long as the client.
type client struct {
	task  task
	home  int // index of the client's own server
	name  string
	pace  time.Duration
	addrs []string

	session session

	mu       sync.Mutex
	at       int         // the server that it is or was last connected to
	opened   int         // connections so far
	answered []time.Time // when each successful request of its task was answered
	errs     map[string]int
	lost     int // sessions lost
	starved  int // sessions lost because the client got no processor time to keep them alive
	tried    time.Time
	late     time.Time // when it last ran so late that its session may have expired
	wrong    []string

	// For a writer: the last acknowledged version, and the number of writes with an
	// unknown outcome since then.
	version, unknown int32
	written          bool
	made             bool
}

func newClient(t task, home int, addrs []string, name string) *client {
	c := &client{task: t, home: home, at: home, addrs: addrs, name: name,
		errs: map[string]int{}, session: session{timeout: sessionTimeout}}
	switch t {
	case write, read:
		c.pace = 2 * time.Millisecond
	case hold:
		c.pace = 100 * time.Millisecond // short enough to notice a lost connection soon
	}
	return c
}

// run works until ctx ends.
func (c *client) run(ctx context.Context) {
	for next := c.home; ctx.Err() == nil; {
		c.awake(time.Now())
		if !c.session.connected() {
			if !c.connect(next) {
				next = (next + 1) % len(c.addrs)
				if next == c.home || len(c.addrs) == 1 {
					sleep(ctx, retryPause)
				}
				continue
			}
			next = c.home
		}
		c.act()
		sleep(ctx, c.pace)
	}
}

// awake notes whether the client itself ran too late. A client should wait for a silent
// server for two thirds of the timeout, never longer. If the client failed to keep its
// session alive, we don't blame the servers for its loss.
func (c *client) awake(now time.Time) {
	if !c.tried.IsZero() && now.Sub(c.tried) > sessionTimeout*3/4 {
		c.late = now
	}
	c.tried = now
}

// connect tries one server.
func (c *client) connect(server int) bool {
	err := c.session.connect(c.addrs[server])
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, errExpired) {
		if time.Since(c.late) < 2*sessionTimeout {
			c.starved++
		} else {
			c.lost++
		}
		c.session.id, c.session.password, c.made = 0, nil, false
	}
	if err != nil {
		return false
	}
	c.at = server
	c.opened++
	return true
}

// act performs one operation of the client's task.
func (c *client) act() {
	if !c.made && !c.prepare() {
		return
	}
	var body []byte
	var err error
	switch c.task {
	case write:
		body, err = c.session.do(proto.OpSetData, &proto.SetDataRequest{Path: c.name, Data: make([]byte, 16), Version: -1})
	case read:
		_, err = c.session.do(proto.OpGetData, &proto.GetDataRequest{Path: root})
	case hold:
		_, err = c.session.do(proto.OpPing, nil)
	}
	c.note(body, err)
}

// prepare creates the client's znode. If the outcome of an attempt is unknown, the next
// attempt finds it out.
func (c *client) prepare() bool {
	mode := proto.ModePersistent
	if c.task == hold {
		mode = proto.ModeEphemeral
	}
	if c.task != read {
		_, err := c.session.do(proto.OpCreate, &proto.CreateRequest{Path: c.name, ACL: proto.OpenACL(), Flags: int32(mode)})
		if err != nil && !errors.Is(err, proto.ErrNodeExists) {
			c.note(nil, err)
			return false
		}
	}
	c.made = true
	return true
}

// note records and checks the outcome of one request.
func (c *client) note(body []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var code proto.Code
	switch {
	case errors.As(err, &code):
		c.errs[code.String()]++
		return
	case err != nil:
		c.errs[connectionLoss]++
		c.unknown++
		return
	}
	if c.task == write {
		c.checkVersion(body)
	}
	c.answered = append(c.answered, time.Now())
}

// checkVersion checks a writer's reply against the versions acknowledged before. The client
// is the only writer of its znode, so we can recognize writes that were lost or applied
// twice by the version.
func (c *client) checkVersion(body []byte) {
	r := proto.NewReader(body)
	var resp proto.SetDataResponse
	resp.Decode(&r)
	if r.Err() != nil {
		c.wrong = append(c.wrong, r.Err().Error())
		return
	}
	v := resp.Stat.Version
	if c.written && (v <= c.version || v > c.version+c.unknown+1) {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: version %d after %d with %d unknown outcomes", c.name, v, c.version, c.unknown))
	}
	c.version, c.unknown, c.written = v, 0, true
}

// goHome makes the client leave a server that is not its own.
func (c *client) goHome() {
	c.mu.Lock()
	away := c.at != c.home
	c.mu.Unlock()
	if away {
		c.session.cut()
	}
}

// since returns the times of the replies from t on.
func (c *client) since(t time.Time) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, _ := slices.BinarySearchFunc(c.answered, t, time.Time.Compare)
	return slices.Clone(c.answered[i:])
}

// connections returns how many connections the client has opened so far.
func (c *client) connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

func sleep(ctx context.Context, d time.Duration) {
	if ctx.Err() != nil {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
