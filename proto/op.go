package proto

import "strconv"

// Op is an operation code of the client protocol.
type Op int32

// The operations of ZooKeeper 3.9.
const (
	OpNotification         Op = 0
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpCreateSession        Op = -10
	OpCloseSession         Op = -11
	OpError                Op = -1
)

// Kind is how a server handles an operation.
type Kind uint8

// The kinds of operation.
const (
	Unknown Kind = iota // refused with Unimplemented
	Read                // answered from the local tree
	Write               // a transaction through the log
	Local               // concerns the connection or session only
)

// opInfo is one row of the operation table: the name that four-letter words and
// logs print, how the server handles the operation, and the four letters that
// cons prints as the last operation.
type opInfo struct {
	name string
	kind Kind
	four string
}

// info returns the row of o.
func (o Op) info() opInfo {
	switch o {
	case OpNotification:
		return opInfo{"notification", Unknown, "NOTI"}
	case OpCreate:
		return opInfo{"create", Write, "CREA"}
	case OpDelete:
		return opInfo{"delete", Write, "DELE"}
	case OpExists:
		return opInfo{"exists", Read, "EXIS"}
	case OpGetData:
		return opInfo{"getData", Read, "GETD"}
	case OpSetData:
		return opInfo{"setData", Write, "SETD"}
	case OpGetACL:
		return opInfo{"getACL", Read, "GETA"}
	case OpSetACL:
		return opInfo{"setACL", Write, "SETA"}
	case OpGetChildren:
		return opInfo{"getChildren", Read, "GETC"}
	case OpSync:
		return opInfo{"sync", Local, "SYNC"}
	case OpPing:
		return opInfo{"ping", Local, "PING"}
	case OpGetChildren2:
		return opInfo{"getChildren2", Read, "GETC"}
	case OpCheck:
		return opInfo{"check", Unknown, "CHEC"}
	case OpMulti:
		return opInfo{"multi", Write, "MULT"}
	case OpCreate2:
		return opInfo{"create2", Write, "CREA"}
	case OpReconfig:
		return opInfo{"reconfig", Write, "RECO"}
	case OpCheckWatches:
		return opInfo{"checkWatches", Local, "CHKW"}
	case OpRemoveWatches:
		return opInfo{"removeWatches", Local, "REMW"}
	case OpCreateContainer:
		return opInfo{"createContainer", Write, "CREA"}
	case OpDeleteContainer:
		return opInfo{"deleteContainer", Unknown, "DELC"}
	case OpCreateTTL:
		return opInfo{"createTTL", Write, "CREA"}
	}
	return o.lateInfo()
}

// lateInfo returns the rows of the operations numbered 22 and up or below zero.
func (o Op) lateInfo() opInfo {
	switch o {
	case OpMultiRead:
		return opInfo{"multiRead", Read, "MLTR"}
	case OpAuth:
		return opInfo{"auth", Local, "AUTH"}
	case OpSetWatches:
		return opInfo{"setWatches", Local, "SETW"}
	case OpSASL:
		return opInfo{"sasl", Local, "SASL"}
	case OpGetEphemerals:
		return opInfo{"getEphemerals", Read, "GETE"}
	case OpGetAllChildrenNumber:
		return opInfo{"getAllChildrenNumber", Read, "GACN"}
	case OpSetWatches2:
		return opInfo{"setWatches2", Local, "STW2"}
	case OpAddWatch:
		return opInfo{"addWatch", Local, "ADDW"}
	case OpWhoAmI:
		return opInfo{"whoAmI", Local, "WHOA"}
	case OpCreateSession:
		return opInfo{"createSession", Unknown, "SESS"}
	case OpCloseSession:
		return opInfo{"closeSession", Write, "CLOS"}
	case OpError:
		return opInfo{"error", Unknown, "ERRO"}
	}
	return opInfo{"unknown " + strconv.Itoa(int(o)), Unknown, "UNKN"}
}

// String returns the operation's name as zookeeper.jute spells it.
func (o Op) String() string { return o.info().name }

// Kind returns how a server handles o when a client sends it.
func (o Op) Kind() Kind { return o.info().kind }

// Abbrev returns the four letters that the cons command prints for o.
func (o Op) Abbrev() string { return o.info().four }
