package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/takeover"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// withObservers makes a server listen for observers.
func withObservers(c *Config) {
	c.Quorum.ObserverMasterAddr, c.Znodes.ExtendedTypes = "127.0.0.1:0", true
}

// standby is a server that follows another one.
type standby struct {
	t     *testing.T
	cfg   learner.Config
	srv   *Server
	leads chan raftfsm.Mirroring
	to    raftfsm.Mirroring
	m     *takeover.Mirror
	snap  bool // its newest connection began with a snapshot
	stop  func()
}

// newStandby starts a server that follows the one with that address for observers, once follow is
// called.
func newStandby(t *testing.T, addr string) *standby {
	t.Helper()
	s := &standby{t: t, cfg: learner.Config{Addrs: []string{addr}, ID: 126}, leads: make(chan raftfsm.Mirroring, 1), stop: func() {}}
	s.srv = startServer(t, func(c *Config) { c.Env.Mirror = s })
	s.to = <-s.leads
	t.Cleanup(func() { s.stop() })
	return s
}

// Serves implements Mirror.
func (*standby) Serves() bool { return false }

// ReadsOnly implements Mirror.
func (*standby) ReadsOnly() bool { return false }

// Lead implements Mirror.
func (s *standby) Lead(ctx context.Context, to raftfsm.Mirroring) {
	s.leads <- to
	<-ctx.Done()
}

// follow connects to the other server, and waits until the state is exact.
func (s *standby) follow() {
	s.t.Helper()
	var snap atomic.Bool
	_, _, zxid := s.to.State()
	s.m = takeover.New(takeover.Config{
		Learner: s.cfg, Old: new(mirror.Old), Logger: slog.New(slog.DiscardHandler),
		Progress: func(*takeover.Arrival) { snap.Store(true) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { s.m.Lead(ctx, s.to) })
	s.stop = func() { cancel(); work.Wait() }
	s.caughtUp(zxid)
	s.snap = snap.Load()
}

// caughtUp waits until the state is exact and has reached zxid.
func (s *standby) caughtUp(zxid int64) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("the copy is at 0x%x", zxid), func() bool {
		st := s.m.StatusOf(s.srv.Node())
		if st.Broken != "" {
			s.t.Fatal(st.Broken)
		}
		return st.InSync && st.Phase == "following" && st.Zxid >= zxid
	})
}

// leave ends the connection.
func (s *standby) leave() { s.stop() }

// compare compares the state with another server's.
func (s *standby) compare(with *Server) {
	s.t.Helper()
	s.caughtUp(with.lastZxid())
	s.leave()
	with.tree.RLock()
	defer with.tree.RUnlock()
	s.srv.tree.RLock()
	defer s.srv.tree.RUnlock()
	if s.srv.tree.FullDigest() != with.tree.FullDigest() {
		var got, want strings.Builder
		_, _ = s.srv.tree.Dump(&got), with.tree.Dump(&want)
		s.t.Errorf("the copy differs:\n%s\nfrom\n%s", got.String(), want.String())
	}
	sessions := s.srv.node.Sessions()
	if sessions.Len() != with.node.Sessions().Len() {
		s.t.Errorf("%d sessions instead of %d", sessions.Len(), with.node.Sessions().Len())
	}
	for row := range with.node.Sessions().All {
		if own, _ := sessions.Get(row.ID); own.Password != row.Password || own.Timeout != row.Timeout {
			s.t.Errorf("session %+v instead of %+v", own, row)
		}
	}
}

// workload changes the state in every way that a client can.
func workload(t *testing.T, s *Server, at string) {
	t.Helper()
	c, other := connect(t, s), connect(t, s)
	open := proto.OpenACL()
	create := func(w *wire, path string, flags int32) {
		w.must(proto.OpCreate, &proto.CreateRequest{Path: path, Data: []byte(path), ACL: open, Flags: flags})
	}
	create(c, at, 0)
	for range 3 {
		create(c, at+"/s-", 2)
	}
	create(c, at+"/mine", 1)
	create(other, at+"/theirs", 1)
	create(other, at+"/theirs-", 3)
	c.must(proto.OpCreateContainer, &proto.CreateRequest{Path: at + "/box", ACL: open, Flags: 4})
	c.must(proto.OpCreateTTL, &proto.CreateTTLRequest{Path: at + "/ttl", ACL: open, Flags: 5, TTL: 1e9})
	c.must(proto.OpSetData, &proto.SetDataRequest{Path: at, Data: []byte("new"), Version: 0})
	c.must(proto.OpSetACL, &proto.SetACLRequest{Path: at + "/box", ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "world", ID: "anyone"}}, {Perms: 1, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}}}, Version: -1})
	c.call(proto.OpDelete, &proto.DeleteRequest{Path: at, Version: 9})
	multi := func(last proto.Record, op proto.Op) {
		c.call(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: at + "/m", ACL: open}},
			{Op: proto.OpCreate2, Req: &proto.CreateRequest{Path: at + "/m/k", Data: []byte("k"), ACL: open}},
			{Op: proto.OpCheck, Req: &proto.CheckVersionRequest{Path: at, Version: -1}},
			{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: at + "/m/k", Version: -1}},
			{Op: op, Req: last},
		}})
	}
	multi(&proto.SetDataRequest{Path: at + "/none", Version: -1}, proto.OpSetData)
	multi(&proto.SetDataRequest{Path: at + "/m", Data: []byte("m"), Version: -1}, proto.OpSetData)
	create(c, "/zookeeper/quota"+at, 0)
	create(c, "/zookeeper/quota"+at+"/zookeeper_limits", 0)
	create(c, "/zookeeper/quota"+at+"/zookeeper_stats", 0)
	create(c, at+"/counted", 0)
	c.must(proto.OpDelete, &proto.DeleteRequest{Path: at + "/m", Version: -1})
	other.must(proto.OpCloseSession, nil)
}

// TestObserverHasTheState: an observer has the same tree and sessions as the server, whether it
// came before or after the transactions, and after it was away.
func TestObserverHasTheState(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n, " servers"), func(t *testing.T) {
			t.Parallel()
			var servers []*Server
			if n == 1 {
				servers = []*Server{startServer(t, withObservers)}
				<-servers[0].Ready()
			} else {
				servers = startEnsemble(t, n, withObservers).servers
			}
			from := servers[n-1]
			early, away, late := newStandby(t, from.observers.master.Addr()), newStandby(t, from.observers.master.Addr()), newStandby(t, from.observers.master.Addr())
			early.follow()
			away.follow()
			if !early.snap {
				t.Error("the first connection began without a snapshot")
			}
			workload(t, servers[0], "/one")
			eventually(t, "the writes are here", func() bool { return from.lastZxid() >= servers[0].lastZxid() })
			away.caughtUp(from.lastZxid())
			away.leave()
			workload(t, servers[0], "/two")
			eventually(t, "the writes are here", func() bool { return from.lastZxid() >= servers[0].lastZxid() })
			away.follow()
			if away.snap {
				t.Error("an observer that was away for a moment got the whole state again")
			}
			late.follow()
			early.caughtUp(from.lastZxid())
			if early.to.Compared() == 0 {
				t.Error("no digest was compared")
			}
			early.compare(from)
			away.compare(from)
			late.compare(from)
		})
	}
}

// TestObserverOfManySessions: passwords come with the snapshot, in as many packets as
// necessary.
func TestObserverOfManySessions(t *testing.T) {
	t.Parallel()
	s := startServer(t, withObservers)
	<-s.Ready()
	for range 20 {
		connect(t, s)
	}
	o := newStandby(t, s.observers.master.Addr())
	o.follow()
	o.compare(s)
}

// end is an observer that only records the data that it has got.
type end struct {
	learner.Receiver
	zxid   atomic.Int64
	synced chan struct{}
}

// Snapshot implements learner.Receiver.
func (e *end) Snapshot(s *zkfiles.State) error { e.zxid.Store(s.Zxid); return nil }

// Commit implements learner.Receiver.
func (e *end) Commit(tx *zkfiles.Txn) error { e.zxid.Store(tx.Zxid); return nil }

// Synced implements learner.Receiver.
func (e *end) Synced() error { close(e.synced); return nil }

// Ping implements learner.Receiver.
func (*end) Ping(int64, time.Time) error { return nil }

// observe connects an observer, and waits until it is in sync.
func observe(t *testing.T, addr string) (conn *learner.Conn, last *mirror.Last, e *end, ended chan error) {
	t.Helper()
	conn, err := learner.Dial(t.Context(), learner.Config{Addrs: []string{addr}, ID: 126}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	e, ended = &end{synced: make(chan struct{})}, make(chan error, 1)
	last = &mirror.Last{Receiver: e, SyncProves: conn.Zkgo()}
	go func() { ended <- conn.Follow(0, last) }()
	select {
	case <-e.synced:
	case err := <-ended:
		t.Fatal(err)
	}
	return conn, last, e, ended
}

// TestObserverProvesTheLast: a sync proves the newest transaction, and any other request of
// an observer ends its connection.
func TestObserverProvesTheLast(t *testing.T) {
	t.Parallel()
	servers := startEnsemble(t, 3, withObservers).servers
	addr := servers[2].observers.master.Addr()
	conn, last, e, ended := observe(t, addr)
	if !conn.Zkgo() {
		t.Error("the observer mistakes the server for ZooKeeper")
	}
	w := connect(t, servers[0])
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/last", ACL: proto.OpenACL()})
	zxid, err := last.Prove(t.Context(), conn, 126<<56|1)
	if err != nil || zxid != servers[0].lastZxid() || zxid != e.zxid.Load() {
		t.Errorf("0x%x %v, not 0x%x", zxid, err, servers[0].lastZxid())
	}
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/later", ACL: proto.OpenACL()})
	if err := <-ended; !errors.Is(err, mirror.ErrSealed) {
		t.Errorf("a transaction after the proof: %v", err)
	}
	for name, ask := range map[string]func(c *learner.Conn) error{
		"write":      func(c *learner.Conn) error { return c.Request(learner.Request{Session: 1, Op: proto.OpCloseSession}) },
		"revalidate": func(c *learner.Conn) error { return c.Revalidate(1, 1) },
	} {
		conn, _, _, ended := observe(t, addr)
		if err := ask(conn); err != nil {
			t.Error(name, err)
		}
		if err := <-ended; !strings.Contains(err.Error(), "closed the connection") && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestObserverMustLogIn: the port requires the same as the servers require from each other.
func TestObserverMustLogIn(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startServer(t, withObservers, func(c *Config) {
		c.Quorum.SASL = &QuorumSASL{Users: map[string]string{"zk": "secret"}, User: "zk", Password: "secret", LearnerRequire: true, ServerRequire: true}
		c.Quorum.TLS = &QuorumTLS{KeyStores: a.options()}
	})
	<-s.Ready()
	secure := a.client(alice)
	secure.ServerName = "127.0.0.1"
	for name, c := range map[string]learner.Config{
		"plaintext":      {User: "zk", Password: "secret"},
		"no certificate": {TLS: a.client(nil), User: "zk", Password: "secret"},
		"no login":       {TLS: secure},
		"wrong password": {TLS: secure, User: "zk", Password: "wrong"},
	} {
		c.Addrs, c.ID = []string{s.observers.master.Addr()}, 126
		if conn, err := learner.Dial(context.Background(), c, 0); err == nil {
			t.Errorf("%s: accepted", name)
			_ = conn.Close()
		}
	}
	o := newStandby(t, s.observers.master.Addr())
	o.cfg.TLS, o.cfg.User, o.cfg.Password = secure, "zk", "secret"
	o.follow()
	workload(t, s, "/secret")
	o.compare(s)
}

// TestObserverCertificate: an observer's certificate must name the host that it calls from,
// if the certificates of other servers must.
func TestObserverCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	issue := func(hosts []string, ips ...net.IP) *tls.Config {
		key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		der := must.Get(x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotAfter: time.Now().Add(time.Hour), DNSNames: hosts, IPAddresses: ips,
		}, a.cert, &key.PublicKey, a.key))(t)
		c := a.client(nil)
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
		return c
	}
	for _, verify := range []bool{true, false} {
		s := startServer(t, withObservers, func(c *Config) {
			c.Quorum.TLS = &QuorumTLS{KeyStores: a.options()}
			c.Quorum.TLS.VerifyClientHost = verify
		})
		<-s.Ready()
		for name, own := range map[string]struct {
			config *tls.Config
			fits   bool
		}{
			"of this host":      {issue(nil, net.IPv4(127, 0, 0, 1)), true},
			"as ZooKeeper's":    {issue(nil), true}, // its common name counts
			"of another server": {issue([]string{"elsewhere.example"}), false},
		} {
			conn, err := learner.Dial(t.Context(), learner.Config{Addrs: []string{s.observers.master.Addr()}, ID: 126, TLS: own.config}, 0)
			if err == nil {
				_ = conn.Close()
			}
			if accepted := err == nil; accepted != (own.fits || !verify) {
				t.Errorf("verify %v, a certificate %s: %v", verify, name, err)
			}
		}
	}
}

// TestObserverMetrics: a server shows how many observers it has, and the lag of each.
func TestObserverMetrics(t *testing.T) {
	t.Parallel()
	s := startServer(t, withObservers)
	<-s.Ready()
	value := func(line string) string {
		for _, m := range sourceOf(s).Metrics() {
			if m.Line() == line {
				return m.Value
			}
		}
		return "none"
	}
	if n, lag := value("synced_observers"), value("126_127.0.0.1_observer_master_lag_transactions"); n != "0" || lag != "none" {
		t.Errorf("without observers: %s, %s", n, lag)
	}
	o := newStandby(t, s.observers.master.Addr())
	o.follow()
	o.caughtUp(s.lastZxid())
	eventually(t, "the metrics of an observer", func() bool {
		return value("synced_observers") == "1" && value("126_127.0.0.1_observer_master_lag_transactions") == "0" && value("126_127.0.0.1_observer_master_lag_milliseconds") != "none"
	})
	o.leave()
	eventually(t, "the end of an observer", func() bool { return value("synced_observers") == "0" })
	if p := startServer(t); true {
		<-p.Ready()
		for _, m := range sourceOf(p).Metrics() {
			if strings.Contains(m.Name, "observer_master") || m.Name == "synced_observers" {
				t.Errorf("a server without observerMasterPort shows %s", m.Name)
			}
		}
	}
}

// TestNoObservers: without a port, nothing is kept for observers.
func TestNoObservers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	if s.observers.history != nil || s.observers.master != nil {
		t.Error("a server without observerMasterPort keeps transactions")
	}
}
