package mirror

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// stateOf returns the state after nothing but a new ensemble's first transactions.
func stateOf(t *testing.T, zxid int64) *zkfiles.State {
	t.Helper()
	s := zkfiles.NewState(tree.Policy(0))
	s.Zxid = zxid
	return s
}

func create(zxid int64, path string, digest uint64) *zkfiles.Txn {
	return &zkfiles.Txn{
		Header: zkfiles.Header{Session: 1, Zxid: zxid, Type: proto.OpCreate}, Digest: &zkfiles.Digest{Zxid: zxid, Version: 2, Value: digest},
		Body: &zkfiles.CreateTxn{Path: path, ACL: proto.OpenACL(), ParentCversion: 1},
	}
}

// digestAfter returns the digest after a create, from a state of its own.
func digestAfter(t *testing.T, zxid int64, path string) uint64 {
	t.Helper()
	s := stateOf(t, zxid-1)
	must.Do(t, s.Apply(create(zxid, path, 0)))
	return s.Digest()
}

// Digests count from the moment when the state is exact, and the first that differs ends the
// mirror with the transaction and its path.
func TestDigests(t *testing.T) {
	t.Parallel()
	r := new(Replica)
	must.Do(t, r.Snapshot(stateOf(t, 4)))
	must.Do(t, r.Commit(create(5, "/a", 12345))) // the snapshot may be ahead of it
	if r.Zxid() != 0 {
		t.Error("a state that isn't exact has a zxid to continue from")
	}
	must.Do(t, r.Snapshot(stateOf(t, 4)))
	must.Do(t, r.Synced())
	must.Do(t, r.Commit(create(5, "/a", digestAfter(t, 5, "/a"))))
	if s := r.Status(); !s.Exact || s.Compared != 1 || s.Zxid != 5 || r.Zxid() != 5 {
		t.Errorf("%+v", s)
	}
	err := r.Commit(create(6, "/b", 12345))
	if !errors.Is(err, ErrDigest) || !strings.Contains(err.Error(), "transaction 0x6 (create /b)") {
		t.Error(err)
	}
	if _, err := r.Take(); err == nil {
		t.Error("a state with a wrong digest can be taken")
	}
}

func TestNothingWithoutAState(t *testing.T) {
	t.Parallel()
	r := new(Replica)
	if err := r.Commit(create(5, "/a", 1)); err == nil {
		t.Error("a transaction without a state")
	}
	if err := r.Synced(); err == nil {
		t.Error("synced without a state")
	}
	if _, err := r.Take(); err == nil {
		t.Error("taken without a state")
	}
	must.Do(t, r.Snapshot(stateOf(t, 4)))
	must.Do(t, r.Synced())
	if s := must.Get(r.Take())(t); s.Zxid != 4 {
		t.Error(s.Zxid)
	}
	if r.Zxid() != 0 {
		t.Error("a state that was taken has a zxid to continue from")
	}
}
