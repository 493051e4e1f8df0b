package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/offline/backup"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// withAdmin enables commands over HTTP.
func withAdmin(c *Config) { c.Admin = &Admin{Addr: "127.0.0.1:0"} }

// commands returns the URL of the commands of s.
func commands(s *Server) string { return "http://" + s.AdminAddr() + "/commands/" }

// snapshotWith returns a ZooKeeper snapshot file with znodes below /r, a session and
// its ephemeral znode /r/e.
func snapshotWith(t *testing.T, data string) []byte {
	t.Helper()
	tr, table := tree.New(), session.NewTable()
	s := table.Create(1, 4000, [16]byte{1})
	for i, req := range []*proto.CreateRequest{
		{Path: "/r", Data: []byte(data), ACL: proto.OpenACL()},
		{Path: "/r/child", ACL: proto.OpenACL()},
		{Path: "/r/e", ACL: proto.OpenACL(), Flags: 1},
		{Path: "/zookeeper/quota/r", ACL: proto.OpenACL()},
		{Path: "/zookeeper/quota/r/zookeeper_limits", Data: []byte("count=3,bytes=-1=;byteHardLimit=-1;countHardLimit=3"), ACL: proto.OpenACL()},
		{Path: "/zookeeper/quota/r/zookeeper_stats", Data: []byte("count=0,bytes=0"), ACL: proto.OpenACL()},
	} {
		if res := tr.Apply(&tree.Txn{Zxid: int64(i + 1), Session: s.ID}, proto.OpCreate, req); res.Code != proto.Ok {
			t.Fatal(res.Code)
		}
	}
	tr.Lock()
	snap := tr.Snapshot()
	tr.Unlock()
	defer snap.Release()
	var b bytes.Buffer
	if err := zkfiles.WriteSnapshot(&b, snap, table, zkfiles.None); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// answerTo is the answer to a restore.
type answerTo struct {
	LastZxid int64   `json:"last_zxid"`
	Command  string  `json:"command"`
	Error    *string `json:"error"`
}

// sendState sends a state to a server and returns the answer.
func sendState(t *testing.T, s *Server, command string, content []byte) (int, answerTo) {
	t.Helper()
	code, _, b := askState(t, http.MethodPost, commands(s)+command, superAuth, bytes.NewReader(content))
	var a answerTo
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatalf("%d %s: %v", code, b, err)
	}
	return code, a
}

// lastZxid returns the newest zxid of s.
func lastZxid(s *Server) int64 {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return s.tree.LastZxid()
}

// A restored state should replace the server's state. Clients should lose their sessions,
// and the old sessions should leave no trace.
func TestAdminRestore(t *testing.T) {
	t.Parallel()
	s := startServer(t, withAdmin, func(c *Config) { c.Znodes.EnforceQuota = true })
	<-s.Ready()
	w, watching := connect(t, s), connect(t, s)
	w.create("/old", []byte("x"), proto.ModePersistent)
	w.create("/mine", nil, proto.ModeEphemeral)
	watching.get("/old", true)
	before := lastZxid(s)
	code, a := sendState(t, s, "restore", snapshotWith(t, "restored"))
	if code != 200 || a.Error != nil || a.Command != "restore" || a.LastZxid != lastZxid(s) || a.LastZxid>>32 <= before>>32 {
		t.Fatalf("%d %+v at %x, before %x", code, a, lastZxid(s), before)
	}
	w.wantClosed()
	watching.wantClosed()
	eventually(t, "its watches are gone", func() bool { return s.watches.Size().Total() == 0 })

	back := dial(t, s)
	back.handshake(proto.ConnectRequest{TimeOut: 20000, SessionID: w.resp.SessionID, Passwd: w.resp.Passwd, LastZxidSeen: before})
	if back.resp.TimeOut != 0 {
		t.Errorf("an old session continues: %+v", back.resp)
	}
	fresh := dial(t, s)
	fresh.handshake(proto.ConnectRequest{TimeOut: 20000, LastZxidSeen: before})
	if fresh.resp.TimeOut == 0 || fresh.resp.SessionID == w.resp.SessionID {
		t.Fatalf("a client that has seen the old state: %+v", fresh.resp)
	}
	if data, stat := fresh.get("/r", false); data != "restored" || stat.Czxid != 1 || stat.NumChildren != 1 {
		t.Errorf("%q %+v", data, stat)
	}
	for _, path := range []string{"/old", "/mine", "/r/e"} {
		if got := fresh.call(proto.OpExists, &proto.ExistsRequest{Path: path}); got.Err != proto.ErrNoNode {
			t.Errorf("%s: %v", path, got.Err)
		}
	}
	fresh.create("/r/second", nil, proto.ModePersistent)
	if got := fresh.call(proto.OpCreate, &proto.CreateRequest{Path: "/r/third", ACL: proto.OpenACL()}); got.Err != proto.ErrQuotaExceeded {
		t.Errorf("beyond the quota that was restored: %v", got.Err)
	}
	if got := fresh.create("/zookeeper-is-there", nil, proto.ModePersistent); got == "" || lastZxid(s) <= a.LastZxid {
		t.Errorf("%q at %x", got, lastZxid(s))
	}
}

// The server accepts the output of zkgo backup. It rejects a damaged state, and clients
// notice nothing.
func TestAdminRestoreOfABackupAndOfDamage(t *testing.T) {
	t.Parallel()
	s := startServer(t, withAdmin)
	<-s.Ready()
	w := connect(t, s)
	w.create("/old", nil, proto.ModePersistent)
	content := snapshotWith(t, "in a backup")
	flipped := bytes.Clone(content)
	flipped[len(flipped)/2] ^= 1
	var packed bytes.Buffer
	if _, err := backup.Write(&packed, backup.Header{Zxid: "0x6"}, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	cut := packed.Bytes()[:packed.Len()-1]
	for what, tc := range map[string]struct {
		b   []byte
		say string
	}{
		"nothing": {nil, "is empty"}, "nonsense": {[]byte("nonsense, all of it"), "not a snapshot of ZooKeeper"}, "cut off": {content[:len(content)-1], "unexpected EOF"},
		"a flipped bit": {flipped, ""}, "a backup that was cut off": {cut, "the backup was cut off"},
	} {
		code, a := sendState(t, s, "restore", tc.b)
		if code != 500 || a.Error == nil || !strings.Contains(*a.Error, "nothing was changed") || !strings.Contains(*a.Error, tc.say) {
			t.Errorf("%s: %d %v", what, code, a)
		}
	}
	w.must(proto.OpExists, &proto.ExistsRequest{Path: "/old"}) // on the same connection
	if code, a := sendState(t, s, "rest", packed.Bytes()); code != 200 {
		t.Fatalf("%d %v", code, a)
	}
	if data, _ := connect(t, s).get("/r", false); data != "in a backup" {
		t.Errorf("%q", data)
	}
}

// Any server of an ensemble should accept a state, and all servers should have it
// afterwards, including a server that restarts.
func TestAdminRestoreInAnEnsemble(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := startEnsemble(t, 3, withAdmin, func(c *Config) {
		c.Memory, c.DataDir = false, filepath.Join(dir, host(int(c.Quorum.ID)))
		c.Log.Dir = c.DataDir
	})
	ready := func() bool {
		for _, s := range e.servers {
			if s.Node().CanReplace() != nil {
				return false
			}
		}
		return true
	}
	if err := e.servers[0].Node().CanReplace(); err != nil { // a new ensemble can't restore yet
		code, a := sendState(t, e.servers[0], "restore", nil)
		if code != 503 && code != 500 || a.Error == nil {
			t.Errorf("%d %+v", code, a)
		}
	}
	eventually(t, "they know how", ready)
	leader, others := e.leader()
	for i, s := range []*Server{leader, others[0]} {
		var clients []*wire
		for _, s := range e.servers {
			w := connect(t, s)
			w.create("/old-"+host(int(s.cfg.Quorum.ID)), nil, proto.ModeEphemeral)
			clients = append(clients, w)
		}
		data := strings.Repeat("x", 1000*(i+1))
		code, a := sendState(t, s, "restore", snapshotWith(t, data))
		if code != 200 {
			t.Fatalf("%d %v", code, *a.Error)
		}
		for _, w := range clients {
			w.wantClosed()
		}
		for _, s := range e.servers {
			eventually(t, "it has it", func() bool { return lastZxid(s) >= a.LastZxid })
			if got, _ := connect(t, s).get("/r", false); got != data {
				t.Errorf("%d bytes", len(got))
			}
		}
	}
	config, _ := connect(t, leader).get(tree.ConfigPath, false)
	if !strings.Contains(config, "server.3=") {
		t.Errorf("the membership is %q", config)
	}
	late := others[1]
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
	again := startServer(t, func(c *Config) { *c = late.cfg })
	<-again.Ready()
	digest := func(s *Server) [2]uint64 {
		s.tree.RLock()
		defer s.tree.RUnlock()
		return [2]uint64{s.tree.FullDigest(), uint64(s.tree.LastZxid())}
	}
	eventually(t, "all have the same", func() bool { return digest(again) == digest(leader) && digest(others[0]) == digest(leader) })
	if st := again.Node().Status(); st.Role != raftfsm.Follower {
		t.Errorf("%+v", st)
	}
}
