package tree

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/acl"
)

// Policy is the set of the leader's switches that affect a transaction. We put them into
// the log, because a server's own configuration must not change the effect of a
// transaction.
type Policy uint32

// The switches.
const (
	SkipACL         Policy = 1 << iota // permissions aren't checked
	ExtendedTypes                      // znodes with a time to live may be created
	EnforceQuota                       // hard limits of quotas are enforced
	Emulate353TTL                      // an import reads owners as 3.5.3 wrote them
	SchemeX509                         // ACLs may name x509 identities
	SchemeSASL                         // ACLs may name sasl identities
	ReconfigEnabled                    // reconfig is allowed
	MultiAddress                       // a reconfig may give a server several addresses
	LoneVoter                          // a reconfig may leave a single voter (standaloneEnabled=false)
	SchemeOthers                       // ACLs may name identities of schemes that are not ZooKeeper's
	Full                               // the leader's memory is full: we refuse to grow the tree
)

// Txn is the input of a transaction besides its request.
type Txn struct {
	Zxid    int64
	Time    int64 // milliseconds since the Unix epoch on the leader's clock
	Session int64 // 0 for the server's own transactions
	IDs     []proto.ID
	// Prints are the fingerprints of further identities, sorted. We use them for permission
	// checks, but don't expand the scheme auth in a new ACL to them.
	Prints []Fingerprint
	Policy Policy
	// Record receives the changes of the transaction, for Replay; nil: no caller needs them. It gets
	// nothing from a transaction that fails.
	Record *[]Change
}

// Event is a change of a znode that can fire watches. A create causes NodeCreated
// for the znode and NodeChildrenChanged for its parent. A delete causes NodeDeleted
// and NodeChildrenChanged, and new data causes NodeDataChanged.
type Event struct {
	Type proto.EventType
	Path string
	Zxid int64
	ACL  []proto.ACL // a watcher must have READ under this list, see Allows; immutable

	access *acl.Entry // that has ACL
}

// Result is the outcome of one transaction, or of one operation of a multi. The Tree
// reuses it for the next transaction, so callers should copy the fields that they keep.
type Result struct {
	Op     proto.Op   // type of the entry in a multi's reply; top level: the operation
	Code   proto.Code // Ok for a multi with failed operations; Multi has their codes
	Path   string     // of the created znode
	Stat   proto.Stat // after create2 and its like, setData, setACL and SetConfig
	Data   []byte     // of the config znode after SetConfig; immutable
	Multi  []Result   // one per operation, unless Code says that the multi as a whole was refused
	Events []Event    // in the order in which they must fire; empty in Multi's entries
}

// AppendBody appends the body of the reply: nothing if the transaction was refused.
func (r *Result) AppendBody(b []byte) []byte {
	if r.Code != proto.Ok {
		return b
	}
	switch r.Op {
	case proto.OpCreate:
		return (&proto.CreateResponse{Path: r.Path}).Append(b)
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return (&proto.Create2Response{Path: r.Path, Stat: r.Stat}).Append(b)
	case proto.OpSetData, proto.OpSetACL:
		return (&proto.SetDataResponse{Stat: r.Stat}).Append(b)
	case proto.OpReconfig:
		return (&proto.GetDataResponse{Data: r.Data, Stat: r.Stat}).Append(b)
	case proto.OpMulti:
		for i := range r.Multi {
			b = r.Multi[i].appendEntry(b)
		}
		return proto.AppendMultiEnd(b)
	}
	return b
}

// appendEntry appends r as one entry of a multi's reply.
func (r *Result) appendEntry(b []byte) []byte {
	if r.Op == proto.OpError {
		return proto.AppendMultiError(b, r.Code)
	}
	h := proto.MultiHeader{Op: r.Op}
	return r.AppendBody(h.Append(b))
}

// reset makes r the result of a new transaction and keeps its slices.
func (r *Result) reset(op proto.Op) {
	clear(r.Events) // we don't keep old paths alive
	*r = Result{Op: op, Multi: r.Multi[:0], Events: r.Events[:0]}
}
