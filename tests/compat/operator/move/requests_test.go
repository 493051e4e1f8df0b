package move

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// mirrorLib names a directory with the jars of another release to follow.
var mirrorLib = flag.String("mirror", "", "`release=directory` with the jars of the ensemble that a learner follows")

// mine is the id of a session that the learner opens. Its high byte is the learner's id.
const mine = 200<<56 - 1<<64 + 1

// TestRequests sends requests through a learner to the leader of a real ensemble, and checks
// the transactions that return.
func TestRequests(t *testing.T) {
	t.Parallel()
	need(t)
	servers, modern := mirrored(t)
	c := gozk(t, servers[0].Addr())
	r := join(t, servers)
	if got := r.Members(); modern != strings.Contains(got, "server.1=127.0.0.1:") {
		t.Errorf("the configuration is %q", got)
	}
	if tx := r.do(mine, 0, proto.OpCreateSession, timeout(600_000)); tx.Body.(*zkfiles.CreateSessionTxn).Timeout != 600_000 {
		t.Errorf("%+v", tx)
	}
	r.creates(c, modern)
	r.fails(modern)
	r.multis()
	r.identities(c)

	// A sync is answered after everything that the ensemble had acknowledged before it.
	stat := must.Get(c.Set("/r", []byte("new"), -1))(t)
	must.Do(t, r.Request(learner.Request{Session: mine, Cxid: 40, Op: proto.OpSync, Body: body(&proto.SyncRequest{Path: "/r"})}))
	r.await("the sync", func(h *heard) bool { return h.syncs[key{mine, 40}] >= stat.Mzxid })

	tx := r.do(mine, 41, proto.OpCloseSession, nil)
	if paths := tx.Body.(*zkfiles.CloseSessionTxn).Paths; modern && len(paths) != 1 && !strings.HasPrefix(release(), "3.5") {
		t.Errorf("the end of the session deletes %q", paths)
	}
	must.Get(c.Sync("/"))(t)
	if exists, _, err := c.Exists("/r/e-0000000001"); exists || err != nil {
		t.Errorf("the ephemeral znode of a closed session: %v, %v", exists, err)
	}
}

// creates creates znodes of all kinds that the release knows.
func (r *requester) creates(c *zk.Conn, modern bool) {
	r.t.Helper()
	for i, want := range []string{"/r", "/r/s-0000000000", "/r/e-0000000001"} {
		flags := []int32{0, 2, 3}[i]
		path := strings.TrimRight(want, "0123456789")
		tx := r.do(mine, int32(10+i), proto.OpCreate, body(&proto.CreateRequest{Path: path, Data: []byte("x"), ACL: proto.OpenACL(), Flags: flags}))
		if created, ok := tx.Body.(*zkfiles.CreateTxn); !ok || created.Path != want || created.Ephemeral != (flags == 3) {
			r.t.Errorf("%+v, want %s", tx, want)
		}
		must.Get(c.Sync("/"))(r.t)
		_, stat, err := c.Get(want)
		if must.Do(r.t, err); stat.Czxid != tx.Zxid || stat.EphemeralOwner != map[bool]int64{true: mine}[flags == 3] {
			r.t.Errorf("%s: %+v", want, stat)
		}
	}
	if modern {
		r.do(mine, 13, proto.OpCreate2, body(&proto.CreateRequest{Path: "/r/two", ACL: proto.OpenACL()}))
		r.do(mine, 14, proto.OpCreateContainer, body(&proto.CreateRequest{Path: "/r/box", ACL: proto.OpenACL(), Flags: 4}))
		r.do(mine, 15, proto.OpCreateTTL, body(&proto.CreateTTLRequest{Path: "/r/ttl", ACL: proto.OpenACL(), Flags: 5, TTL: 3_600_000}))
	} else if err := r.Request(learner.Request{Session: mine, Op: proto.OpCreate2, Body: body(&proto.CreateRequest{Path: "/r/two", ACL: proto.OpenACL()})}); !errors.Is(err, learner.ErrUnknownOp) {
		r.t.Errorf("create2 for ZooKeeper 3.4: %v", err)
	}
}

// fails makes requests that must fail. The transaction of a failure has our cxid.
func (r *requester) fails(modern bool) {
	r.t.Helper()
	r.code(proto.ErrNodeExists, r.do(mine, 20, proto.OpCreate, body(&proto.CreateRequest{Path: "/r", ACL: proto.OpenACL()})))
	r.code(proto.ErrBadVersion, r.do(mine, 21, proto.OpSetData, body(&proto.SetDataRequest{Path: "/r", Version: 9})))
	r.code(proto.ErrNoNode, r.do(mine, 22, proto.OpDelete, body(&proto.DeleteRequest{Path: "/none", Version: -1})))
	r.code(proto.ErrSessionExpired, r.do(mine+1, 23, proto.OpDelete, body(&proto.DeleteRequest{Path: "/r", Version: -1})))
	if modern {
		r.code(proto.ErrReconfigDisabled, r.do(mine, 24, proto.OpReconfig, body(&proto.ReconfigRequest{Joining: proto.NullString, Leaving: "3", NewMembers: proto.NullString, CurConfigID: -1})))
	}
}

func (r *requester) code(want proto.Code, tx *zkfiles.Txn) {
	r.t.Helper()
	if e, failed := tx.Body.(*zkfiles.ErrorTxn); !failed || e.Code != want || tx.Type != proto.OpError {
		r.t.Errorf("%v %+v, want %v", tx.Type, tx.Body, want)
	}
}

// multis sends a multi that succeeds and one that fails.
func (r *requester) multis() {
	r.t.Helper()
	ops := []proto.MultiOp{
		{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/r/m", ACL: proto.OpenACL()}},
		{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: "/r/m", Data: []byte("m"), Version: 0}},
		{Op: proto.OpCheck, Req: &proto.CheckVersionRequest{Path: "/r/m", Version: 1}},
	}
	tx := r.do(mine, 30, proto.OpMulti, body(&proto.MultiRequest{Ops: ops}))
	if m, ok := tx.Body.(*zkfiles.MultiTxn); !ok || len(m.Ops) != 3 || fmt.Sprint(tx.Paths()) != "[/r/m /r/m /r/m]" {
		r.t.Errorf("%+v", tx)
	}
	ops[0].Req = &proto.CreateRequest{Path: "/r/m2", ACL: proto.OpenACL()}
	ops[1].Req = &proto.SetDataRequest{Path: "/r/m", Version: 9}
	tx = r.do(mine, 31, proto.OpMulti, body(&proto.MultiRequest{Ops: ops}))
	m, ok := tx.Body.(*zkfiles.MultiTxn)
	if !ok || len(m.Ops) != 3 {
		r.t.Fatalf("%+v", tx)
	}
	var codes [3]proto.Code
	for i := range m.Ops {
		if e, failed := m.Ops[i].Body.(*zkfiles.ErrorTxn); failed {
			codes[i] = e.Code
		}
	}
	if codes != [3]proto.Code{proto.Ok, proto.ErrBadVersion, proto.ErrRuntimeInconsistency} {
		r.t.Errorf("the operations of a failed multi: %v", codes)
	}
}

// identities checks that the leader knows the client by the identities that we send.
func (r *requester) identities(c *zk.Conn) {
	r.t.Helper()
	bob := proto.ID{Scheme: "digest", ID: "bob:" + digestOf("bob:pw")}
	tx := r.do(mine, 35, proto.OpCreate, body(&proto.CreateRequest{Path: "/r/private", ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}}), bob)
	if created, ok := tx.Body.(*zkfiles.CreateTxn); !ok || len(created.ACL) != 1 || created.ACL[0].ID != bob {
		r.t.Errorf("%+v", tx.Body)
	}
	set := body(&proto.SetDataRequest{Path: "/r/private", Data: []byte("secret"), Version: -1})
	r.code(proto.ErrNoAuth, r.do(mine, 36, proto.OpSetData, set))
	r.do(mine, 37, proto.OpSetData, set, proto.ID{Scheme: "ip", ID: "127.0.0.1"}, bob)
	must.Get(c.Sync("/"))(r.t)
	if data, _, err := c.Get("/r/private"); string(data) != "secret" || err != nil {
		r.t.Errorf("%q, %v", data, err)
	}
}

// TestSessionsOfALearner moves a client's session to a learner and checks its owner, and which
// sessions the leader expires.
func TestSessionsOfALearner(t *testing.T) {
	t.Parallel()
	need(t)
	servers, _ := mirrored(t)
	c := gozk(t, servers[0].Addr())
	must.Get(c.Create("/r", nil, 0, zk.WorldACL(zk.PermAll)))(t)
	r := join(t, servers)
	if theirs := c.SessionID(); !r.revalidate(theirs, 600_000) {
		t.Error("a live session is dead")
	} else if tx := r.do(theirs, 7, proto.OpCreate, body(&proto.CreateRequest{Path: "/r/e", ACL: proto.OpenACL(), Flags: 1})); tx.Type != proto.OpCreate {
		t.Errorf("%+v", tx)
	}
	if r.revalidate(mine+99, 600_000) {
		t.Error("a session that there never was is alive")
	}

	// The leader expires sessions that we don't touch.
	const short = 3000
	touched, lost, later := int64(mine+1), int64(mine+2), int64(mine+3)
	r.touch(touched)
	r.do(touched, 0, proto.OpCreateSession, timeout(short))
	for _, id := range []int64{lost, later} {
		r.do(id, 0, proto.OpCreateSession, timeout(short))
		r.await("the end of a session that we don't touch", func(h *heard) bool { return h.closed[id] })
	}
	if r.heard.has(touched) || !r.revalidate(touched, short) {
		t.Error("a session that we touch has expired")
	}
	if r.revalidate(lost, short) {
		t.Error("an expired session is alive")
	}

	// On another connection, a session must be revalidated first.
	must.Do(t, r.Close())
	again := join(t, servers)
	again.touch(touched)
	set := body(&proto.SetDataRequest{Path: "/r", Version: -1})
	again.code(proto.ErrSessionMoved, again.do(touched, 8, proto.OpSetData, set))
	if !again.revalidate(touched, short) {
		t.Fatal("a session that we touch has expired")
	}
	if tx := again.do(touched, 9, proto.OpSetData, set); tx.Type != proto.OpSetData {
		t.Errorf("%+v", tx)
	}
	again.touch(0)
	again.await("the end of the session", func(h *heard) bool { return h.closed[touched] })
}

// mirrored starts the ensemble of the flag, and reports whether it is newer than 3.4.
func mirrored(t *testing.T) (servers []*oracle.Server, modern bool) {
	t.Helper()
	_, lib, _ := strings.Cut(*mirrorLib, "=")
	o := options("tickTime=1000")
	o.Lib = lib
	return oracle.Ensemble(t, 3, o), !strings.HasPrefix(release(), "3.4")
}

// release returns the release of the flag.
func release() string {
	name, _, _ := strings.Cut(*mirrorLib, "=")
	return name
}

// requester is a learner that sends requests.
type requester struct {
	*learner.Conn
	t     *testing.T
	heard heard
	last  mirror.Last // passes on to heard
	ended chan error  // of Follow
}

type key struct {
	session int64
	cxid    int32
}

// heard contains the packets that a learner has received, and the resulting state. It checks
// digests, too.
type heard struct {
	mu     sync.Mutex
	state  *zkfiles.State
	status mirror.Status
	txns   map[key]*zkfiles.Txn
	syncs  map[key]int64 // to the zxid at that time
	valid  map[int64]bool
	closed map[int64]bool
	acls   map[string][]proto.ACL // of the snapshot
	used   int64                  // session; 0: none
}

// join follows an ensemble until the end of the test.
func join(t *testing.T, servers []*oracle.Server) *requester {
	t.Helper()
	return joinWith(t, learner.Config{Addrs: quorumAddrs(t, servers[0]), ID: 200})
}

// joinWith is join with a configuration.
func joinWith(t *testing.T, cfg learner.Config) *requester {
	t.Helper()
	r := &requester{t: t, ended: make(chan error, 1)}
	r.heard = heard{txns: map[key]*zkfiles.Txn{}, syncs: map[key]int64{}, valid: map[int64]bool{}, closed: map[int64]bool{}}
	r.last.Receiver = &r.heard
	cfg.Touched = r.heard.touches
	r.Conn = must.Get(learner.Dial(ctx(t), cfg, 0))(t)
	go func() { r.ended <- r.Follow(0, &r.last); close(r.ended) }()
	t.Cleanup(func() {
		_ = r.Close()
		if err := <-r.ended; errors.Is(err, errDigest) {
			t.Error(err)
		}
	})
	r.await("an exact state", func(h *heard) bool { return h.status.Exact })
	return r
}

// await waits until the learner has received something.
func (r *requester) await(what string, ok func(*heard) bool) {
	r.t.Helper()
	wait.Eventually(r.t, what, func() bool {
		r.heard.mu.Lock()
		defer r.heard.mu.Unlock()
		return ok(&r.heard)
	})
}

// do sends a request and returns its transaction.
func (r *requester) do(session int64, cxid int32, op proto.Op, body []byte, ids ...proto.ID) (tx *zkfiles.Txn) {
	r.t.Helper()
	must.Do(r.t, r.Request(learner.Request{Session: session, Cxid: cxid, Op: op, Body: body, Identities: ids}))
	r.await(fmt.Sprintf("the transaction of %v with cxid %d", op, cxid), func(h *heard) bool {
		tx = h.txns[key{session, cxid}]
		return tx != nil
	})
	return tx
}

// revalidate asks whether a session is alive.
func (r *requester) revalidate(session int64, timeout int32) (valid bool) {
	r.t.Helper()
	r.heard.mu.Lock()
	delete(r.heard.valid, session)
	r.heard.mu.Unlock()
	must.Do(r.t, r.Revalidate(session, timeout))
	r.await("the answer to REVALIDATE", func(h *heard) (there bool) {
		valid, there = h.valid[session]
		return there
	})
	return valid
}

// touch makes session the one that is reported as used from now on.
func (r *requester) touch(session int64) {
	r.heard.mu.Lock()
	defer r.heard.mu.Unlock()
	r.heard.used = session
}

func (h *heard) touches(to []learner.Touch) []learner.Touch {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.used != 0 {
		to = append(to, learner.Touch{Session: h.used, Timeout: 3000})
	}
	return to
}

// has reports whether a session has been closed.
func (h *heard) has(session int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed[session]
}

func (h *heard) Snapshot(s *zkfiles.State) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acls = maps.Collect(s.ACLs())
	h.state, h.status.Zxid = s, s.Zxid
	return nil
}

// errDigest ends a connection if its transactions don't lead to the ensemble's state.
var errDigest = errors.New("the digest is another one")

func (h *heard) Commit(tx *zkfiles.Txn) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.state.Apply(tx); err != nil {
		return err
	}
	h.status.Zxid = tx.Zxid
	if d := tx.Digest; d != nil && d.Comparable() && h.status.Exact {
		if d.Value != h.state.Digest() {
			return fmt.Errorf("%w after transaction %#x (%s)", errDigest, tx.Zxid, tx.Describe())
		}
		h.status.Compared++
	}
	h.txns[key{tx.Session, tx.Cxid}] = tx
	if tx.Type == proto.OpCloseSession {
		h.closed[tx.Session] = true
	}
	return nil
}

func (h *heard) Synced() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Exact = true
	return nil
}

func (h *heard) Ping(proposed int64, at time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Proposed, h.status.Heard = proposed, at
	return nil
}

// now returns how far the learner is.
func (h *heard) now() mirror.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

func (h *heard) Revalidated(session int64, valid bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.valid[session] = valid
	return nil
}

func (h *heard) SyncDone(session int64, cxid int32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.syncs[key{session, cxid}] = h.status.Zxid
	return nil
}

// body returns the body of a request.
func body(r proto.Record) []byte { return r.Append(nil) }

// timeout is the body of createSession.
func timeout(ms int32) []byte { return proto.AppendInt(nil, ms) }

// leaderOf waits for the leader.
func leaderOf(t *testing.T, servers []*oracle.Server) (leader *oracle.Server) {
	t.Helper()
	wait.Eventually(t, "a leader", func() bool {
		for _, s := range servers {
			if status, err := process.Ask(s.Addr(), time.Second); err == nil && status.Mode == "leader" {
				leader = s
			}
		}
		return leader != nil
	})
	return leader
}

// gozk returns a client that works with every release and may read everything.
func gozk(t *testing.T, addrs ...string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(addrs, 10*time.Minute, zk.WithLogInfo(false))
	must.Do(t, err)
	t.Cleanup(c.Close)
	must.Do(t, c.AddAuth("digest", []byte("super:secret")))
	return c
}

// quorumAddrs returns the quorum addresses in a server's zoo.cfg.
func quorumAddrs(t *testing.T, s *oracle.Server) (addrs []string) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(s.Dir, "zoo.cfg")))(t)
	for _, m := range regexp.MustCompile(`(?m)^server\.\d+=([^:]+:\d+)`).FindAllSubmatch(text, -1) {
		addrs = append(addrs, string(m[1]))
	}
	return addrs
}
