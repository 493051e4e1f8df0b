package proto

import "strconv"

// Kind is how a server handles an operation.
type Kind uint8

// The kinds of operation. ZooKeeper's own dispatcher accepts the first kind from clients
// too, with harmful effects, so we refuse it.
const (
	Unknown Kind = iota // not for clients: refused with Unimplemented
	Read                // answered from the local tree
	Write               // a transaction on the tree, through the log
	Session             // starts, keeps or ends the client's session
	Local               // concerns the connection or the whole server
)

// traits are the yes-or-no columns of the table.
type traits uint8

const (
	hasPath  traits = 1 << iota // the request starts with the path of a znode
	onParent                    // the permission is needed on the znode's parent
	growing                     // may make the tree larger
	inMulti                     // allowed inside a multi or a multiRead
	slow                        // may be slow, regardless of the length of its reply
)

// operation is a row of the table.
type operation struct {
	name  string // ZooKeeper's name, for logs, errors and four-letter words
	four  string // name in the output of the command cons
	kind  Kind
	fresh func(old Record) Record // empties the request's record, or returns a new one; nil: there is no body
	perms Perms                   // one of these permissions is needed
	is    traits
	basic Op // the operation that this one is a variant of; 0: none
}

// lowest is the operation with the lowest number.
const lowest = OpCloseSession

// table describes every operation, indexed by its number minus lowest. The rows follow
// ZooKeeper's ZooDefs.OpCode, zookeeper.jute, Request.op2String and the permission checks
// of PrepRequestProcessor and FinalRequestProcessor.
var table = [...]operation{
	OpCloseSession - lowest:         {"closeSession", "CLOS", Session, nil, 0, 0, 0},
	OpCreateSession - lowest:        {"createSession", "SESS", Unknown, nil, 0, 0, 0}, // the handshake, and between servers
	OpError - lowest:                {"error", "ERRO", Unknown, nil, 0, 0, 0},
	OpNotification - lowest:         {"notification", "NOTI", Unknown, nil, 0, 0, 0},
	OpCreate - lowest:               {"create", "CREA", Write, fresh[CreateRequest], PermCreate, hasPath | onParent | growing | inMulti, 0},
	OpDelete - lowest:               {"delete", "DELE", Write, fresh[DeleteRequest], PermDelete, hasPath | onParent | inMulti, 0},
	OpExists - lowest:               {"exists", "EXIS", Read, fresh[ExistsRequest], PermRead, hasPath, 0},
	OpGetData - lowest:              {"getData", "GETD", Read, fresh[GetDataRequest], PermRead, hasPath | inMulti, 0},
	OpSetData - lowest:              {"setData", "SETD", Write, fresh[SetDataRequest], PermWrite, hasPath | growing | inMulti, 0},
	OpGetACL - lowest:               {"getACL", "GETA", Read, fresh[GetACLRequest], PermRead | PermAdmin, hasPath, 0},
	OpSetACL - lowest:               {"setACL", "SETA", Write, fresh[SetACLRequest], PermAdmin, hasPath | growing, 0},
	OpGetChildren - lowest:          {"getChildren", "GETC", Read, fresh[GetChildrenRequest], PermRead, hasPath | inMulti, 0},
	OpSync - lowest:                 {"sync", "SYNC", Local, fresh[SyncRequest], 0, hasPath, 0},
	OpPing - lowest:                 {"ping", "PING", Session, nil, 0, 0, 0},
	OpGetChildren2 - lowest:         {"getChildren2", "GETC", Read, fresh[GetChildrenRequest], PermRead, hasPath, OpGetChildren},
	OpCheck - lowest:                {"check", "CHEC", Unknown, fresh[CheckVersionRequest], PermRead, hasPath | inMulti, 0}, // only there
	OpMulti - lowest:                {"multi", "MULT", Write, fresh[MultiRequest], 0, 0, 0},
	OpCreate2 - lowest:              {"create2", "CREA", Write, fresh[CreateRequest], PermCreate, hasPath | onParent | growing | inMulti, OpCreate},
	OpReconfig - lowest:             {"reconfig", "RECO", Write, fresh[ReconfigRequest], PermWrite, 0, 0},
	OpCheckWatches - lowest:         {"checkWatches", "CHKW", Local, fresh[CheckWatchesRequest], 0, hasPath, 0},
	OpRemoveWatches - lowest:        {"removeWatches", "REMW", Local, fresh[CheckWatchesRequest], 0, hasPath, 0},
	OpCreateContainer - lowest:      {"createContainer", "CREA", Write, fresh[CreateRequest], PermCreate, hasPath | onParent | growing | inMulti, OpCreate},
	OpDeleteContainer - lowest:      {"deleteContainer", "DELC", Unknown, nil, 0, 0, 0}, // between servers
	OpCreateTTL - lowest:            {"createTTL", "CREA", Write, fresh[CreateTTLRequest], PermCreate, hasPath | onParent | growing | inMulti, OpCreate},
	OpMultiRead - lowest:            {"multiRead", "MLTR", Read, fresh[MultiRequest], 0, slow, 0},
	OpAuth - lowest:                 {"auth", "AUTH", Session, fresh[AuthPacket], 0, 0, 0},
	OpSetWatches - lowest:           {"setWatches", "SETW", Session, fresh[SetWatches], 0, 0, 0},
	OpSASL - lowest:                 {"sasl", "SASL", Session, fresh[SASLRequest], 0, 0, 0},
	OpGetEphemerals - lowest:        {"getEphemerals", "GETE", Read, fresh[GetEphemeralsRequest], 0, hasPath | slow, 0},
	OpGetAllChildrenNumber - lowest: {"getAllChildrenNumber", "GACN", Read, fresh[GetAllChildrenNumberRequest], PermRead, hasPath | slow, 0},
	OpSetWatches2 - lowest:          {"setWatches2", "STW2", Session, fresh[SetWatches2], 0, 0, OpSetWatches},
	OpAddWatch - lowest:             {"addWatch", "ADDW", Local, fresh[AddWatchRequest], 0, hasPath, 0},
	OpWhoAmI - lowest:               {"whoAmI", "WHOA", Local, nil, 0, 0, 0},
}

// fresh empties a record, or returns a new one if old is nil.
func fresh[T any, P interface {
	*T
	Record
}](old Record) Record {
	if old == nil {
		return P(new(T))
	}
	*old.(P) = *new(T)
	return old
}

// unknown is the row of a number that isn't an operation.
var unknown = operation{four: "UNKN"}

// row returns the row of o.
func (o Op) row() *operation {
	if i := int(o - lowest); i >= 0 && i < len(table) && table[i].name != "" {
		return &table[i]
	}
	return &unknown
}

// Ops returns all operations, in the order of their numbers.
func Ops() []Op {
	var all []Op
	for i := range table {
		if table[i].name != "" {
			all = append(all, lowest+Op(i))
		}
	}
	return all
}

// String returns the operation's name as zookeeper.jute spells it.
func (o Op) String() string {
	if name := o.row().name; name != "" {
		return name
	}
	return "unknown " + strconv.Itoa(int(o))
}

// Abbrev returns the four letters that the cons command prints for o.
func (o Op) Abbrev() string { return o.row().four }

// Kind returns how a server handles o when a client sends it.
func (o Op) Kind() Kind { return o.row().kind }

// Transaction reports whether o becomes a transaction when a client sends it: it is a
// write, or ends the session with its ephemeral znodes.
func (o Op) Transaction() bool { return o.Kind() == Write || o == OpCloseSession }

// Perms returns the permissions that suffice, each alone, on the znode that Guard
// names.
func (o Op) Perms() Perms { return o.row().perms }

// Guard returns the path of the znode with the ACL that decides whether a request for
// path is allowed: path itself or, for a create or delete, its parent.
func (o Op) Guard(path string) string {
	if o.row().is&onParent != 0 {
		return Parent(path)
	}
	return path
}

// HasPath reports whether the request starts with a path.
func (o Op) HasPath() bool { return o.row().is&hasPath != 0 }

// Grows reports whether o may make the tree larger. For a multi, ask its operations.
func (o Op) Grows() bool { return o.row().is&growing != 0 }

// InMulti reports whether o is allowed inside a multi or a multiRead.
func (o Op) InMulti() bool { return o.row().is&inMulti != 0 }

// Slow reports whether the answer to o may need a long time, regardless of the length of
// its reply.
func (o Op) Slow() bool { return o.row().is&slow != 0 }

// Basic returns the operation that o is a variant of, e.g. OpCreate for OpCreateTTL, or o
// itself.
func (o Op) Basic() Op {
	if basic := o.row().basic; basic != 0 {
		return basic
	}
	return o
}
