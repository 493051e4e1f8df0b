package conformance

// kind is the wire form of a request field.
type kind int

const (
	kindString kind = iota // ustring or buffer: the same bytes on the wire
	kindInt
	kindLong
	kindByte
	kindACL
	kindStrings
)

// field is one field of a request, in wire order. A field that a script omits has
// the default.
type field struct {
	name  string
	kind  kind
	def   string
	named bool // given by name only, never by position
}

// shape says how to decode the body of a successful reply.
type shape int

const (
	shapeNone shape = iota
	shapePath
	shapePathStat
	shapeStat
	shapeDataStat
	shapeACLStat
	shapeNames
	shapeNamesStat
	shapeInt
	shapeData
	shapeIDs
	shapeMulti
	shapeHandshake
)

// op is an operation that a script can name.
type op struct {
	name   string
	code   int32
	fields []field
	reply  shape
}

var (
	pathField = field{name: "path", kind: kindString, def: ""}
	version   = field{name: "version", kind: kindInt, def: "-1"}
	watchFlag = field{name: "watch", kind: kindByte, def: "0"}
	aclField  = field{name: "acl", kind: kindACL, def: "open"}
	dataField = field{name: "data", kind: kindString, def: `""`}
)

func createFields(flags string, more ...field) []field {
	return append([]field{pathField, dataField, aclField, {name: "flags", kind: kindInt, def: flags}}, more...)
}

func watchFields(more ...string) []field {
	fields := []field{{name: "rel", kind: kindLong, def: "0"}}
	for _, name := range append([]string{"data", "exist", "child"}, more...) {
		fields = append(fields, field{name: name, kind: kindStrings, def: "[]"})
	}
	return fields
}

// ops is the table of operations. It is read-only.
var ops = []op{
	{"create", 1, createFields("0"), shapePath},
	{"delete", 2, []field{pathField, version}, shapeNone},
	{"exists", 3, []field{pathField, watchFlag}, shapeStat},
	{"getData", 4, []field{pathField, watchFlag}, shapeDataStat},
	{"setData", 5, []field{pathField, dataField, version}, shapeStat},
	{"getACL", 6, []field{pathField}, shapeACLStat},
	{"setACL", 7, []field{pathField, aclField, version}, shapeStat},
	{"getChildren", 8, []field{pathField, watchFlag}, shapeNames},
	{"sync", 9, []field{pathField}, shapePath},
	{"ping", 11, nil, shapeNone},
	{"getChildren2", 12, []field{pathField, watchFlag}, shapeNamesStat},
	{"check", 13, []field{pathField, version}, shapeNone},
	{"multi", 14, nil, shapeMulti},
	{"create2", 15, createFields("0"), shapePathStat},
	{"reconfig", 16, []field{{name: "joining", kind: kindString, def: "null"}, {name: "leaving", kind: kindString, def: "null"},
		{name: "members", kind: kindString, def: "null"}, {name: "config", kind: kindLong, def: "-1"}}, shapeDataStat},
	{"checkWatches", 17, []field{pathField, {name: "type", kind: kindInt, def: "3"}}, shapeNone},
	{"removeWatches", 18, []field{pathField, {name: "type", kind: kindInt, def: "3"}}, shapeNone},
	{"createContainer", 19, createFields("4"), shapePathStat},
	{"deleteContainer", 20, []field{pathField}, shapeNone},
	{"createTTL", 21, createFields("5", field{name: "ttl", kind: kindLong, def: "100000"}), shapePathStat},
	{"multiRead", 22, nil, shapeMulti},
	{"auth", 100, []field{{name: "kind", kind: kindInt, def: "0", named: true}, {name: "scheme", kind: kindString, def: "digest"}, {name: "auth", kind: kindString, def: "null"}}, shapeNone},
	{"setWatches", 101, watchFields(), shapeNone},
	{"sasl", 102, []field{{name: "token", kind: kindString, def: "null"}}, shapeData},
	{"getEphemerals", 103, []field{{name: "prefix", kind: kindString, def: "null"}}, shapeNames},
	{"getAllChildrenNumber", 104, []field{pathField}, shapeInt},
	{"setWatches2", 105, watchFields("persistent", "recursive"), shapeNone},
	{"addWatch", 106, []field{pathField, {name: "mode", kind: kindInt, def: "0"}}, shapeInt},
	{"whoAmI", 107, nil, shapeIDs},
	{"createSession", -10, []field{{name: "timeout", kind: kindInt, def: "30000"}}, shapeHandshake},
	{"closeSession", -11, nil, shapeNone},
	// "op" sends any opcode with a body of raw bytes: op code=999 body=hex:00.
	{"op", 0, []field{{name: "code", kind: kindInt, def: "0"}, {name: "body", kind: kindString, def: ""}}, shapeNone},
}

// replyShape returns the shape of replies to an opcode. "op" and "code=" need it, because
// the server may understand their requests.
func replyShape(code int32) shape {
	for _, o := range ops {
		if o.code == code {
			return o.reply
		}
	}
	return shapeNone
}

func opNamed(name string) (op, bool) {
	for _, o := range ops {
		if o.name == name {
			return o, true
		}
	}
	return op{}, false
}

// These are the codes of operations that need special treatment by the runner.
const (
	codeGetData      = 4
	codeGetChildren  = 8
	codePing         = 11
	codeMulti        = 14
	codeMultiRead    = 22
	codeAuth         = 100
	codeCloseSession = -11
)

// These xids have a special meaning.
const (
	xidEvent = -1
	xidPing  = -2
	xidAuth  = -4
)
