package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// TestWeight: no reply is longer than its weight, and a reply that may be long has its
// actual weight.
func TestWeight(t *testing.T) {
	t.Parallel()
	s := &Server{tree: tree.New()}
	create := func(path string, data int) {
		s.tree.Lock()
		defer s.tree.Unlock()
		tx := tree.Txn{Zxid: s.tree.LastZxid() + 1, Time: 1}
		req := proto.CreateRequest{Path: path, Data: make([]byte, data), ACL: proto.OpenACL()}
		if r := s.tree.Apply(&tx, proto.OpCreate, &req); r.Code != proto.Ok {
			t.Fatal(path, r.Code)
		}
	}
	weighs := func(path string, want int) {
		t.Helper()
		if got := weight(s.tree, proto.OpGetData, (&proto.GetDataRequest{Path: path}).Append(nil)); got != want {
			t.Errorf("%s weighs %d, want %d", path, got, want)
		}
	}
	create("/small", 10)
	create("/most", shortData)
	weighs("/small", smallReply+shortData)
	weighs("/nowhere", smallReply+shortData)
	create("/long", shortData+1)
	weighs("/small", smallReply+10)
	weighs("/nowhere", smallReply)
	weighs("/long", smallReply+shortData+1)
}
