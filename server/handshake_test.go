package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/proto"
)

func TestHandshakeNegotiatesTheTimeout(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for ask, want := range map[int32]int32{-1: 4000, 0: 4000, 4001: 4001, 10000: 10000, 1 << 30: 40000} {
		w := dial(t, s)
		w.handshake(proto.ConnectRequest{ProtocolVersion: 7, TimeOut: ask, HasReadOnly: true, Passwd: []byte("any")})
		if w.resp.TimeOut != want || w.resp.SessionID == 0 || len(w.resp.Passwd) != proto.PasswordSize || w.resp.ProtocolVersion != 0 {
			t.Errorf("timeout %d: %+v", ask, w.resp)
		}
	}
}

// Clients that don't send the readOnly byte can't parse a reply that has it.
func TestHandshakeMirrorsTheReadOnlyByte(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, has := range []bool{false, true} {
		w := dial(t, s)
		w.handshake(proto.ConnectRequest{TimeOut: 10000, HasReadOnly: has})
		if w.resp.HasReadOnly != has || w.resp.ReadOnly {
			t.Errorf("sent %v: %+v", has, w.resp)
		}
	}
}

func TestRequestsAfterTheHandshakeAreHandled(t *testing.T) {
	t.Parallel()
	w := dial(t, startServer(t))
	req := proto.ConnectRequest{TimeOut: 10000, HasReadOnly: true}
	b := proto.AppendFrame(nil, req.Append(nil))
	b = appendRequest(b, proto.XidAuth, proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("u:p")})
	b = appendRequest(b, 1, proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "auth"}}}})
	b = appendRequest(b, 2, proto.OpGetData, &proto.GetDataRequest{Path: "/a"})
	w.write(b)
	if _, err := w.frame(); err != nil {
		t.Fatal(err)
	}
	for _, xid := range []int32{proto.XidAuth, 1, 2} {
		if got := w.recv(); got.Xid != xid || got.Err != proto.Ok {
			t.Errorf("xid %d, %v; want %d", got.Xid, got.Err, xid)
		}
	}
}

func TestHandshakeInPieces(t *testing.T) {
	t.Parallel()
	w := dial(t, startServer(t))
	req := proto.ConnectRequest{TimeOut: 10000}
	b := proto.AppendFrame(nil, req.Append(nil))
	b = appendRequest(b, 1, proto.OpPing, nil)
	go func() {
		for i := range b {
			w.write(b[i : i+1])
		}
	}()
	if _, err := w.frame(); err != nil {
		t.Fatal(err)
	}
	if got := w.recv(); got.Xid != proto.XidPing {
		t.Errorf("xid %d", got.Xid)
	}
}

func TestClientWithNewerZxidIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder := connect(t, s)
	for _, session := range []int64{0, holder.resp.SessionID} {
		w := dial(t, s)
		req := proto.ConnectRequest{TimeOut: 10000, LastZxidSeen: 1 << 40, SessionID: session, Passwd: holder.resp.Passwd}
		w.write(proto.AppendFrame(nil, req.Append(nil)))
		w.wantClosed()
	}
	holder.must(proto.OpPing, nil) // no client resumed its session
}

// again opens another connection for w's session.
func (w *wire) again(s *Server, passwd []byte) *wire {
	w.t.Helper()
	next := dial(w.t, s)
	next.handshake(proto.ConnectRequest{TimeOut: 20000, SessionID: w.resp.SessionID, Passwd: passwd, HasReadOnly: true})
	return next
}

func TestReattach(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	w.create("/e", nil, proto.ModeEphemeral)
	zxid := w.must(proto.OpPing, nil).Zxid
	next := w.again(s, w.resp.Passwd)
	w.wantClosed()
	if next.resp.SessionID != w.resp.SessionID || next.resp.TimeOut != 20000 || !slices.Equal(next.resp.Passwd, w.resp.Passwd) {
		t.Errorf("re-attached as %+v, was %+v", next.resp, w.resp)
	}
	if got := next.must(proto.OpPing, nil).Zxid; got != zxid {
		t.Errorf("zxid %d, was %d: attaching is no transaction", got, zxid)
	}
	if _, st := next.get("/e", false); st.EphemeralOwner != w.resp.SessionID {
		t.Errorf("owner %x", st.EphemeralOwner)
	}
}

func TestExpiredHandshake(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	w.must(proto.OpCloseSession, nil)
	w.wantClosed()
	open := connect(t, s)
	for name, c := range map[string]struct {
		w  *wire
		pw []byte
	}{
		"closed":         {w, w.resp.Passwd},
		"wrong password": {open, make([]byte, 16)},
		"short password": {open, []byte("x")},
		"null password":  {open, nil},
	} {
		got := c.w.again(s, c.pw)
		if got.resp.TimeOut != 0 || got.resp.SessionID != 0 || !slices.Equal(got.resp.Passwd, make([]byte, 16)) {
			t.Errorf("%s: %+v", name, got.resp)
		}
		got.wantClosed()
	}
	open.wantClosed() // ZooKeeper closes the old connection before it checks the password
	if got := open.again(s, open.resp.Passwd); got.resp.SessionID != open.resp.SessionID {
		t.Error("a wrong password ended the session")
	}
}

func TestManyAttachesOfOneSession(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	for range 100 {
		w = w.again(s, w.resp.Passwd)
		w.send(proto.OpSetData, &proto.SetDataRequest{Path: "/", Version: -1}) // the reply may never come
	}
	last := w.again(s, w.resp.Passwd)
	last.must(proto.OpPing, nil)
	eventually(t, "one connection is left", func() bool { return sourceOf(s).Server().Connections == 1 })
}

func TestLimitsOfConnections(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.MaxCnxns = 3 })
	w := []*wire{connect(t, s), connect(t, s), connect(t, s)}
	over := dial(t, s)
	over.wantClosed()
	w[0].nc.Close()
	eventually(t, "there is room again", func() bool { return sourceOf(s).Server().Connections == 2 })
	connect(t, s)
}

func TestBadFrames(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for name, b := range map[string][]byte{
		"negative length":   {0xff, 0xff, 0xff, 0xff},
		"too long":          {0, 0x10, 0, 0},
		"no header in it":   {0, 0, 0, 3, 1, 2, 3},
		"a whole word":      []byte("GET / HTTP/1.1\r\n\r\n"),
		"auth that is torn": appendRequest(nil, 1, proto.OpAuth, nil),
		"sasl that is torn": appendRequest(nil, 1, proto.OpSASL, nil),
	} {
		w := connect(t, s)
		w.write(b)
		w.wantClosed()
		if name[0] == 'a' || name[0] == 's' {
			continue // these look like requests; the test below covers torn handshakes
		}
		w = dial(t, s)
		w.write(b)
		w.wantClosed()
	}
	w := dial(t, s)
	w.write([]byte{0, 0, 0, 4, 0, 0, 0, 0})
	w.wantClosed()
}

func TestLargestRequest(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	req := &proto.CreateRequest{Path: "/big", ACL: proto.OpenACL()}
	room := defaults.JuteMaxBuffer - (len(appendRequest(nil, 1, proto.OpCreate, req)) - proto.LengthSize)
	req.Data = []byte(strings.Repeat("x", room))
	w.must(proto.OpCreate, req)
	if data, _ := w.get("/big", false); len(data) != room {
		t.Errorf("%d bytes of %d came back", len(data), room)
	}
	req.Data = append(req.Data, 'x')
	w.xid++
	go w.nc.Write(appendRequest(nil, w.xid, proto.OpCreate, req)) // the server closes it during the write
	w.wantClosed()
}

func TestSessionlessConnectionIsClosed(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.SessionlessTimeout, c.TickTime = time.Millisecond, 10*time.Millisecond })
	w := dial(t, s)
	w.wantClosed()
}
