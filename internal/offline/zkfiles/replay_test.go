package zkfiles

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// logOf returns a log file with these payloads.
func logOf(payloads ...[]byte) []byte {
	b := proto.AppendLong(proto.AppendInt(proto.AppendInt(nil, logMagic), fileVersion), 0)
	for _, p := range payloads {
		b = proto.AppendLong(b, int64(adler32.Checksum(p)))
		b = append(append(proto.AppendInt(b, int32(len(p))), p...), recordEnd)
	}
	return b
}

// lastRecord returns the start of a log's last record.
func lastRecord(b []byte) int {
	at := logHeaderSize
	for {
		next := at + recordHeader + int(binary.BigEndian.Uint32(b[at+8:])) + 1
		if next >= len(b) {
			return at
		}
		at = next
	}
}

// resum corrects the checksum of the record at the start of b.
func resum(b []byte) {
	size := binary.BigEndian.Uint32(b[8:])
	binary.BigEndian.PutUint64(b, uint64(adler32.Checksum(b[recordHeader:][:size])))
}

// header returns a transaction without its body.
func header(id, zxid int64, op proto.Op) []byte {
	b := proto.AppendInt(proto.AppendLong(nil, id), 1)
	b = proto.AppendLong(proto.AppendLong(b, zxid), 1000+zxid)
	return proto.AppendInt(b, int32(op))
}

func create(id, zxid int64, path string, ephemeral bool, cversion int32) []byte {
	b := proto.AppendBuffer(proto.AppendString(header(id, zxid, proto.OpCreate), path), []byte("data"))
	return proto.AppendInt(proto.AppendBool(proto.AppendACLs(b, proto.OpenACL()), ephemeral), cversion)
}

func remove(id, zxid int64, path string) []byte {
	return proto.AppendString(header(id, zxid, proto.OpDelete), path)
}

func set(id, zxid int64, path, data string, version int32) []byte {
	b := proto.AppendString(header(id, zxid, proto.OpSetData), path)
	return proto.AppendInt(proto.AppendBuffer(b, []byte(data)), version)
}

func openSession(id, zxid int64) []byte {
	return proto.AppendInt(header(id, zxid, proto.OpCreateSession), 4000)
}

func closeSession(id, zxid int64, paths ...string) []byte {
	return proto.AppendStrings(header(id, zxid, proto.OpCloseSession), paths)
}

// history returns the payloads of a series of transactions; a fuzzy snapshot may begin at any
// transaction.
func history() [][]byte {
	return [][]byte{
		openSession(alice, 1),
		openSession(bob, 2),
		create(alice, 3, "/p", false, 1),
		create(alice, 4, "/p/c", false, 1),
		create(alice, 5, "/p/e", true, 2),
		set(alice, 6, "/p/c", "newer", 1),
		remove(alice, 7, "/p/c"),
		closeSession(alice, 8, "/p/e"),
		remove(bob, 9, "/p"), // the parent, which is recreated later
		create(bob, 10, "/p", false, 2),
		create(bob, 11, "/p/c", false, 1),
		create(bob, 12, "/p/e", true, 2), // the same name, created by another session
		set(bob, 13, "/p", "last", 1),
		create(bob, 14, "/p/d", false, 3),
		remove(bob, 15, "/p/d"),
		proto.AppendInt(header(bob, 16, proto.OpError), -101),
	}
}

// after returns the state after the first n transactions.
func after(t *testing.T, n int) *State {
	t.Helper()
	s := NewState(0)
	for _, p := range history()[:n] {
		tx, err := DecodeTxn(p)
		if err == nil {
			err = s.Apply(tx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestFuzzySnapshot builds every snapshot that a server could have written during the
// history: it begins after transaction a and ends after b, with each znode as it was at
// some time in between. The logs should lead from every snapshot to the same final state.
func TestFuzzySnapshot(t *testing.T) {
	t.Parallel()
	all := history()
	want := text(t, after(t, len(all)))
	for a := range len(all) + 1 {
		for b := a; b <= len(all); b++ {
			for late := range 1 << 5 {
				if a == b && late > 0 || late&8 != 0 { // this only affects /zookeeper/config
					continue
				}
				s := mixed(after(t, a), after(t, b), late)
				s.Zxid = int64(a)
				for _, p := range all[a:] {
					tx, err := DecodeTxn(p)
					if err == nil {
						err = s.Apply(tx)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if got := text(t, s); got != want {
					t.Fatalf("from %d to %d, choice %d:\n got %s\nwant %s", a, b, late, got, want)
				}
			}
		}
	}
}

// mixed returns the sessions of early and a mix of the znodes of both states. A
// parent from early has the children it had then, as a walk through the tree would
// find or miss them.
func mixed(early, late *State, choice int) *State {
	s := emptyState(0)
	for id, timeout := range early.Sessions {
		s.Sessions[id] = timeout
	}
	pick := func(path string, i int) *node {
		from := early
		if choice>>(i%5)&1 == 1 {
			from = late
		}
		if n := from.nodes[path]; n != nil {
			c := *n
			return &c
		}
		return nil
	}
	for i, path := range []string{"", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/p", "/p/c", "/p/e", "/p/d"} {
		n := pick(path, i)
		if n == nil || path != "" && s.nodes[path[:strings.LastIndexByte(path, '/')]] == nil {
			continue
		}
		s.insert(n)
	}
	return s
}

// text fills a tree from s and returns all its contents.
func text(t *testing.T, s *State) string {
	t.Helper()
	tr, table := tree.New(), session.NewTable()
	must.Do(t, s.Fill(tr, table))
	return dump(t, tr, table)
}

// TestFuzzyWithoutTheRest checks that a fuzzy snapshot isn't a state if the logs end
// before the snapshot was complete.
func TestFuzzyWithoutTheRest(t *testing.T) {
	t.Parallel()
	tr, table := sample(t)
	b := written(t, tr, table, None)
	for _, c := range []struct {
		zxid int64
		log  []byte
		says string
	}{
		{tr.LastZxid(), logOf(openSession(alice, tr.LastZxid())), ""},
		{tr.LastZxid() - 1, logOf(openSession(alice, tr.LastZxid()-1)), "written until transaction"},
		{tr.LastZxid() - 1, logOf(openSession(alice, tr.LastZxid()-1), set(bob, tr.LastZxid(), "/a", "other", 1)), "differs from the source"},
		{tr.LastZxid() - 1, logOf(openSession(alice, tr.LastZxid()-1), proto.AppendInt(header(bob, tr.LastZxid(), proto.OpError), -101)), ""},
	} {
		m := fstest.MapFS{SnapshotName(c.zxid, None): {Data: b}, fmt.Sprintf("log.%x", tr.LastZxid()-1): {Data: c.log}}
		_, _, err := Load(Source{Data: Dir{m, "d"}})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("from %x: %v, want %q", c.zxid, err, c.says)
		}
	}
}

// TestSnapshotThatCaughtOneMore checks that a snapshot's digest may belong to the transaction
// before its last change.
func TestSnapshotThatCaughtOneMore(t *testing.T) {
	t.Parallel()
	before, behind := after(t, 12), after(t, 13)
	tr, table := tree.New(), session.NewTable()
	must.Do(t, after(t, 13).Fill(tr, table))
	b := written(t, tr, table, None)
	b = b[:len(b)-lastZxidSize-digestSize]
	b = proto.AppendLong(proto.AppendInt(proto.AppendLong(b, 12), digestVersion), int64(before.digest))
	b = proto.AppendString(proto.AppendLong(b, int64(adler32.Checksum(b))), "/")
	digest := proto.AppendLong(proto.AppendInt(nil, digestVersion), int64(behind.digest))
	last := append(bytes.Clone(history()[12]), digest...)
	for name, c := range map[string]struct {
		name string
		log  [][]byte
		ok   bool
	}{
		"at its own zxid": {"snapshot.c", [][]byte{history()[11], last}, true},
		"later":           {"snapshot.b", [][]byte{history()[10], history()[11], last}, true},
		"and no more":     {"snapshot.c", [][]byte{history()[11]}, false},
	} {
		m := fstest.MapFS{c.name: {Data: b}, "log.b": {Data: logOf(c.log...)}}
		_, r, err := Load(Source{Data: Dir{m, "d"}})
		if c.ok != (err == nil) || c.ok && (!r.Verified || r.Compared != 1 || len(r.Warnings) > 0) {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
}

// TestListArrivesLater checks that the ACL of a new znode may be missing from a
// snapshot, because the ACLs precede the znodes.
func TestListArrivesLater(t *testing.T) {
	t.Parallel()
	s := after(t, 4)
	s.unlisted["/p/c"] = 7
	if err := s.Fill(tree.New(), session.NewTable()); err == nil || !strings.Contains(err.Error(), `znode "/p/c" has the access control list 7`) {
		t.Error(err)
	}
	for _, p := range [][]byte{create(alice, 5, "/p/c", false, 1), remove(alice, 5, "/p/c"), setACL(alice, 5, "/p/c")} {
		s := after(t, 4)
		s.unlisted["/p/c"] = 7
		tx, err := DecodeTxn(p)
		if err == nil {
			err = s.Apply(tx)
		}
		if err == nil {
			err = s.Fill(tree.New(), session.NewTable())
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func setACL(id, zxid int64, path string) []byte {
	b := proto.AppendString(header(id, zxid, proto.OpSetACL), path)
	return proto.AppendInt(proto.AppendACLs(b, proto.OpenACL()), 1)
}

// TestOrphansOfSessions checks that an ephemeral znode without a session is deleted
// at startup, and that its parent reflects that.
func TestOrphansOfSessions(t *testing.T) {
	t.Parallel()
	s := after(t, 5)
	delete(s.Sessions, alice)
	tr, table := tree.New(), session.NewTable()
	must.Do(t, s.Fill(tr, table))
	var p proto.Stat
	tr.Get("/p").Stat(&p)
	if tr.Get("/p/e") != nil || p.Pzxid != 5 || table.Len() != 1 {
		t.Errorf("%+v", p)
	}
}

// TestTransactions decodes unusual transactions.
func TestTransactions(t *testing.T) {
	t.Parallel()
	digest := proto.AppendLong(proto.AppendInt(nil, 2), 77)
	ok := func(payload []byte) *Txn {
		t.Helper()
		tx := must.Get(DecodeTxn(payload))(t)
		return tx
	}
	old := create(1, 5, "/a", true, 3)
	if c := ok(old[:len(old)-4]).Body.(*CreateTxn); c.ParentCversion != -1 || !c.Ephemeral {
		t.Errorf("a create from before 3.4: %+v", c)
	}
	if tx := ok(append(bytes.Clone(old), digest...)); tx.Body.(*CreateTxn).ParentCversion != 3 || tx.Digest == nil || tx.Digest.Value != 77 {
		t.Errorf("a create with a digest: %+v", tx)
	}
	bare := header(1, 5, proto.OpCloseSession)
	if tx := ok(bare); tx.Digest != nil || tx.Body.(*CloseSessionTxn).Paths != nil {
		t.Errorf("%+v", tx)
	}
	if tx := ok(append(bytes.Clone(bare), digest...)); tx.Digest == nil || tx.Body.(*CloseSessionTxn).Paths != nil {
		t.Errorf("only a digest: %+v", tx)
	}
	if tx := ok(append(closeSession(1, 5, "/x", "/y"), digest...)); tx.Digest == nil || len(tx.Body.(*CloseSessionTxn).Paths) != 2 {
		t.Errorf("%+v", tx)
	}
	for name, bad := range map[string][]byte{
		"nothing":             nil,
		"no body":             header(1, 5, proto.OpCreate),
		"an unknown type":     header(1, 5, 99),
		"bytes too many":      append(remove(1, 5, "/a"), 1),
		"a path of its own":   remove(1, 5, "a"),
		"a multi in a multi":  multi(1, 5, proto.OpMulti, nil),
		"a multi cut short":   multi(1, 5, proto.OpDelete, []byte{0, 0}),
		"a multi with a tail": multi(1, 5, proto.OpDelete, append(proto.AppendString(nil, "/a"), 1)),
		"many operations":     proto.AppendInt(header(1, 5, proto.OpMulti), 1<<30),
		"a long list":         proto.AppendInt(proto.AppendString(header(1, 5, proto.OpSetACL), "/a"), 1<<30),
	} {
		if tx, err := DecodeTxn(bad); err == nil {
			t.Errorf("%s: %+v", name, tx)
		}
	}
}

func multi(id, zxid int64, op proto.Op, body []byte) []byte {
	b := proto.AppendInt(header(id, zxid, proto.OpMulti), 1)
	return proto.AppendBuffer(proto.AppendInt(b, int32(op)), body)
}

// TestMultiIsAllOrNothing covers a failed multi. Its log entry contains the operations that would
// have succeeded.
func TestMultiIsAllOrNothing(t *testing.T) {
	t.Parallel()
	two := func(second proto.Op, body []byte) []byte {
		b := proto.AppendInt(header(bob, 17, proto.OpMulti), 2)
		b = proto.AppendBuffer(proto.AppendInt(b, int32(proto.OpDelete)), proto.AppendString(nil, "/p/c"))
		return proto.AppendBuffer(proto.AppendInt(b, int32(second)), body)
	}
	for _, c := range []struct {
		payload []byte
		gone    bool
		code    proto.Code // of the second operation
	}{
		{two(proto.OpError, proto.AppendInt(nil, -2)), false, proto.ErrRuntimeInconsistency},
		{two(proto.OpError, proto.AppendString(nil, "/the body of the operation that it was")), false, proto.Ok},
		{two(proto.OpError, nil), false, proto.Ok},
		{two(proto.OpCheck, proto.AppendInt(proto.AppendString(nil, "/p"), 1)), true, proto.Ok},
		{two(proto.OpCreateTTL, proto.AppendLong(proto.AppendInt(proto.AppendACLs(proto.AppendBuffer(proto.AppendString(nil, "/t"), nil), proto.OpenACL()), 9), -1)), true, proto.Ok},
	} {
		s := after(t, len(history()))
		tx, err := DecodeTxn(c.payload)
		if err == nil {
			err = s.Apply(tx)
		}
		if err != nil {
			t.Fatal(err)
		}
		if gone := s.nodes["/p/c"] == nil; gone != c.gone || s.Zxid != 17 || s.nodes["/t"] != nil {
			t.Errorf("gone: %v, zxid %d", gone, s.Zxid)
		}
		if e, failed := tx.Body.(*MultiTxn).Ops[1].Body.(*ErrorTxn); failed == c.gone || failed && e.Code != c.code {
			t.Errorf("the second operation is %+v, want code %v", tx.Body.(*MultiTxn).Ops[1].Body, c.code)
		}
	}
}

// TestLaterNumbersStay checks that a parent from a later time keeps its numbers when
// older transactions are applied again, and that the end of a session deletes the
// paths it lists.
func TestLaterNumbersStay(t *testing.T) {
	t.Parallel()
	s := after(t, 5)
	p := s.nodes["/p"]
	p.Cversion, p.Pzxid = 9, 90
	apply := func(payload []byte) {
		t.Helper()
		tx, err := DecodeTxn(payload)
		if err == nil {
			err = s.Apply(tx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(create(alice, 6, "/p/x", false, 3))
	apply(remove(alice, 7, "/p/x"))
	if p.Cversion != 9 || p.Pzxid != 90 {
		t.Errorf("cversion %d, pzxid %d", p.Cversion, p.Pzxid)
	}
	apply(closeSession(bob, 91, "/p/c", "/p/none"))
	if s.nodes["/p/c"] != nil || s.nodes["/p/e"] == nil || p.Pzxid != 91 {
		t.Errorf("pzxid %d", p.Pzxid)
	}
}

// TestTimesToLiveOf353 checks that TTLs written by 3.5.3 are recognized with
// ZooKeeper's option for them, and otherwise count as sessions.
func TestTimesToLiveOf353(t *testing.T) {
	t.Parallel()
	body := proto.AppendACLs(proto.AppendBuffer(proto.AppendString(header(bob, 17, proto.OpCreateTTL), "/t"), nil), proto.OpenACL())
	tx := must.Get(DecodeTxn(proto.AppendLong(proto.AppendInt(body, 9), 1000)))(t)
	s := NewState(tree.Emulate353TTL)
	must.Do(t, s.Apply(tx))
	if got := s.nodes["/t"].Owner; got != -1<<63|1000 {
		t.Errorf("%x", uint64(got))
	}
	tr := tree.New()
	if err := s.Fill(tr, session.NewTable()); err != nil || tr.Get("/t") == nil || !tr.HasTTL() || tr.EphemeralCount() != 0 {
		t.Error(err)
	}
}

// TestPassword compares with the output of java.util.Random for ZooKeeper's seed.
func TestPassword(t *testing.T) {
	t.Parallel()
	for id, want := range map[int64]string{
		0x1000000000000a1:  "dbe4fa4c3bd6c0de1fcb499baf233d1e",
		0x100031e43460000:  "5826d60f0595569af6bc5cdf56c1ab88",
		0x7fffffffffffffff: "20f62cb5648dc2d771471c8a2486a9ee",
	} {
		if got := fmt.Sprintf("%x", Password(id)); got != want {
			t.Errorf("session %#x: %s instead of %s", id, got, want)
		}
	}
}

// TestAnOldSnapshotNeedsAllSince checks that a damaged newest snapshot is an error if
// whole epochs may be missing after the previous one, which the zxids don't show.
func TestAnOldSnapshotNeedsAllSince(t *testing.T) {
	t.Parallel()
	tr, table := sample(t)
	b := written(t, tr, table, None)
	m := fstest.MapFS{
		SnapshotName(tr.LastZxid(), None): {Data: b},
		"log.300000001":                   {Data: logOf(openSession(9, 3<<32|1))},
	}
	if _, _, err := Load(Source{Data: Dir{m, "d"}}); err != nil {
		t.Error(err)
	}
	m["snapshot.200000005"] = &fstest.MapFile{Data: b[:100]}
	if _, _, err := Load(Source{Data: Dir{m, "d"}}); err == nil || !strings.Contains(err.Error(), "the transactions between them are missing") {
		t.Error(err)
	}
}
