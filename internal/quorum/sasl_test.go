package quorum

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/sasl"
)

// login returns the SASL settings of a server that knows one user and logs in as that
// user.
func login(user, password string, change func(*SASL)) *SASL {
	s := &SASL{Users: sasl.Users{user: password}, User: user, Password: password}
	if change != nil {
		change(s)
	}
	return s
}

func enabled(*SASL)    {}
func logsIn(s *SASL)   { s.Login = true }
func requires(s *SASL) { s.Login, s.Require = true, true }
func saslHub(t *testing.T, n Network, id string, security Security, log *logBuffer) *Hub {
	t.Helper()
	h, err := Listen(n, "s"+id+":1", Identity{ServerID: id, Cluster: ClusterID{1}, Nonce: uint64(id[0])}, security,
		slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// pairing is two servers, one of which calls the other.
type pairing struct {
	name         string
	a, b         *SASL
	want         Code
	saysA, saysB []string
}

func pairings() []pairing {
	ours := func(change func(*SASL)) *SASL { return login("zk", "secret", change) }
	return []pairing{
		{name: "neither"},
		{name: "enabled here", a: ours(enabled)},
		{name: "enabled there", b: ours(enabled)},
		{name: "enabled on both", a: ours(enabled), b: ours(enabled)},
		{name: "login to a server with SASL enabled", a: ours(logsIn), b: ours(enabled)},
		{name: "both log in", a: ours(logsIn), b: ours(logsIn)},
		{name: "login to a server that requires it", a: ours(logsIn), b: ours(requires)},
		{name: "both require", a: ours(requires), b: ours(requires)},
		{name: "a server that requires it does not log in", a: ours(func(s *SASL) { s.Require = true }), b: ours(enabled)},
		{name: "login without SASL there", a: ours(logsIn), want: NoSASL,
			saysA: []string{"raft stream to server 2 at s2:1", "does not accept SASL", "quorum.auth.enableSasl there"},
			saysB: []string{"raft stream from server 1 at s1:", "uses SASL", "quorum.auth.enableSasl here"}},
		{name: "no SASL to a server that requires it", b: ours(requires), want: NeedSASL,
			saysA: []string{"raft stream to server 2 at s2:1", "requires SASL by its quorum.auth.serverRequireSasl", "learnerRequireSasl here"},
			saysB: []string{"raft stream from server 1 at s1:", "does not use SASL", "quorum.auth.serverRequireSasl", "learnerRequireSasl there"}},
		{name: "enabled only, to a server that requires it", a: ours(enabled), b: ours(requires), want: NeedSASL,
			saysA: []string{"requires SASL"}, saysB: []string{"does not use SASL"}},
		{name: "wrong password", a: login("zk", "Secret", logsIn), b: ours(requires), want: LoginRefused,
			saysA: []string{"server 2 at s2:1", "does not accept our user or password", "user", "zk"},
			saysB: []string{"server 1 at s1:", "shows a user or password that is not accepted", "wrong password for", "zk"}},
		// Wrong credentials are refused even if SASL isn't required.
		{name: "wrong password where none is required", a: login("zk", "Secret", logsIn), b: ours(enabled), want: LoginRefused,
			saysA: []string{"does not accept our user or password"}, saysB: []string{"wrong password for"}},
		{name: "wrong user", a: login("eve", "secret", logsIn), b: ours(requires), want: LoginRefused,
			saysA: []string{"does not accept our user or password", "eve"}, saysB: []string{"wrong password for", "eve"}},
		{name: "no users", a: ours(logsIn), b: ours(func(s *SASL) { s.Users, s.Require = nil, true }), want: LoginRefused,
			saysA: []string{"does not accept our user or password"}, saysB: []string{"wrong password for"}},
	}
}

// TestSASLPairings connects differently configured servers, in plaintext and over TLS, with
// every kind of stream. We should refuse unauthorized servers, and both logs should name
// the server and the reason, in one line.
func TestSASLPairings(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "CA")
	tls1, tls2 := ca.secured(ca.forHosts("s1")), ca.secured(ca.forHosts("s2"))
	for _, secure := range []bool{false, true} {
		for _, p := range pairings() {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				a, b := Security{SASL: p.a}, Security{SASL: p.b}
				if secure {
					a.TLS, b.TLS = tls1, tls2
				}
				p.meet(t, a, b)
			})
		}
	}
}

func (p *pairing) meet(t *testing.T, sa, sb Security) {
	t.Helper()
	var logA, logB logBuffer
	m := NewMemory()
	a, b := saslHub(t, m.Host("s1"), "1", sa, &logA), saslHub(t, m.Host("s2"), "2", sb, &logB)
	for kind := Raft; kind < kinds; kind++ {
		b.Handle(kind, echo)
		conn, theirs, err := a.Dial(t.Context(), kind, "s2:1", "2")
		if p.want == Accepted {
			if err != nil || theirs != b.Identity() {
				t.Fatalf("%s: %+v, %v", kind, theirs, err)
			}
			conn.Write([]byte("ping"))
			if got := readN(t, conn, 4); got != "ping" {
				t.Fatalf("read %q", got)
			}
			conn.Close()
			continue
		}
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Code != p.want || theirs != (Identity{}) || refused.Theirs != (Identity{}) {
			t.Fatalf("%s: %v of %+v, want code %d", kind, err, theirs, p.want)
		}
	}
	a.Close() // nothing is logged after this
	b.Close()
	for log, says := range map[*logBuffer][]string{&logA: p.saysA, &logB: p.saysB} {
		log.holds(t, p.want, says)
	}
}

// TestSASLWithoutTLS: we should tell a server that lacks TLS about TLS, not about SASL.
func TestSASLWithoutTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "CA")
	s1 := Security{SASL: login("zk", "secret", requires)}
	s2 := Security{TLS: ca.secured(ca.forHosts("s2")), SASL: s1.SASL}
	p := pairing{want: NeedTLS, saysA: []string{"requires TLS"}, saysB: []string{"does not use TLS"}}
	p.meet(t, s1, s2)
}

// TestSASLAndTheRequestsAfterIt: even if a caller has proved that it knows the password, we
// should check it like any other, and it should learn which server refused it.
func TestSASLAndTheRequestsAfterIt(t *testing.T) {
	t.Parallel()
	var log logBuffer
	m := NewMemory()
	s := Security{SASL: login("zk", "secret", requires)}
	a, b := saslHub(t, m.Host("s1"), "1", s, &log), saslHub(t, m.Host("s2"), "2", s, &log)
	b.SetIdentity(Identity{ServerID: "2", Cluster: ClusterID{2}})
	_, theirs, err := a.Dial(t.Context(), Raft, "s2:1", "2")
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Code != WrongCluster || theirs.ServerID != "2" || theirs.Ensemble != b.Identity().Ensemble {
		t.Errorf("another ensemble: %v of %+v", err, theirs)
	}
	b.SetIdentity(Identity{ServerID: "2", Cluster: ClusterID{1}})
	if _, _, err := a.Dial(t.Context(), Forward, "s2:1", "2"); !errors.As(err, &refused) || refused.Code != NotReady {
		t.Errorf("a stream without an acceptor: %v", err)
	}
}

// talk is a hand-driven connection to the hub of server 2.
type talk struct {
	t *testing.T
	net.Conn
}

func dialled(t *testing.T, m *Memory) talk {
	t.Helper()
	conn, err := m.Host("s1").Dial(t.Context(), "s2:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return talk{t, conn}
}

func soon() time.Time { return time.Now().Add(time.Minute) }

func (c talk) say(h *hello) {
	c.t.Helper()
	if err := writeHello(c, h, soon()); err != nil {
		c.t.Fatal(err)
	}
}

func (c talk) hear() hello {
	c.t.Helper()
	h, err := readHello(c, soon())
	if err != nil {
		c.t.Fatal(err)
	}
	return h
}

func (c talk) hearToken() []byte {
	c.t.Helper()
	b, err := readToken(c, soon())
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// ended reports whether the other side has closed the connection.
func (c talk) ended() bool {
	_ = c.SetReadDeadline(soon())
	n, err := c.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// asServer1 returns the hello of server 1, which requests SASL.
func asServer1(kind Kind) *hello {
	return &hello{version: saslVersion, kind: kind, to: "2", from: Identity{ServerID: "1", Cluster: ClusterID{1}, Nonce: 7}.named()}
}

// TestSASLOlderServers: a server without SASL support sees another version, on either
// end, and its peer reports the cause.
func TestSASLOlderServers(t *testing.T) {
	t.Parallel()
	var log logBuffer
	m := NewMemory()
	saslHub(t, m.Host("s2"), "2", Security{SASL: login("zk", "secret", requires)}, &log)
	c := dialled(t, m)
	old := asServer1(Raft)
	old.version = version
	c.say(old)
	if h := c.hear(); h.version == version || h.kind != Raft || h.from != (Identity{}) || !c.ended() {
		t.Errorf("an older server is answered with %+v", h)
	}
	c = dialled(t, m)
	old.version = saslVersion + 1
	c.say(old)
	if h := c.hear(); h.code != WrongVersion || h.from != (Identity{}) || !c.ended() {
		t.Errorf("a server of a version to come is answered with %+v", h)
	}

	ln, err := m.Host("s3").Listen("s3:1")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() { // answers like a server that gets a version other than 1
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		h, err := readHello(conn, soon())
		if err != nil || h.version == version {
			return
		}
		_ = writeHello(conn, &hello{version: version, kind: h.kind, code: WrongVersion, to: h.from.ServerID, from: Identity{ServerID: "3"}}, soon())
	}()
	a := saslHub(t, m.Host("s1"), "1", Security{SASL: login("zk", "secret", logsIn)}, &log)
	var refused *RefusedError
	if _, theirs, err := a.Dial(t.Context(), Raft, "s3:1", "3"); !errors.As(err, &refused) || refused.Code != NoSASL || theirs != (Identity{}) {
		t.Errorf("calling an older server: %v of %+v", err, theirs)
	}
}

// TestSASLImpostor calls servers that don't know the password, whatever they pretend to be:
// the caller should reveal nothing to them and trust nothing from them.
func TestSASLImpostor(t *testing.T) {
	t.Parallel()
	it := Identity{ServerID: "2", Cluster: ClusterID{1}}
	accepts := func(v uint16, code Code) *hello { return &hello{version: v, kind: Raft, code: code, to: "1", from: it} }
	for name, tt := range map[string]struct {
		answer func(talk)
		want   Code
	}{
		"accepts at once":                 {func(c talk) { c.say(accepts(saslVersion, Accepted)) }, BadProof},
		"accepts by an older version":     {func(c talk) { c.say(accepts(version, Accepted)) }, WrongVersion},
		"is of another ensemble":          {func(c talk) { c.say(accepts(saslVersion, WrongCluster)) }, BadProof},
		"challenges with nonsense":        {func(c talk) { c.say(accepts(saslVersion, challenged)); c.Write(appendToken(nil, []byte("x"))) }, BadProof},
		"accepts without proof":           {impostor(func([]byte) []byte { return nil }), BadProof},
		"has the proof of something else": {impostor(func([]byte) []byte { return []byte("rspauth=ea40f60335c427b5527b84dbabcdfffd") }), BadProof},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMemory()
			ln, err := m.Host("s2").Listen("s2:1")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				if _, err := readHello(conn, soon()); err == nil {
					tt.answer(talk{t, conn})
				}
				_, _ = io.Copy(io.Discard, conn)
			}()
			var log logBuffer
			a := saslHub(t, m.Host("s1"), "1", Security{SASL: login("zk", "secret", logsIn)}, &log)
			conn, theirs, err := a.Dial(t.Context(), Raft, "s2:1", "2")
			if err == nil {
				conn.Close()
			}
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Code != tt.want || theirs != (Identity{}) {
				t.Errorf("%v of %+v, want code %d", err, theirs, tt.want)
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the password is in the log: %s", log.String())
			}
			<-done
		})
	}
}

// impostor sends a challenge like a server, and then whatever proof it can make.
func impostor(proof func(response []byte) []byte) func(talk) {
	return func(c talk) {
		challenge, _, _ := sasl.NewQuorumServer(nil, "").Step(nil)
		h := hello{version: saslVersion, kind: Raft, code: challenged}
		c.Write(appendToken(h.append(nil), challenge))
		response, err := readToken(c, soon())
		if err != nil {
			return
		}
		h.code, h.from, h.to = Accepted, Identity{ServerID: "2", Cluster: ClusterID{1}}, "1"
		c.Write(appendToken(h.append(nil), proof(response)))
	}
}

// TestSASLAndANewIdentity: if the server's identity changes while a caller answers its
// challenge, we should check the caller against the new identity.
func TestSASLAndANewIdentity(t *testing.T) {
	t.Parallel()
	var log logBuffer
	m := NewMemory()
	b := saslHub(t, m.Host("s2"), "2", Security{SASL: login("zk", "secret", requires)}, &log)
	b.Handle(Raft, echo)
	c := dialled(t, m)
	said := asServer1(Raft)
	c.say(said)
	c.hear()
	client := sasl.NewQuorumClient("zk", "secret", purpose(said))
	_, _, _ = client.Next(nil)
	response, _, err := client.Next(c.hearToken())
	if err != nil {
		t.Fatal(err)
	}
	b.SetIdentity(Identity{ServerID: "2.1", Cluster: ClusterID{1}})
	c.Write(appendToken(nil, response))
	if h := c.hear(); h.code != WrongTarget || h.from.ServerID != "2.1" {
		t.Errorf("the answer is %+v", h)
	}
}

// TestSASLForOneHello: a server's response should be useless for another hello, and at the
// server that created it.
func TestSASLForOneHello(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*hello) // sent in place of the hello that the response is for
		ok     bool
	}{
		"as it was made":     {func(*hello) {}, true},
		"by another server":  {func(h *hello) { h.from.ServerID = "3" }, false},
		"of another stream":  {func(h *hello) { h.kind = Forward }, false},
		"to another server":  {func(h *hello) { h.to = "3" }, false},
		"of another process": {func(h *hello) { h.from.Nonce++ }, false},
	} {
		var log logBuffer
		m := NewMemory()
		b := saslHub(t, m.Host("s2"), "2", Security{SASL: login("zk", "secret", requires)}, &log)
		b.Handle(Raft, echo)
		b.Handle(Forward, echo)
		c := dialled(t, m)
		made, said := asServer1(Raft), asServer1(Raft)
		tt.change(said)
		c.say(said)
		if h := c.hear(); h.code != challenged || h.from != (Identity{}) {
			t.Fatalf("%s: %+v", name, h)
		}
		client := sasl.NewQuorumClient("zk", "secret", purpose(made))
		_, _, _ = client.Next(nil)
		response, _, err := client.Next(c.hearToken())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(appendToken(nil, response))
		if h := c.hear(); (h.code == Accepted) != tt.ok || !tt.ok && h.code != BadLogin {
			t.Errorf("%s: the answer is %d", name, h.code)
		}
	}
	// We send the server its own hello, with the response that it has created.
	var log logBuffer
	m := NewMemory()
	b := saslHub(t, m.Host("s2"), "2", Security{SASL: login("zk", "secret", requires)}, &log)
	b.Handle(Probe, echo)
	c := dialled(t, m)
	own := &hello{version: saslVersion, kind: Probe, from: b.Identity()}
	c.say(own)
	c.hear()
	client := sasl.NewQuorumClient("zk", "secret", purpose(own))
	_, _, _ = client.Next(nil)
	response, _, _ := client.Next(c.hearToken())
	c.Write(appendToken(nil, response))
	if h := c.hear(); h.code != BadLogin {
		t.Errorf("what it has said itself is answered with %d", h.code)
	}
}

// connections returns the number of a hub's connections.
func (h *Hub) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.conns)
}

// TestSASLBounds: a caller should not be able to stall, wherever it stops, or to send
// without end, and other callers should get through in the meantime.
func TestSASLBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		m := NewMemory()
		s := Security{SASL: login("zk", "secret", requires)}
		b := saslHub(t, m.Host("s2"), "2", s, &log)
		b.Handle(Raft, echo)
		a := saslHub(t, m.Host("s1"), "1", s, &log)
		begin := time.Now()
		var silent []talk
		for i := range 2 * maxHandshakes {
			c := dialled(t, m)
			silent = append(silent, c)
			if i%3 > 0 {
				c.say(asServer1(Raft))
			}
			if i%3 > 1 {
				c.Write([]byte{0, 100, 'x'})
			}
		}
		conn, _, err := a.Dial(t.Context(), Raft, "s2:1", "2")
		if err != nil || time.Since(begin) > time.Second {
			t.Fatalf("beside those who stall: %v after %v", err, time.Since(begin))
		}
		conn.Close()
		if open := b.connections(); open > maxHandshakes {
			t.Errorf("%d connections of nobody known", open)
		}
		for _, c := range silent {
			_ = c.SetReadDeadline(soon())
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Fatalf("a caller that stalls is still there: %v", err)
			}
		}
		if d := time.Since(begin); d > 2*HandshakeTimeout+drainTimeout {
			t.Errorf("who stalls is cut off after %v", d)
		}
		for name, token := range map[string][]byte{
			"too long": {0xff, 0xff}, "empty": {0, 0}, "nonsense": appendToken(nil, bytes.Repeat([]byte("\"=,"), 1000))} {
			c := dialled(t, m)
			c.say(asServer1(Raft))
			c.hear()
			c.hearToken()
			sent := time.Now()
			c.Write(token)
			if name != "too long" {
				if h := c.hear(); h.code != BadLogin {
					t.Errorf("%s: answered with %d", name, h.code)
				}
			}
			if !c.ended() {
				t.Errorf("%s: the connection goes on", name)
			}
			if d := time.Since(sent); d > drainTimeout {
				t.Errorf("%s: what cannot be right is waited for for %v", name, d)
			}
		}
	})
}
