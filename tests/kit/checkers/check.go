package checkers

import (
	"cmp"
	"time"

	"github.com/zkgo/zkgo/tests/kit/history"
)

// checker checks one property.
type checker struct {
	name string
	run  func(x *index, o *Options, r *Result)
}

// all lists the checkers in the order of the verdict.
func all() []checker {
	return []checker{
		{"facts", facts},
		{"realtime", realtime},
		{"registers", registers},
		{"sessions", sessions},
		{"ephemerals", ephemerals},
		{"sequences", sequences},
		{"locks", locks},
		{"watches", watches},
		{"replicas", replicas},
		{"expiry", expiry},
	}
}

// Check runs every checker over h.
func Check(h *history.History, o Options) *Verdict {
	o.Search = cmp.Or(o.Search, 10*time.Second)
	o.Heard = cmp.Or(o.Heard, 1)
	o.Most = cmp.Or(o.Most, 5)
	x := newIndex(h)
	v := &Verdict{}
	for _, c := range all() {
		r := &Result{Checker: c.name, most: o.Most}
		c.run(x, &o, r)
		v.Results = append(v.Results, r)
	}
	return v
}
