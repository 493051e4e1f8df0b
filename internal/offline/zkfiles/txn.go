package zkfiles

import (
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/proto"
)

// Header is what stands before every transaction in a log.
type Header struct {
	Session int64 // who asked for it
	Cxid    int32 // the number that the client gave the request
	Zxid    int64
	Time    int64 // of the leader's clock, milliseconds since the Unix epoch
	Type    proto.Op
}

// Txn is a transaction of ZooKeeper's log. Its Body is one of the types below.
type Txn struct {
	Header
	Body   any
	Digest *Digest // of the tree behind it; nil before 3.6 and where nothing changed
	Offset int64   // of its record in the file
}

// The bodies of transactions. Numbers are what they are behind it.
type (
	// CreateTxn is that of create, create2, createContainer and createTTL.
	CreateTxn struct {
		Path           string
		Data           []byte
		ACL            []proto.ACL
		Ephemeral      bool
		ParentCversion int32 // −1: not written, as before 3.4
		TTL            int64 // milliseconds, of createTTL
	}
	// DeleteTxn is that of delete and deleteContainer.
	DeleteTxn struct{ Path string }
	// SetDataTxn is that of setData and reconfig.
	SetDataTxn struct {
		Path    string
		Data    []byte
		Version int32
	}
	// SetACLTxn is that of setACL.
	SetACLTxn struct {
		Path    string
		ACL     []proto.ACL
		Version int32
	}
	// CheckTxn is that of check, which changes nothing.
	CheckTxn struct {
		Path    string
		Version int32
	}
	// CreateSessionTxn is that of createSession. The timeout is in milliseconds.
	CreateSessionTxn struct{ Timeout int32 }
	// CloseSessionTxn is that of closeSession. ZooKeeper before 3.6 names no paths.
	CloseSessionTxn struct{ Paths []string }
	// ErrorTxn is that of a request that was refused. In a multi it has no code.
	ErrorTxn struct{ Code proto.Code }
	// MultiTxn is that of multi: operations without headers of their own.
	MultiTxn struct{ Ops []MultiOp }
	// MultiOp is one operation of a multi.
	MultiOp struct {
		Type proto.Op
		Body any
	}
)

// txnDigestSize is the length of a digest behind a body.
const txnDigestSize = 4 + 8

// decodeTxn reads the payload of a record.
func decodeTxn(payload []byte) (*Txn, error) {
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

// decodeCloseSession reads what ZooKeeper before 3.6, and one with
// closeSessionTxn.enabled=false, leaves away: then a digest at the most stands
// there.
func decodeCloseSession(d *proto.Reader) *CloseSessionTxn {
	try := *d
	paths := try.Strings()
	if try.Err() == nil && (try.Len() == 0 || try.Len() == txnDigestSize) && d.Len() > 0 {
		*d = try
		return &CloseSessionTxn{Paths: paths}
	}
	return new(CloseSessionTxn)
}

// decodeBody reads the body of a transaction of type op. tail is the length of
// what may stand behind it.
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
		body = &CreateSessionTxn{Timeout: d.Int()}
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

// checkPath refuses what no ZooKeeper writes and what would be misunderstood
// later: a path that does not begin with a slash.
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

// decodeMulti reads the operations of a multi: each is a type and a buffer.
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
			// A leader turns the operations of a multi that failed into errors, and
			// leaves their bodies: which of the two is in the log is a race there.
			m.Ops = append(m.Ops, MultiOp{op, new(ErrorTxn)})
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

// inMulti says whether an operation can be part of a multi.
func inMulti(op proto.Op) bool {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL,
		proto.OpDelete, proto.OpDeleteContainer, proto.OpSetData, proto.OpCheck, proto.OpError:
		return true
	}
	return false
}
