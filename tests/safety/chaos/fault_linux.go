package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// fault is one thing that can go wrong. run injects it, waits until it has had
// its effect, removes it and waits until the ensemble is healthy. run returns an
// error if a promised effect was not seen.
type fault struct {
	name string
	// servers is the smallest ensemble that the fault needs.
	servers int
	run     func(s *scene) error
}

// scene is the environment of a fault.
type scene struct {
	*Cluster
	rnd  *rand.Rand
	done <-chan struct{} // closed when the run is aborted
}

// any returns a random member.
func (s *scene) any() *Member { return s.Members[s.rnd.IntN(len(s.Members))] }

// hold waits for a random duration between from and to while a fault lasts.
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

// healed removes all network faults and waits until the ensemble is healthy.
func (s *scene) healed() error {
	s.net.heal()
	return s.AwaitHealthy()
}

// names formats members for the trace.
func names(ms []*Member) string {
	var b []string
	for _, m := range ms {
		b = append(b, fmt.Sprint(m.ID))
	}
	return "{" + strings.Join(b, " ") + "}"
}

// faults returns all faults for a kind of network, in a fixed order.
func faults(network string) []fault {
	all := slices.Concat(processFaults(), networkFaults(), memberFaults(), diskFaults())
	if network == Namespaces {
		all = append(all, grayFaults()...)
	}
	return all
}
