package gray

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/kit/netns"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/servers"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// patience bounds every wait for a healthy ensemble.
const patience = 120 * time.Second

const (
	clientPort = 2181
	quorumPort = 2888
	clientHost = "clients"
)

// Settings are the differences between the ensembles of the scenarios.
type Settings struct {
	Servers int  // 0: 3
	Tick    int  // tickTime in milliseconds; 0: 2000
	TLS     bool // between the servers
	Lines   []string
}

// ensemble is a set of servers, each in its own namespace.
type ensemble struct {
	program servers.Program
	set     Settings
	net     *netns.Net
	clients *netns.Host
	servers []*server
}

// server is one server, running or not.
type server struct {
	id   int
	e    *ensemble
	host *netns.Host
	dir  string
	proc *process.Proc // nil before the first launch
}

// syncLimit is used by every ensemble, in ticks.
const syncLimit = 5

// start starts an ensemble in a directory and returns when all servers serve.
func start(p servers.Program, dir string, set Settings) (*ensemble, error) {
	if set.Servers == 0 {
		set.Servers = 3
	}
	if set.Tick == 0 {
		set.Tick = 2000
	}
	var secure []string
	if set.TLS {
		var err error
		if secure, err = quorumTLS(dir); err != nil {
			return nil, err
		}
	}
	set.Lines = append(secure, set.Lines...)
	e := &ensemble{program: p, set: set, net: netns.New(1)}
	err := e.configure(dir)
	for _, s := range e.servers {
		if err == nil {
			err = s.launch()
		}
	}
	if err == nil {
		err = e.await()
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *ensemble) configure(dir string) error {
	var list strings.Builder
	for id := 1; id <= e.set.Servers; id++ {
		h, err := e.net.Host(fmt.Sprint("server", id))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "server.%d=%s:%d:3888:participant;%d\n", id, h.Addr(), quorumPort, clientPort)
		e.servers = append(e.servers, &server{id: id, e: e, host: h, dir: filepath.Join(dir, h.Name())})
	}
	for _, s := range e.servers {
		data := filepath.Join(s.dir, "data")
		text := fmt.Sprintf("tickTime=%d\ninitLimit=10\nsyncLimit=%d\ndataDir=%s\nmaxClientCnxns=0\nadmin.enableServer=false\n"+
			"4lw.commands.whitelist=*\n%s\n%s", e.set.Tick, syncLimit, data, strings.Join(e.set.Lines, "\n"), list.String())
		if err := errors.Join(os.MkdirAll(data, 0o700), os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, s.id), 0o600),
			os.WriteFile(s.cfg(), []byte(text), 0o600)); err != nil {
			return err
		}
	}
	var err error
	e.clients, err = e.net.Host(clientHost)
	return err
}

// close kills the servers and removes the network.
func (e *ensemble) close() {
	for _, s := range e.servers {
		s.kill()
	}
	_ = e.net.Close()
}

// eventually waits until f returns true. Otherwise its error names the missing condition.
func eventually(what string, within time.Duration, f func() bool) error {
	return wait.For(within, what, func() (bool, error) { return f(), nil })
}

// await waits until every server serves and one leads.
func (e *ensemble) await() error {
	var seen []string
	err := eventually("all servers serve and one leads", patience, func() bool {
		seen = seen[:0]
		leaders := 0
		for _, s := range e.servers {
			st := s.status()
			seen = append(seen, st.Mode)
			if st.Mode == "leader" {
				leaders++
			}
		}
		return leaders == 1 && !slices.Contains(seen, "")
	})
	if err != nil {
		return fmt.Errorf("%s: %w; they are %q", e.program.Name, err, seen)
	}
	return nil
}

// leader returns the server that leads, and the others in the order of their ids.
func (e *ensemble) leader() (*server, []*server, error) {
	var leader *server
	if err := eventually("a leader", patience, func() bool {
		var newest int64 = -1
		for _, s := range e.servers {
			if st := s.status(); st.Mode == "leader" && st.Epoch() > newest {
				leader, newest = s, st.Epoch()
			}
		}
		return leader != nil
	}); err != nil {
		return nil, nil, err
	}
	return leader, slices.DeleteFunc(slices.Clone(e.servers), func(s *server) bool { return s == leader }), nil
}

// epoch returns the newest epoch that any server reports. It grows with every
// election.
func (e *ensemble) epoch() int64 {
	var newest int64
	for _, s := range e.servers {
		newest = max(newest, s.status().Epoch())
	}
	return newest
}

func (s *server) cfg() string  { return filepath.Join(s.dir, "zoo.cfg") }
func (s *server) name() string { return s.host.Name() }

// addr returns the address at which clients dial the server.
func (s *server) addr() string {
	return net.JoinHostPort(s.host.Addr().String(), strconv.Itoa(clientPort))
}

// launch starts the process in the server's namespace.
func (s *server) launch() error {
	args := s.e.program.Command(s.cfg())
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	p, err := process.LaunchIn(func() (bool, error) { return true, s.host.Enter() }, cmd, filepath.Join(s.dir, "out"))
	if err != nil {
		return fmt.Errorf("a server of %s: %w", s.e.program.Name, err)
	}
	s.proc = p
	return nil
}

// kill ends the process like kill -9.
func (s *server) kill() { s.proc.Kill() }

// status asks the server from its own namespace, so that no fault is in between. The mode
// is empty if the server does not serve.
func (s *server) status() process.Status {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := s.host.Dial(ctx, s.addr())
	if err != nil {
		return process.Status{}
	}
	text, err := process.WordOn(conn, "srvr", time.Second)
	if err != nil {
		return process.Status{}
	}
	st, err := process.ParseStatus(text)
	if err != nil || !st.Serves() {
		return process.Status{}
	}
	return st
}

// These are the kinds of stream between zkgo servers, as named in their first
// message.
const (
	raftStream = iota + 1
	forwardStream
	livenessStream
)

// kindOf returns the kind of a stream between zkgo servers, or 0 for other
// connections.
func kindOf(c netns.Conn) int {
	const magic = "zkgopeer"
	if len(c.First) < len(magic)+3 || string(c.First[:len(magic)]) != magic || binary.BigEndian.Uint16(c.First[len(magic):]) == 0 {
		return 0
	}
	return int(c.First[len(magic)+2])
}

// conns returns the established connections between servers that f picks.
func (e *ensemble) conns(f func(netns.Conn) bool) []netns.Conn {
	return slices.DeleteFunc(e.net.Conns(), func(c netns.Conn) bool {
		return c.From == clientHost || c.To == clientHost || c.From == c.To || !f(c)
	})
}

// opened picks the connections of a kind (0: any) that one server has opened to
// the quorum port of another.
func opened(from, to *server, kind int) func(netns.Conn) bool {
	return func(c netns.Conn) bool {
		return c.From == from.name() && c.To == to.name() && c.Dst.Port() == quorumPort && (kind == 0 || kindOf(c) == kind)
	}
}

// entries returns the connection on which a zkgo leader sends its entries to a
// follower: the Raft connection that carries most while clients write.
func (e *ensemble) entries(leader, follower *server) ([]netns.Conn, error) {
	pick := opened(leader, follower, raftStream)
	var busiest netns.Conn
	err := eventually("a connection that carries entries", patience, func() bool {
		before := map[string]int64{}
		for _, c := range e.conns(pick) {
			before[c.Src.String()] = c.Sent
		}
		await := time.NewTimer(300 * time.Millisecond)
		<-await.C
		var most int64
		for _, c := range e.conns(pick) {
			if sent := c.Sent - before[c.Src.String()]; sent > most {
				busiest, most = c, sent
			}
		}
		return most > 0
	})
	return []netns.Conn{busiest}, err
}
