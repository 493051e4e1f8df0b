package tree

import "github.com/zkgo/zkgo/proto"

// Policy holds the switches of the leader that decide about a transaction. They
// are carried by the log: a server's own configuration must not change what a
// transaction does.
type Policy uint32

// The switches.
const (
	SkipACL         Policy = 1 << iota // no permission is checked
	ExtendedTypes                      // znodes with a time to live may be created
	EnforceQuota                       // hard limits refuse
	Emulate353TTL                      // an import reads owners as 3.5.3 wrote them
	SchemeX509                         // ACLs may name x509 identities
	SchemeSASL                         // ACLs may name sasl identities
	ReconfigEnabled                    // reconfig is allowed
	MultiAddress                       // a reconfig may give a server several addresses
	LoneVoter                          // a reconfig may leave a single voter (standaloneEnabled=false)
	SchemeOthers                       // ACLs may name identities of schemes that are not ZooKeeper's
	Full                               // the leader's memory is full: what makes the tree larger is refused
)

// Txn is what a transaction needs besides its request.
type Txn struct {
	Zxid    int64
	Time    int64 // milliseconds since the Unix epoch on the leader's clock
	Session int64 // 0 for the server's own transactions
	IDs     []proto.ID
	// Prints are the fingerprints of further identities, sorted. An ACL may ask for
	// them, but they are not expanded where an ACL names the scheme auth.
	Prints []Fingerprint
	Policy Policy
}

// Event is something that happened to a znode and that watchers may want to
// know. A create gives NodeCreated of the znode and NodeChildrenChanged of its
// parent, a delete NodeDeleted and NodeChildrenChanged, new data
// NodeDataChanged.
type Event struct {
	Type proto.EventType
	Path string
	Zxid int64
	ACL  []proto.ACL // a watcher must have READ under this list; immutable
}

// Result is the outcome of one transaction, or of one operation of a multi. A
// Tree reuses it for the next transaction.
type Result struct {
	Op     proto.Op   // type of the entry in a multi's reply; top level: the operation
	Code   proto.Code // a multi whose operations failed has Ok here and the codes in Multi
	Path   string     // of the created znode
	Stat   proto.Stat // after create2 and its like, setData, setACL and SetConfig
	Data   []byte     // of the config znode after SetConfig; immutable
	Multi  []Result   // one per operation, unless Code says that the multi as a whole was refused
	Events []Event    // in the order in which they are to be fired; empty in Multi's entries
}

// AppendBody appends what stands behind the reply header: nothing if the
// transaction was refused.
func (r *Result) AppendBody(b []byte) []byte {
	if r.Code != proto.Ok {
		return b
	}
	switch r.Op {
	case proto.OpCreate:
		return proto.AppendString(b, r.Path)
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return r.Stat.Append(proto.AppendString(b, r.Path))
	case proto.OpSetData, proto.OpSetACL:
		return r.Stat.Append(b)
	case proto.OpReconfig:
		return r.Stat.Append(proto.AppendBuffer(b, r.Data))
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
	h := proto.MultiHeader{Op: r.Op}
	if r.Op == proto.OpError {
		h.Err = r.Code
		return proto.AppendInt(h.Append(b), int32(r.Code))
	}
	return r.AppendBody(h.Append(b))
}

// reset makes r the result of a new transaction and keeps its slices.
func (r *Result) reset(op proto.Op) {
	clear(r.Events) // a path that is not reported any more must not stay alive
	*r = Result{Op: op, Multi: r.Multi[:0], Events: r.Events[:0]}
}
