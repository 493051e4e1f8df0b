package zktxn

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// samples returns one transaction of each kind.
func samples() []Txn {
	open := proto.OpenACL()
	create := &CreateTxn{Path: "/a", Data: []byte("d"), ACL: open, Ephemeral: true, ParentCversion: 7}
	bodies := []MultiOp{
		{proto.OpCreate, create},
		{proto.OpCreate2, &CreateTxn{Path: "/a", ACL: open, ParentCversion: 1}},
		{proto.OpCreateContainer, &CreateTxn{Path: "/c", Data: []byte{}, ACL: open, ParentCversion: 1}},
		{proto.OpCreateTTL, &CreateTxn{Path: "/t", ACL: open, ParentCversion: 2, TTL: 5000}},
		{proto.OpDelete, &DeleteTxn{Path: "/a"}},
		{proto.OpDeleteContainer, &DeleteTxn{Path: "/c"}},
		{proto.OpSetData, &SetDataTxn{Path: "/a", Data: []byte("x"), Version: 3}},
		{proto.OpCheck, &CheckTxn{Path: "/a", Version: 1}},
		{proto.OpError, &ErrorTxn{Code: proto.ErrNoNode}},
	}
	list := append(bodies[:len(bodies):len(bodies)],
		MultiOp{proto.OpMulti, &MultiTxn{Ops: bodies}},
		MultiOp{proto.OpSetACL, &SetACLTxn{Path: "/a", ACL: open, Version: 4}},
		MultiOp{proto.OpCreateSession, &CreateSessionTxn{Timeout: 30000}},
		MultiOp{proto.OpCreateSession, &CreateSessionTxn{Timeout: 30000, Password: []byte("0123456789abcdef")}},
		MultiOp{proto.OpCloseSession, &CloseSessionTxn{Paths: []string{"/a", "/b"}}})
	var txns []Txn
	for i, op := range list {
		txns = append(txns, Txn{Header: Header{Session: 5, Cxid: 6, Zxid: int64(i + 1), Time: 9, Type: op.Type}, Body: op.Body})
	}
	return txns
}

// TestAppend: Decode reads what Append writes, with a digest and without.
func TestAppend(t *testing.T) {
	t.Parallel()
	for _, tx := range samples() {
		for _, digest := range []*Digest{nil, {Zxid: tx.Zxid, Version: DigestVersion, Value: 1 << 63}} {
			tx.Digest = digest
			got, err := Decode(tx.Append(nil))
			if err != nil || !reflect.DeepEqual(*got, tx) {
				t.Errorf("%v: %+v instead of %+v, %v", tx.Type, got, tx, err)
			}
		}
	}
}

// TestBodyOf: BodyOf is the inverse of Changes.
func TestBodyOf(t *testing.T) {
	t.Parallel()
	for _, tx := range samples() {
		switch tx.Type {
		case proto.OpCreateSession, proto.OpCloseSession:
			continue // they are no changes of znodes that a tree records
		case proto.OpMulti: // with an error it would be a failed one, which changes nothing
			m := tx.Body.(*MultiTxn)
			tx.Body = &MultiTxn{Ops: m.Ops[:len(m.Ops)-2]}
		case proto.OpCheck: // only in a multi
			continue
		}
		op, body := BodyOf(tx.Type, tx.Changes(nil, 0))
		if op != tx.Type || !reflect.DeepEqual(body, tx.Body) {
			t.Errorf("%v: %v %+v instead of %+v", tx.Type, op, body, tx.Body)
		}
	}
	if _, body := BodyOf(proto.OpCreate, []tree.Change{{Op: proto.OpCreate, Path: "/a"}}); body.(*CreateTxn).ACL == nil {
		t.Error("a null list, which ZooKeeper can't read")
	}
}

// FuzzAppend: what Decode accepts, Append writes so that Decode reads the same, and a second
// Append writes the same.
func FuzzAppend(f *testing.F) {
	for _, tx := range samples() {
		f.Add(tx.Append(nil))
		tx.Digest = &Digest{Version: DigestVersion, Value: 1}
		f.Add(tx.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tx, err := Decode(b)
		if err != nil {
			return
		}
		again := tx.Append(nil)
		next, err := Decode(again)
		if err != nil {
			t.Fatalf("%+v: %v", tx, err)
		}
		if third := next.Append(nil); !bytes.Equal(again, third) {
			t.Fatalf("%x, then %x", again, third)
		}
	})
}
