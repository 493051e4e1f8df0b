//go:build !windows

package takeover

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestKilled: whatever is killed or stopped while the servers follow, take over and serve, no
// acknowledged write is lost and no lock is held twice. Each round has a seed of its own.
func TestKilled(t *testing.T) {
	for n := range *rounds {
		seed := *seed + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			if *rounds == 1 {
				t.Parallel()
			}
			round(t, rand.New(rand.NewPCG(seed, 36)))
		})
	}
}

func round(t *testing.T, random *rand.Rand) {
	t.Helper()
	var flags []string
	if random.IntN(2) == 0 {
		flags = append(flags, "--serve")
	}
	f := &faults{rig: newRig(t, 3, flags...), random: random}
	t.Log("flags ", flags)
	l := startLoad(t, f.addrs())
	for _, s := range f.new {
		s.launch()
	}
	if random.IntN(2) == 0 {
		<-time.After(time.Duration(random.IntN(2000)) * time.Millisecond)
		f.one()() // while the state arrives
	}
	f.inSync()
	for range 1 + random.IntN(3) {
		repair := f.one()
		<-time.After(time.Duration(random.IntN(1500)) * time.Millisecond)
		repair()
		f.inSync()
		l.goesOn()
	}
	f.cutoverAmongFaults()
	l.goesOn()
	// A stopped server doesn't stay so: go-zookeeper waits for ten times its timeout for the
	// answer to a ConnectRequest.
	for range 2 {
		repair := f.ours()
		<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
		repair()
		l.goesOn()
	}
	var addrs []string
	for _, s := range f.new {
		addrs = append(addrs, s.addr)
	}
	l.check(addrs...)
	t.Logf("%d sessions have expired", l.expired())
}

// faults are what happens to the servers of a rig.
type faults struct {
	*rig
	random *rand.Rand
}

// one kills or stops one server of either side. The result repairs it.
func (f *faults) one() (repair func()) {
	if f.random.IntN(2) == 0 {
		return f.ours()
	}
	return f.theirs()
}

// ours does that to a zkgo server: the leader, or any.
func (f *faults) ours() (repair func()) {
	s := f.new[f.random.IntN(len(f.new))]
	if f.random.IntN(2) == 0 {
		for _, is := range f.new {
			if st, err := is.status(); err == nil && st.Leads {
				s = is
			}
		}
	}
	if s.proc == nil {
		return func() {}
	}
	if f.random.IntN(2) == 0 {
		f.t.Log("kill zkgo at ", s.addr)
		s.kill()
		return s.launch
	}
	f.t.Log("freeze zkgo at ", s.addr)
	must.Do(f.t, s.proc.Freeze())
	return func() { must.Do(f.t, s.proc.Signal(syscall.SIGCONT)) }
}

// theirs does that to an old server.
func (f *faults) theirs() (repair func()) {
	s := f.old[f.random.IntN(len(f.old))]
	if f.random.IntN(2) == 0 {
		s = f.oldLeader()
	}
	if !s.Running() {
		return func() {}
	}
	if f.random.IntN(2) == 0 {
		f.t.Log("kill old server ", s.ID)
		kill(s.PID(), syscall.SIGKILL)
		wait.Eventually(f.t, "the old server to end", func() bool { return !s.Running() })
		return func() {
			s.Stop()
			must.Do(f.t, s.Launch())
		}
	}
	f.t.Log("freeze old server ", s.ID)
	pid := s.PID()
	kill(pid, syscall.SIGSTOP)
	return func() { kill(pid, syscall.SIGCONT) }
}

func kill(pid int, s syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(s) // the process may have ended
	}
}

// cutoverAmongFaults takes over while a server is killed or stopped, and tries again with open
// gates until that succeeds.
func (f *faults) cutoverAmongFaults() {
	f.t.Helper()
	for try := 0; ; try++ {
		var meanwhile sync.WaitGroup
		repair := func() {}
		if try < 3 && f.random.IntN(3) > 0 {
			wait := time.Duration(f.random.IntN(400)) * time.Millisecond
			meanwhile.Go(func() {
				<-time.After(wait)
				repair = f.one()
			})
		}
		leader := f.leader()
		cmd := exec.CommandContext(f.t.Context(), process.Binary(f.t), "mirror", "cutover", "--fence-timeout", "5s", "--fence-command", "touch "+f.fence+"/{port}", leader.config)
		out, err := cmd.CombinedOutput()
		meanwhile.Wait()
		repair()
		if err == nil || f.open() {
			return
		}
		f.t.Logf("try %d: %v\n%s", try, err, lastLine(out))
		if try > 20 {
			f.t.Fatal("no cutover succeeds")
		}
		for _, g := range f.gates {
			g.reopen(f.t, f.fence)
		}
		f.inSync()
	}
}

// open reports whether the zkgo servers have taken over.
func (f *faults) open() (open bool) {
	f.t.Helper()
	must.Do(f.t, wait.Success(patience, "a zkgo server to say its phase", func() error {
		for _, s := range f.new {
			st, err := s.status()
			if err == nil && st.Leads {
				open = st.Phase == "open"
				return nil
			}
		}
		return fmt.Errorf("no server leads")
	}))
	return open
}

func lastLine(b []byte) string {
	if len(b) > 400 {
		b = b[len(b)-400:]
	}
	return string(b)
}
