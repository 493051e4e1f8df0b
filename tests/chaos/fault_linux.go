package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// fault is one thing that can go wrong. Its run plants it, waits until it has
// had its effect, takes it away again and waits until the ensemble is whole.
// What it returns says that something promised was not seen.
type fault struct {
	name string
	// servers is how many there have to be at least.
	servers int
	run     func(s *scene) error
}

// scene is what a fault works with.
type scene struct {
	*Cluster
	rnd  *rand.Rand
	done <-chan struct{} // the run is given up
}

// any returns a random member.
func (s *scene) any() *Member { return s.Members[s.rnd.IntN(len(s.Members))] }

// hold leaves a fault as it is for a time between from and to.
func (s *scene) hold(from, to time.Duration) {
	d := from
	if to > from {
		d += time.Duration(s.rnd.Int64N(int64(to - from)))
	}
	select {
	case <-time.After(d):
	case <-s.done:
	}
}

func (s *scene) logf(format string, args ...any) { s.trace.Printf("  "+format, args...) }

// replaced waits for a leader of a later epoch.
func (s *scene) replaced(epoch int64) error {
	l, e, err := s.AwaitLeader(epoch)
	if err == nil {
		s.logf("server %d leads epoch %d after it", l.ID, e)
	}
	return err
}

// healed takes away what the network does and waits until all is well.
func (s *scene) healed() error {
	s.net.heal()
	return s.AwaitHealthy()
}

// names lists members for the trace.
func names(ms []*Member) string {
	var b []string
	for _, m := range ms {
		b = append(b, fmt.Sprint(m.ID))
	}
	return "{" + strings.Join(b, " ") + "}"
}

// faults returns everything that can go wrong in a network, in a fixed order.
func faults(network string) []fault {
	all := slices.Concat(processFaults(), networkFaults(), memberFaults(), diskFaults())
	if network == Namespaces {
		all = append(all, grayFaults()...)
	}
	return all
}
