package proto

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// The operations: number, name, kind, the four letters of cons. The table has exactly the
// operations that ZooKeeper 3.9 defines.
func TestOps(t *testing.T) {
	t.Parallel()
	all := Ops()
	for _, c := range []struct {
		op   Op
		name string
		kind Kind
		four string
	}{
		{0, "notification", Unknown, "NOTI"}, {1, "create", Write, "CREA"}, {2, "delete", Write, "DELE"}, {3, "exists", Read, "EXIS"},
		{4, "getData", Read, "GETD"}, {5, "setData", Write, "SETD"}, {6, "getACL", Read, "GETA"}, {7, "setACL", Write, "SETA"},
		{8, "getChildren", Read, "GETC"}, {9, "sync", Local, "SYNC"}, {10, "unknown 10", Unknown, "UNKN"}, {11, "ping", Session, "PING"},
		{12, "getChildren2", Read, "GETC"}, {13, "check", Unknown, "CHEC"}, {14, "multi", Write, "MULT"}, {15, "create2", Write, "CREA"},
		{16, "reconfig", Write, "RECO"}, {17, "checkWatches", Local, "CHKW"}, {18, "removeWatches", Local, "REMW"},
		{19, "createContainer", Write, "CREA"}, {20, "deleteContainer", Unknown, "DELC"}, {21, "createTTL", Write, "CREA"},
		{22, "multiRead", Read, "MLTR"}, {100, "auth", Session, "AUTH"}, {101, "setWatches", Session, "SETW"}, {102, "sasl", Session, "SASL"},
		{103, "getEphemerals", Read, "GETE"}, {104, "getAllChildrenNumber", Read, "GACN"}, {105, "setWatches2", Session, "STW2"},
		{106, "addWatch", Local, "ADDW"}, {107, "whoAmI", Local, "WHOA"}, {-10, "createSession", Unknown, "SESS"},
		{-11, "closeSession", Session, "CLOS"}, {-1, "error", Unknown, "ERRO"}, {999, "unknown 999", Unknown, "UNKN"},
	} {
		if c.op.String() != c.name || c.op.Kind() != c.kind || c.op.Abbrev() != c.four {
			t.Errorf("%d: %q %d %q instead of %q %d %q", int32(c.op), c.op, c.op.Kind(), c.op.Abbrev(), c.name, c.kind, c.four)
		}
		if known := slices.Contains(all, c.op); known == strings.HasPrefix(c.name, "unknown") {
			t.Errorf("%v: in the table: %v", c.op, known)
		}
		all = slices.DeleteFunc(all, func(op Op) bool { return op == c.op })
	}
	if len(all) > 0 {
		t.Errorf("ZooKeeper has no %v", all)
	}
}

// Each row should agree with its record: the path comes first, every operation that a multi
// may contain has a record, and every operation that needs a permission, except reconfig,
// is for one znode.
func TestRows(t *testing.T) {
	t.Parallel()
	for _, op := range Ops() {
		req := new(Requests).record(op)
		if req == nil {
			if op.HasPath() || op.InMulti() || op.Perms() != 0 || op.Grows() {
				t.Errorf("%v has no record", op)
			}
			continue
		}
		if op.HasPath() {
			reflect.ValueOf(req).Elem().Field(0).SetString("/a/b")
			path, ok := PathOf(req)
			if LeadingPath(req.Append(nil)) != "/a/b" || ok != (op != OpGetEphemerals) || ok && path != "/a/b" {
				t.Errorf("%v: path %q", op, path)
			}
		} else if path, ok := PathOf(req); ok || op.InMulti() || op.Perms() != 0 && op != OpReconfig {
			t.Errorf("%v: no path in the table, %q in the record", op, path)
		}
		if creates := strings.HasPrefix(op.String(), "create"); creates != (op.Perms() == PermCreate) {
			t.Errorf("%v needs %b", op, op.Perms())
		}
		if want := map[bool]string{true: "/a", false: "/a/b"}[op.Perms()&(PermCreate|PermDelete) != 0]; op.Guard("/a/b") != want {
			t.Errorf("%v is decided at %s", op, op.Guard("/a/b"))
		}
		if op.Grows() && op.Kind() != Write {
			t.Errorf("%v grows the tree", op)
		}
	}
}

// A variant of an operation is handled like it, and is no variant of a variant. Only reads
// are slow: a write waits for the log anyway.
func TestVariants(t *testing.T) {
	t.Parallel()
	var variants, slow []Op
	for _, op := range Ops() {
		basic := op.Basic()
		if basic.Basic() != basic || basic.Kind() != op.Kind() || basic.Perms() != op.Perms() || basic.Guard("/a/b") != op.Guard("/a/b") {
			t.Errorf("%v is no variant of %v", op, basic)
		}
		if basic != op {
			variants = append(variants, op)
		}
		if op.Slow() {
			slow = append(slow, op)
		}
	}
	if want := []Op{OpGetChildren2, OpCreate2, OpCreateContainer, OpCreateTTL, OpSetWatches2}; !slices.Equal(variants, want) {
		t.Errorf("the variants are %v, want %v", variants, want)
	}
	if want := []Op{OpMultiRead, OpGetEphemerals, OpGetAllChildrenNumber}; !slices.Equal(slow, want) {
		t.Errorf("slow are %v, want %v", slow, want)
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	for code, name := range map[Code]string{
		0: "Ok", -1: "SystemError", -2: "RuntimeInconsistency", -3: "DataInconsistency", -4: "ConnectionLoss", -5: "MarshallingError",
		-6: "Unimplemented", -7: "OperationTimeout", -8: "BadArguments", -12: "UnknownSession", -13: "NewConfigNoQuorum", -14: "ReconfigInProgress",
		-100: "APIError", -101: "NoNode", -102: "NoAuth", -103: "BadVersion", -108: "NoChildrenForEphemerals", -110: "NodeExists", -111: "NotEmpty",
		-112: "SessionExpired", -113: "InvalidCallback", -114: "InvalidACL", -115: "AuthFailed", -118: "SessionMoved", -119: "NotReadOnly",
		-120: "EphemeralOnLocalSession", -121: "NoWatcher", -122: "RequestTimeout", -123: "ReconfigDisabled", -124: "SessionClosedRequireSaslAuth",
		-125: "QuotaExceeded", -127: "ThrottledOp", -9: "Code -9",
	} {
		if code.String() != name || !strings.HasPrefix(code.Error(), name+" (") {
			t.Errorf("%d is %q, %q instead of %q", int32(code), code, code.Error(), name)
		}
		if (code.Err() == nil) != (code == 0) {
			t.Errorf("Err of %v", code)
		}
	}
	if ErrNoNode.Error() != "NoNode (-101)" || ErrNoNode.Err() != error(ErrNoNode) {
		t.Error(ErrNoNode.Error())
	}
}

func TestCreateModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[CreateMode]string{-1: "", 0: "v", 1: "ve", 2: "vs", 3: "ves", 4: "v", 5: "vt", 6: "vst", 7: ""} {
		got := ""
		for _, p := range []struct {
			is   bool
			mark string
		}{{mode.Valid(), "v"}, {mode.Ephemeral(), "e"}, {mode.Sequential(), "s"}, {mode.TTL(), "t"}} {
			if p.is {
				got += p.mark
			}
		}
		if got != want {
			t.Errorf("mode %d: %q instead of %q", mode, got, want)
		}
	}
}

// The expected results were checked against ZooKeeper 3.9.5.
func TestValidatePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"": "is empty", NullString: "is empty", "a": "does not start", "a/b": "does not start", "/": "", "//": "ends with", "/a/": "ends with",
		"/a//b": `component ""`, "/.": `component "."`, "/..": `component ".."`, "/a/../b": "component", "/./a": "component",
		"/...": "", "/.b": "", "/b.": "", "/..b": "", "/a b": "", "/ä/ö": "", "/zookeeper": "",
		"/\x00": "U+0000", "/a\x01": "U+0001", "/\x1f": "U+001F", "/ ": "", "/~": "", "/\x7f": "U+007F", "/\u0080": "U+0080", "/\u009f": "U+009F",
		"/\u00a0": "", "/\ud7ff": "", "/\ue000": "U+E000", "/\uf8ff": "U+F8FF", "/\uf900": "", "/\uffef": "", "/\ufff0": "U+FFF0", "/\ufffd": "U+FFFD",
		"/\uffff": "U+FFFF", "/😀": "U+1F600", "/ok/\xff\xfe": "U+FFFD", "/é\x01": "U+0001", "/é/..": "component",
	} {
		err := ValidatePath(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v instead of %q", path, err, want)
		}
	}
}

func TestParentAndBase(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"/": {"", ""}, "/a": {"/", "a"}, "/a/b": {"/a", "b"}, "/a/": {"/a", ""}, "": {"", ""}, "a": {"", "a"}, "/a//b": {"/a/", "b"},
	} {
		if Parent(path) != want[0] || Base(path) != want[1] {
			t.Errorf("%q: %q and %q", path, Parent(path), Base(path))
		}
	}
}

// javaValid is a transcription of ZooKeeper's PathUtils.validatePath: one pass over the
// UTF-16 units that remembers the previous unit.
func javaValid(path string) bool {
	units := utf16.Encode([]rune(path))
	if len(units) == 0 || units[0] != '/' {
		return false
	}
	if len(units) == 1 {
		return true
	}
	if units[len(units)-1] == '/' {
		return false
	}
	ends := func(i int) bool { return i == len(units) || units[i] == '/' }
	for i := 1; i < len(units); i++ {
		switch c, last := units[i], units[i-1]; {
		case c == '/' && last == '/':
			return false
		case c == '.' && last == '.' && units[i-2] == '/' && ends(i+1):
			return false
		case c == '.' && last == '/' && ends(i+1):
			return false
		case c <= 0x1f, c >= 0x7f && c <= 0x9f, c >= 0xd800 && c <= 0xf8ff, c >= 0xfff0:
			return false
		}
	}
	return true
}
