package tree

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// The transcript in testdata was recorded with ZooKeeper 3.9.5, with extended types and
// enforced quotas. Its lines are
//
//	session NAME ID IDENTITY…
//	NAME OP REQUEST ZXID TIME ERR REPLY    one write and its reply, bodies in hex
//	node PATH GETDATA GETACL               the state at the end
//	hash ZXID: DIGEST                      the tree digest at some zxids, zxid in hex

// recording replays the writes on a fresh tree.
type recording struct {
	t        *testing.T
	tree     *Tree
	sessions map[string]*Txn
	digests  map[int64]uint64
	line     int
}

// TestTranscriptOfZooKeeper compares every reply, the whole final state and the digests
// with the real server's.
func TestTranscriptOfZooKeeper(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/zookeeper-3.9.5.txt")
	if err != nil {
		t.Fatal(err)
	}
	tr := recording{t: t, tree: New(), sessions: make(map[string]*Txn), digests: make(map[int64]uint64)}
	nodes, hashes := 0, 0
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		tr.line++
		f := strings.Fields(sc.Text())
		switch f[0] {
		case "session":
			tr.session(f)
		case "node":
			nodes++
			tr.node(f)
		case "hash":
			zxid, _ := strconv.ParseInt(strings.TrimSuffix(f[1], ":"), 16, 64)
			want, _ := strconv.ParseUint(f[2], 10, 64)
			if got, ok := tr.digests[zxid]; ok {
				hashes++
				if got != want {
					t.Errorf("digest at zxid %#x is %x, ZooKeeper has %x", zxid, got, want)
				}
			}
		default:
			tr.write(f)
		}
	}
	if err := tr.tree.Check(); err != nil {
		t.Error(err)
	}
	if nodes != tr.tree.NodeCount()-1 || hashes < 20 {
		t.Errorf("compared %d nodes of %d and %d digests", nodes, tr.tree.NodeCount()-1, hashes)
	}
}

func (tr *recording) session(f []string) {
	id, err := strconv.ParseUint(f[2], 0, 64)
	if err != nil {
		tr.t.Fatal(err)
	}
	tx := &Txn{Session: int64(id), Policy: ExtendedTypes | EnforceQuota}
	for _, s := range f[3:] {
		scheme, user, _ := strings.Cut(s, ":")
		tx.IDs = append(tx.IDs, proto.ID{Scheme: scheme, ID: user})
	}
	tr.sessions[f[1]] = tx
}

func (tr *recording) write(f []string) {
	tx := tr.sessions[f[0]]
	op, _ := strconv.Atoi(f[1])
	tx.Zxid, _ = strconv.ParseInt(f[3], 0, 64)
	tx.Time, _ = strconv.ParseInt(f[4], 10, 64)
	code, _ := strconv.Atoi(f[5])
	req := request(proto.Op(op))
	if req != nil {
		d := proto.NewReader(tr.bytes(f[2]))
		req.Decode(&d)
		if d.Err() != nil {
			if code != int(proto.ErrMarshalling) {
				tr.t.Errorf("line %d: %v; ZooKeeper answers %v", tr.line, d.Err(), proto.Code(code))
			}
			return
		}
	}
	r := tr.tree.Apply(tx, proto.Op(op), req)
	tr.digests[tx.Zxid] = tr.tree.Digest()
	if r.Code != proto.Code(code) {
		tr.t.Errorf("line %d: %v %+v: got %v, ZooKeeper answers %v", tr.line, proto.Op(op), req, r.Code, proto.Code(code))
	} else if body := r.AppendBody(nil); !bytes.Equal(body, tr.bytes(f[6])) {
		tr.t.Errorf("line %d: %v %s:\n got %x\nwant %s", tr.line, proto.Op(op), describe(req), body, f[6])
	}
}

func (tr *recording) node(f []string) {
	path := string(tr.bytes(f[1]))
	n := tr.tree.Get(path)
	if n == nil {
		tr.t.Errorf("node %q is missing", path)
		return
	}
	data := proto.GetDataResponse{Data: n.Data()}
	n.Stat(&data.Stat)
	if got := data.Append(nil); !bytes.Equal(got, tr.bytes(f[2])) {
		d := proto.NewReader(tr.bytes(f[2]))
		var want proto.GetDataResponse
		want.Decode(&d)
		tr.t.Errorf("node %q:\n got %q %+v\nwant %q %+v", path, data.Data, data.Stat, want.Data, want.Stat)
	}
	acl := proto.GetACLResponse{ACL: n.ACL(), Stat: data.Stat}
	if got, want := acl.Append(nil), tr.bytes(f[3]); !bytes.Equal(got, want) {
		tr.t.Errorf("node %q: list\n got %x\nwant %x", path, got, want)
	}
}

func (tr *recording) bytes(s string) []byte {
	if s == "-" {
		return nil
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		tr.t.Fatalf("line %d: %v", tr.line, err)
	}
	return b
}

// request returns an empty request for op.
func request(op proto.Op) proto.Record {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer:
		return new(proto.CreateRequest)
	case proto.OpCreateTTL:
		return new(proto.CreateTTLRequest)
	case proto.OpDelete:
		return new(proto.DeleteRequest)
	case proto.OpSetData:
		return new(proto.SetDataRequest)
	case proto.OpSetACL:
		return new(proto.SetACLRequest)
	case proto.OpMulti:
		return new(proto.MultiRequest)
	case proto.OpDeleteContainer:
		return new(Reap)
	}
	return nil
}

// describe formats a request for messages.
func describe(req proto.Record) string {
	m, ok := req.(*proto.MultiRequest)
	if !ok {
		return fmt.Sprintf("%+v", req)
	}
	s := ""
	for _, op := range m.Ops {
		s += fmt.Sprintf("[%v %+v] ", op.Op, op.Req)
	}
	return s
}
