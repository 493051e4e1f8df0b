package lock

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/recipes"
)

// kind tells the znodes in one directory apart.
type kind uint8

const (
	exclusive kind = iota // a mutex, or the writers of a read-write lock
	shared                // readers
	leases                // of a semaphore
	kinds
)

// layout says how znodes are named: mark, then the infix of their kind, then the
// sequence number.
type layout struct {
	mark   func() string // a random one
	mutex  string        // infix of a mutex
	write  string        // of the two kinds of a read-write lock
	read   string
	leases string
}

// Curator's protected znodes are "_c_<uuid>-lock-0000000000".
var curatorLayout = layout{
	mark:  func() string { return "_c_" + recipes.NewUUID() + "-" },
	mutex: "lock-", write: "__WRIT__", read: "__READ__", leases: "lease-",
}

// Kazoo's are "<32 hexadecimal digits>__lock__0000000000".
var kazooLayout = layout{
	mark:  func() string { return strings.ReplaceAll(recipes.NewUUID(), "-", "") },
	mutex: "__lock__", write: "__lock__", read: "__rlock__", leases: "__lock__",
}

// infixes are the names of the kinds that stand in one line.
type infixes [kinds]string

// entry is one place in a line.
type entry struct {
	name string
	kind kind
	seq  int32
	born int64 // the zxid that created it; 0 as long as nobody needs to know
}

// worn reports whether numbers may repeat: from the largest one on, ZooKeeper up
// to 3.5 counts on with negative ones, and later versions, as zkgo does, give the
// largest one again and again.
func (e entry) worn() bool { return e.seq < 0 || e.seq == math.MaxInt32 }

// parse finds a place in a line by its name. Names of another form are none of
// ours.
func (in *infixes) parse(name string) (entry, bool) {
	for k, infix := range in {
		if infix == "" {
			continue
		}
		i := strings.LastIndex(name, infix)
		if i < 0 {
			continue
		}
		// Behind 2³¹−1 the server goes on with negative numbers.
		seq, err := strconv.ParseInt(name[i+len(infix):], 10, 32)
		if err == nil {
			return entry{name: name, kind: kind(k), seq: int32(seq)}, true
		}
	}
	return entry{}, false
}

// number returns the sequence number in a name as it stands there.
func (in *infixes) number(name string, k kind) string {
	return name[strings.LastIndex(name, in[k])+len(in[k]):]
}

// line returns the places among names in their order, provided that the numbers
// of no two are worn.
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

// arrange puts places in the order in which they were taken.
func arrange(list []entry) {
	slices.SortFunc(list, func(a, b entry) int {
		if a.worn() && b.worn() && a.born != b.born {
			return cmp.Compare(a.born, b.born)
		}
		// The difference of two numbers wraps as the numbers do, so the line keeps
		// its order while they go from the largest to the smallest.
		if d := a.seq - b.seq; d != 0 {
			return cmp.Compare(d, 0)
		}
		// A writer who goes on reading has a place of each kind with one number.
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}
