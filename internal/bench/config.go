package bench

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// Config describes a run. A zero field means the default in its comment.
type Config struct {
	Work    string   // a name from Works
	Servers []string // host:port each; the connections use them in turn

	Conns  int     // connections, each with its own session; 1
	Window int     // requests in flight per connection, for works with a window; 1
	Size   int     // bytes of a value; 100. -1 means none
	Nodes  int     // existing znodes for reads and writes, chosen at random; 1000
	Writes float64 // the fraction of writes in "mixed", 0 to 1; 0.1
	Ops    int     // operations in a "multi"; 10

	Warmup         time.Duration // before counting begins; half a second. -1 means none
	Duration       time.Duration // of counting; 5 s
	SessionTimeout time.Duration // requested timeout; 30 s

	Root string // parent of the run's own znode; "/zkgo-bench". Run creates it if it doesn't exist, and then also removes it
	Keep bool   // don't remove the run's znodes

	Seed uint64      // for the random choices
	PIDs []int       // the servers' processes on this machine: adds CPU time and memory to the Result
	TLS  *tls.Config // nil: plaintext
	Auth []proto.AuthPacket

	// Progress is called about every second while counting, from one of the run's
	// goroutines.
	Progress func(Sample)
}

// defaultRoot is the default of Config.Root.
const defaultRoot = "/zkgo-bench"

// Sample is the progress since the previous Sample.
type Sample struct {
	Elapsed time.Duration // since counting began
	Rate    float64       // operations per second
	Errors  int64
}

func (c Config) withDefaults() Config {
	positive := func(n *int, standard int) {
		if *n == 0 {
			*n = standard
		}
	}
	positive(&c.Conns, 1)
	positive(&c.Window, 1)
	positive(&c.Size, 100)
	positive(&c.Nodes, 1000)
	positive(&c.Ops, 10)
	c.Size = max(c.Size, 0)
	if c.Writes == 0 {
		c.Writes = 0.1
	}
	if c.Warmup == 0 {
		c.Warmup = time.Second / 2
	}
	c.Warmup = max(c.Warmup, 0)
	if c.Duration == 0 {
		c.Duration = 5 * time.Second
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 30 * time.Second
	}
	if c.Root == "" {
		c.Root = defaultRoot
	}
	return c
}

func (c *Config) check() error {
	switch {
	case len(c.Servers) == 0:
		return errors.New("no server is given")
	case c.Conns < 1 || c.Window < 1 || c.Nodes < 1 || c.Ops < 1:
		return fmt.Errorf("%d connections with a window of %d, %d znodes, %d operations in a multi: there must be at least one of each", c.Conns, c.Window, c.Nodes, c.Ops)
	case c.Writes < 0 || c.Writes > 1:
		return fmt.Errorf("a part of %v writes: it must be between 0 and 1", c.Writes)
	case c.Duration < 0:
		return fmt.Errorf("a duration of %v", c.Duration)
	}
	if err := proto.ValidatePath(c.Root); err != nil {
		return fmt.Errorf("root %q: %w", c.Root, err)
	}
	if find(c.Work) == nil {
		return fmt.Errorf("no such workload: %q; there are %s", c.Work, strings.Join(Names(), ", "))
	}
	return nil
}
