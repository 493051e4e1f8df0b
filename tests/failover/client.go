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

// task is what a client does while it is connected.
type task uint8

const (
	write task = iota // set its own znode
	read              // read the root of all znodes used here
	hold              // own an ephemeral znode, and ping
)

func (t task) String() string { return [...]string{"writer", "reader", "holder"}[t] }

// root is the parent of every znode used here.
const root = "/failover"

// connectionLoss is how the results call a request whose connection ended.
const connectionLoss = "ConnectionLoss"

// sessionTimeout is what every client asks for.
const sessionTimeout = 10 * time.Second

// client is one client with one session, which lives as long as the client.
type client struct {
	task  task
	home  int // index of its own server
	name  string
	pace  time.Duration
	addrs []string

	session session

	mu       sync.Mutex
	at       int         // server it is or was last connected with
	opened   int         // connections so far
	answered []time.Time // every successful request of its task
	errs     map[string]int
	lost     int // sessions
	starved  int // sessions whose client got no time on the processor to keep them
	tried    time.Time
	late     time.Time // when it last got to work so late that its session may be gone
	wrong    []string

	// Of a writer: the version that was acknowledged last, and how many writes
	// have an unknown outcome since.
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
		c.pace = 100 * time.Millisecond // soon enough to notice that the connection is gone
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

// awake notes whether the client itself was too late: it waits for a silent
// server for two thirds of the timeout, never longer. A session that it did not
// keep is not one that the servers lost.
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

// act does one piece of work.
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

// prepare makes the client's znode. An outcome that stayed unknown shows in the
// next attempt.
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

// note records the outcome of one request and checks it.
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

// checkVersion holds a writer's reply against what was acknowledged before. It
// is the only writer of its znode, so versions tell of writes lost and of
// writes done twice.
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

// since returns when the client was answered from t on.
func (c *client) since(t time.Time) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, _ := slices.BinarySearchFunc(c.answered, t, time.Time.Compare)
	return slices.Clone(c.answered[i:])
}

// connections is how many connections the client has opened so far.
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
