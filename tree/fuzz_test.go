package tree

import (
	"bytes"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// FuzzRestore: for any input, Restore either refuses it and leaves a fresh tree, or
// builds a consistent tree that can be written and restored again.
func FuzzRestore(f *testing.F) {
	f.Add(written(f, New()))
	f.Add(written(f, varied(f)))
	f.Add([]byte(magic))
	f.Add(forged([]byte{tagHeader, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksums would stop the fuzzer, so we also use each input as a payload.
		for _, b := range [][]byte{b, forged(b)} {
			tree := New()
			err := tree.Restore(bytes.NewReader(b))
			if bad := tree.Check(); bad != nil {
				t.Fatal(bad)
			}
			if digest, serr := Scan(bytes.NewReader(b)); (serr == nil) != (err == nil) || err == nil && digest != tree.FullDigest() {
				t.Fatalf("Scan found %#x, %v; the restored tree has %#x, %v", digest, serr, tree.FullDigest(), err)
			}
			if err != nil && tree.NodeCount() != 5 {
				t.Fatalf("%d nodes after %v", tree.NodeCount(), err)
			}
			if err == nil && restored(t, tree).FullDigest() != tree.FullDigest() {
				t.Fatal("the snapshot of it differs")
			}
		}
	})
}

// FuzzApply: no request, decoded from arbitrary bytes, breaks the tree.
func FuzzApply(f *testing.F) {
	for seed := range int64(30) {
		g, tree := newGenerator(seed), New()
		_, op, req := g.next(tree)
		var body []byte
		if req != nil {
			body = req.Append(nil)
		}
		f.Add(int32(op), body, uint32(seed))
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte, policy uint32) {
		tree := varied(t)
		tx := &Txn{Zxid: tree.LastZxid() + 1, Time: 1, Session: 7, Policy: Policy(policy), IDs: []proto.ID{{Scheme: "digest", ID: "a:b"}}}
		before := dumped(t, tree)
		req := request(proto.Op(op))
		if req != nil {
			d := proto.AliasReader(body)
			req.Decode(&d)
			if d.Err() != nil {
				return
			}
		}
		r := tree.Apply(tx, proto.Op(op), req)
		if r.Code != proto.Ok {
			tree.Advance(tx.Zxid - 1)
			if dumped(t, tree) != before {
				t.Fatalf("%v changed the tree", r.Code)
			}
		}
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
		r.AppendBody(nil)
		if restored(t, tree).FullDigest() != tree.FullDigest() {
			t.Fatal("a snapshot loses something")
		}
	})
}
