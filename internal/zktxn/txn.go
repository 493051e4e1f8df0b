package zktxn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// Header precedes every transaction in a log.
type Header struct {
	Session int64 // the session that made the request
	Cxid    int32 // the client's number for the request
	Zxid    int64
	Time    int64 // by the leader's clock, in milliseconds since the Unix epoch
	Type    proto.Op
}

// Digest is the digest of the tree at one zxid.
type Digest struct {
	Zxid    int64
	Version int32 // of the algorithm; only DigestVersion can be compared
	Value   uint64
}

// DigestVersion is the version of the digest that tree.Tree computes. ZooKeeper 3.6.1 to 3.9
// have it.
const DigestVersion = 2

// Comparable reports whether tree.Tree computes a digest of this version.
func (d *Digest) Comparable() bool { return d.Version == DigestVersion }

// Txn is a transaction in ZooKeeper's log. Body is one of the types below.
type Txn struct {
	Header
	Body   any
	Digest *Digest // of the tree after the transaction; nil before 3.6 and if the tree didn't change
	Offset int64   // of its record in a file
	Raw    []byte  // the encoding, if the source keeps it
}

// The bodies of transactions. Numbers are the values after the transaction.
type (
	// CreateTxn is the body of create, create2, createContainer and createTTL.
	CreateTxn struct {
		Path           string
		Data           []byte
		ACL            []proto.ACL
		Ephemeral      bool
		ParentCversion int32 // −1: not written, as before 3.4
		TTL            int64 // milliseconds, of createTTL
	}
	// DeleteTxn is the body of delete and deleteContainer.
	DeleteTxn struct{ Path string }
	// SetDataTxn is the body of setData and reconfig.
	SetDataTxn struct {
		Path    string
		Data    []byte
		Version int32
	}
	// SetACLTxn is the body of setACL.
	SetACLTxn struct {
		Path    string
		ACL     []proto.ACL
		Version int32
	}
	// CheckTxn is the body of check, which changes nothing.
	CheckTxn struct {
		Path    string
		Version int32
	}
	// CreateSessionTxn is the body of createSession. The timeout is in milliseconds. Only
	// zkgo tells another zkgo the password, 16 bytes; ZooKeeper's follows from the id.
	CreateSessionTxn struct {
		Timeout  int32
		Password []byte // nil: ZooKeeper's
	}
	// CloseSessionTxn is the body of closeSession. ZooKeeper before 3.6 writes no
	// paths.
	CloseSessionTxn struct{ Paths []string }
	// ErrorTxn is the body of a failed request. In a multi, the code is Ok for an operation
	// before the one that failed, and RuntimeInconsistency for one after it.
	ErrorTxn struct{ Code proto.Code }
	// MultiTxn is the body of multi: operations without their own headers.
	MultiTxn struct{ Ops []MultiOp }
	// MultiOp is one operation of a multi.
	MultiOp struct {
		Type proto.Op
		Body any
	}
)

// txnDigestSize is the size of a digest after a body.
const txnDigestSize = 4 + 8

// Decode decodes a transaction from a record of a log or from a leader's packet. The result shares
// no memory with payload.
func Decode(payload []byte) (*Txn, error) {
	d := proto.NewReader(payload)
	tx := &Txn{Header: Header{Session: d.Long(), Cxid: d.Int(), Zxid: d.Long(), Time: d.Long(), Type: proto.Op(d.Int())}}
	if d.Err() != nil {
		return nil, fmt.Errorf("header: %w", d.Err())
	}
	if tx.Type == proto.OpCloseSession {
		tx.Body = decodeCloseSession(&d)
	} else {
		body, err := decodeBody(tx.Type, &d, txnDigestSize)
		if err != nil {
			return nil, fmt.Errorf("transaction %#x of type %d: %w", uint64(tx.Zxid), tx.Type, err)
		}
		tx.Body = body
	}
	if d.Len() == txnDigestSize {
		tx.Digest = &Digest{Zxid: tx.Zxid, Version: d.Int(), Value: uint64(d.Long())}
	}
	if d.Err() == nil && d.Len() > 0 {
		d.Fail(fmt.Errorf("%d bytes too many", d.Len()))
	}
	if d.Err() != nil {
		return nil, fmt.Errorf("transaction %#x of type %d: %w", uint64(tx.Zxid), tx.Type, d.Err())
	}
	return tx, nil
}

// decodeCloseSession decodes the paths, which are missing before ZooKeeper 3.6 and with
// closeSessionTxn.enabled=false. In that case at most a digest follows.
func decodeCloseSession(d *proto.Reader) *CloseSessionTxn {
	try := *d
	paths := try.Strings()
	if try.Err() == nil && (try.Len() == 0 || try.Len() == txnDigestSize) && d.Len() > 0 {
		*d = try
		return &CloseSessionTxn{Paths: paths}
	}
	return new(CloseSessionTxn)
}

// decodeBody decodes the body of a transaction of type op. tail is the size of the
// data that may follow.
func decodeBody(op proto.Op, d *proto.Reader, tail int) (any, error) {
	var body any
	switch op {
	case proto.OpCreate, proto.OpCreate2:
		c := &CreateTxn{Path: d.String(), Data: d.Buffer(), ACL: d.ACLs(), Ephemeral: d.Bool(), ParentCversion: -1}
		if d.Len() != 0 && (d.Len() != tail || op == proto.OpCreate2) {
			c.ParentCversion = d.Int()
		}
		body = c
	case proto.OpCreateContainer:
		body = &CreateTxn{Path: d.String(), Data: d.Buffer(), ACL: d.ACLs(), ParentCversion: d.Int()}
	case proto.OpCreateTTL:
		body = &CreateTxn{Path: d.String(), Data: d.Buffer(), ACL: d.ACLs(), ParentCversion: d.Int(), TTL: d.Long()}
	case proto.OpDelete, proto.OpDeleteContainer:
		body = &DeleteTxn{Path: d.String()}
	case proto.OpSetData, proto.OpReconfig:
		body = &SetDataTxn{Path: d.String(), Data: d.Buffer(), Version: d.Int()}
	case proto.OpSetACL:
		body = &SetACLTxn{Path: d.String(), ACL: d.ACLs(), Version: d.Int()}
	case proto.OpCheck:
		body = &CheckTxn{Path: d.String(), Version: d.Int()}
	case proto.OpCreateSession:
		c := &CreateSessionTxn{Timeout: d.Int()}
		if d.Len() == proto.PasswordSize || tail > 0 && d.Len() == proto.PasswordSize+tail {
			c.Password = proto.AppendLong(proto.AppendLong(nil, d.Long()), d.Long())
		}
		body = c
	case proto.OpError:
		body = &ErrorTxn{Code: proto.Code(d.Int())}
	case proto.OpMulti:
		return decodeMulti(d)
	default:
		return nil, errors.New("the type is unknown")
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return body, checkPath(body)
}

// checkPath rejects a path that doesn't begin with a slash: ZooKeeper never writes
// one, and later code would misinterpret it.
func checkPath(body any) error {
	path := "/"
	switch b := body.(type) {
	case *CreateTxn:
		path = b.Path
	case *DeleteTxn:
		path = b.Path
	}
	if len(path) == 0 || path[0] != '/' {
		return fmt.Errorf("path %q", path)
	}
	return nil
}

// decodeMulti decodes the operations of a multi. Each is a type and a buffer.
func decodeMulti(d *proto.Reader) (any, error) {
	m := new(MultiTxn)
	for n := d.Count(8); n > 0 && d.Err() == nil; n-- {
		op, data := proto.Op(d.Int()), d.Buffer()
		if d.Err() != nil {
			break
		}
		if !inMulti(op) {
			return nil, fmt.Errorf("operation %d of a multi has type %d", len(m.Ops)+1, op)
		}
		if op == proto.OpError {
			m.Ops = append(m.Ops, MultiOp{op, failedOp(data)})
			continue
		}
		sub := proto.NewReader(data)
		body, err := decodeBody(op, &sub, 0)
		if err == nil && sub.Len() > 0 {
			err = fmt.Errorf("%d bytes too many", sub.Len())
		}
		if err != nil {
			return nil, fmt.Errorf("operation %d of a multi, of type %d: %w", len(m.Ops)+1, op, err)
		}
		m.Ops = append(m.Ops, MultiOp{op, body})
	}
	return m, d.Err()
}

// failedOp decodes an operation of a failed multi. While a leader executes it, it turns the
// operations before the one that failed into errors but leaves their bodies. Which of the two
// gets into the log is a race in ZooKeeper. Only the body of an error has the size of a code.
func failedOp(body []byte) *ErrorTxn {
	if len(body) != 4 {
		return new(ErrorTxn)
	}
	d := proto.NewReader(body)
	return &ErrorTxn{Code: proto.Code(d.Int())}
}

// inMulti reports whether an operation can be part of a multi.
func inMulti(op proto.Op) bool {
	return op.InMulti() && op.Kind() != proto.Read || op == proto.OpDeleteContainer || op == proto.OpError
}

// Paths returns the paths of the znodes that the transaction names.
func (tx *Txn) Paths() []string { return pathsOf(tx.Body) }

// Describe names the operation and the paths of a transaction.
func (tx *Txn) Describe() string {
	paths := tx.Paths()
	const most = 8
	if len(paths) > most {
		paths = append(paths[:most:most], fmt.Sprintf("and %d more", len(paths)-most))
	}
	return strings.TrimSpace(tx.Type.String() + " " + strings.Join(paths, ", "))
}

func pathsOf(body any) (paths []string) {
	switch b := body.(type) {
	case *CreateTxn:
		return []string{b.Path}
	case *DeleteTxn:
		return []string{b.Path}
	case *SetDataTxn:
		return []string{b.Path}
	case *SetACLTxn:
		return []string{b.Path}
	case *CheckTxn:
		return []string{b.Path}
	case *CloseSessionTxn:
		return b.Paths
	case *MultiTxn:
		for i := range b.Ops {
			paths = append(paths, pathsOf(b.Ops[i].Body)...)
		}
	}
	return paths
}
