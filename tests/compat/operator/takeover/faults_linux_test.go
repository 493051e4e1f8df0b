package takeover

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// faults are what happens to the servers of a rig, and to the network.
type faults struct {
	*rig
	net    *spaces
	random *rand.Rand
}

// fault is chosen before we inject it, so that injecting it is fast.
type fault struct {
	name   string
	inject func() (repair func())
}

// any is a fault of either side.
func (f *faults) any() fault {
	switch f.random.IntN(8) {
	case 0, 1:
		return f.ours()
	case 2:
		return f.theirs()
	case 3:
		return f.cutOff("old", f.anOld(), len(f.old))
	case 4:
		return f.cut([]string{clients}, f.some("new", f.aNew(), len(f.new)))
	case 5:
		return f.cut([]string{front}, f.some("old", f.anOld(), len(f.old)))
	case 6: // only the leaders are connected
		return f.cut([]string{nameOf("new", f.leads())}, []string{nameOf("old", f.oldLeader().ID)})
	}
	return f.cut(names("new", len(f.new)), f.some("old", f.anOld(), len(f.old)))
}

// at is a fault for a step of a cutover. Half of the faults affect a server or link that the step
// needs.
func (f *faults) at(s step) fault {
	switch {
	case f.random.IntN(2) == 0:
	case s == fencing || s == proving:
		return f.cut([]string{nameOf("new", f.leads())}, []string{nameOf("old", f.oldLeader().ID)})
	case s == opening:
		return f.oursAt(f.leads())
	}
	return f.any()
}

// ours is a fault of a zkgo server: the leader, or any.
func (f *faults) ours() fault { return f.oursAt(f.aNew()) }

func (f *faults) oursAt(id int) fault {
	s := f.new[id-1]
	switch f.random.IntN(3) {
	case 0:
		return fault{fmt.Sprint("kill new", id), func() func() {
			if s.proc == nil {
				return func() {}
			}
			s.kill()
			return s.launch
		}}
	case 1:
		return fault{fmt.Sprint("freeze new", id), func() func() {
			if s.proc == nil {
				return func() {}
			}
			must.Do(f.t, s.proc.Signal(syscall.SIGSTOP))
			return func() { must.Do(f.t, s.proc.Signal(syscall.SIGCONT)) }
		}}
	}
	return f.cutOff("new", id, len(f.new))
}

// theirs is a fault of the process of an old server.
func (f *faults) theirs() fault {
	s := f.old[f.anOld()-1]
	if f.random.IntN(2) == 0 {
		return fault{fmt.Sprint("kill old", s.ID), func() func() { return f.killOld(s) }}
	}
	return fault{fmt.Sprint("freeze old", s.ID), func() func() {
		pid := s.PID()
		kill(pid, syscall.SIGSTOP)
		return func() { kill(pid, syscall.SIGCONT) }
	}}
}

func (f *faults) killOld(s *oracle.Server) (repair func()) {
	kill(s.PID(), syscall.SIGKILL)
	return func() {
		wait.Eventually(f.t, "the old server to end", func() bool { return !s.Running() })
		s.Stop()
		must.Do(f.t, s.Launch())
	}
}

func kill(pid int, s syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(s) // the process may have ended
	}
}

// cutOff cuts a server off from the others of its side.
func (f *faults) cutOff(side string, id, n int) fault {
	all := names(side, n)
	return f.cut([]string{all[id-1]}, append(all[:id-1:id-1], all[id:]...))
}

// cut makes the links between two groups of hosts fail in any way.
func (f *faults) cut(a, b []string) fault {
	how := failure(f.random.IntN(int(failures)))
	name := fmt.Sprintf("%s %v %s", strings.Join(a, " and "), how, strings.Join(b, " and "))
	return fault{name, func() func() { return f.net.fail(how, a, b) }}
}

// some returns a server of a side, or all.
func (f *faults) some(side string, id, n int) []string {
	if all := names(side, n); f.random.IntN(2) == 0 {
		return all
	}
	return []string{nameOf(side, id)}
}

func names(side string, n int) (all []string) {
	for id := 1; id <= n; id++ {
		all = append(all, nameOf(side, id))
	}
	return all
}

// aNew returns the number of a zkgo server: of the leader, or any.
func (f *faults) aNew() int {
	id := 1 + f.random.IntN(len(f.new))
	if f.random.IntN(2) == 0 {
		return f.leads()
	}
	return id
}

func (f *faults) anOld() int {
	id := 1 + f.random.IntN(len(f.old))
	if f.random.IntN(2) == 0 {
		return f.oldLeader().ID
	}
	return id
}

// leads returns the number of the zkgo server that leads. While none has started, it is 1.
func (f *faults) leads() int {
	for i, s := range f.new {
		if st, err := s.status(); err == nil && st.Leads {
			return i + 1
		}
	}
	return 1
}
