package lock

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/recipe"
)

// kind distinguishes the znodes in one directory.
type kind uint8

const (
	exclusive kind = iota // a mutex, or the writers of a read-write lock
	shared                // readers
	leases                // the leases of a semaphore
	kinds
)

// layout defines the names of znodes: mark, then the infix of their kind, then the
// sequence number.
type layout struct {
	mark   func() string // returns a random mark
	mutex  string        // infix of a mutex
	write  string        // infix of a writer; read is the infix of a reader
	read   string
	leases string
}

// Curator's protected znodes are "_c_<uuid>-lock-0000000000".
var curatorLayout = layout{
	mark:  func() string { return "_c_" + recipe.NewUUID() + "-" },
	mutex: "lock-", write: "__WRIT__", read: "__READ__", leases: "lease-",
}

// Kazoo's znodes are "<32 hexadecimal digits>__lock__0000000000".
var kazooLayout = layout{
	mark:  func() string { return strings.ReplaceAll(recipe.NewUUID(), "-", "") },
	mutex: "__lock__", write: "__lock__", read: "__rlock__", leases: "__lock__",
}

// infixes contains the infix of each kind that uses one line, or "".
type infixes [kinds]string

// entry is one place in a line.
type entry struct {
	name string
	kind kind
	seq  int32
	born int64 // zxid that created it, or 0 if it was not read
}

// worn reports whether the server may assign the sequence number more than once. After the
// largest number, ZooKeeper up to 3.5 continues with negative numbers; later versions and
// zkgo assign the largest number again and again.
func (e entry) worn() bool { return e.seq < 0 || e.seq == math.MaxInt32 }

// parse parses the name of a place in a line. It ignores names of another form.
func (in *infixes) parse(name string) (entry, bool) {
	for k, infix := range in {
		if infix == "" {
			continue
		}
		i := strings.LastIndex(name, infix)
		if i < 0 {
			continue
		}
		// After 2³¹−1, a server may continue with negative numbers.
		seq, err := strconv.ParseInt(name[i+len(infix):], 10, 32)
		if err == nil {
			return entry{name: name, kind: kind(k), seq: int32(seq)}, true
		}
	}
	return entry{}, false
}

// number returns the sequence number in a name as a string, unparsed.
func (in *infixes) number(name string, k kind) string {
	return name[strings.LastIndex(name, in[k])+len(in[k]):]
}

// line returns the places among names in their order, provided that at most one of
// their numbers is worn.
func (in *infixes) line(names []string) []entry {
	list := make([]entry, 0, len(names))
	for _, name := range names {
		if e, ok := in.parse(name); ok {
			list = append(list, e)
		}
	}
	arrange(list)
	return list
}

// arrange sorts places in the order of their creation.
func arrange(list []entry) {
	slices.SortFunc(list, func(a, b entry) int {
		if a.worn() && b.worn() && a.born != b.born {
			return cmp.Compare(a.born, b.born)
		}
		// We compare by the difference, which wraps like the numbers do, so the order is
		// right even while they wrap from the largest to the smallest.
		if d := a.seq - b.seq; d != 0 {
			return cmp.Compare(d, 0)
		}
		// A writer that also reads has a place of each kind with the same number.
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}
