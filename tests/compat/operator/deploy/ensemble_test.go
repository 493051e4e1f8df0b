//go:build linux

package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// superDigest lets clients log in as super:secret, which may reconfigure.
const superDigest = "DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4="

// ensemble is a set of servers and the clients that write to it all the time.
type ensemble struct {
	t       *testing.T
	dir     string
	servers map[int]*member
	writers []*writer
}

// member is a server, running any version of the program.
type member struct {
	*process.Proc
	id, quorum, election, client int
	dir                          string
}

// newEnsemble chooses ports for servers with the ids 1 to n.
func newEnsemble(t *testing.T, n int) *ensemble {
	t.Helper()
	process.Needed(t)
	e := &ensemble{t: t, dir: t.TempDir(), servers: map[int]*member{}}
	for id := 1; id <= n; id++ {
		e.servers[id] = &member{id: id, quorum: freePort(t), election: freePort(t), client: freePort(t), dir: filepath.Join(e.dir, fmt.Sprint(id))}
	}
	return e
}

// line returns a server's line in a list.
func (e *ensemble) line(id int) string {
	m := e.servers[id]
	return fmt.Sprintf("server.%d=127.0.0.1:%d:%d;127.0.0.1:%d", id, m.quorum, m.election, m.client)
}

// configure writes a server's zoo.cfg and myid, with a list of servers.
func (e *ensemble) configure(id int, list ...int) {
	e.t.Helper()
	lines := []string{"tickTime=1000", "initLimit=40", "syncLimit=20", "maxClientCnxns=0", "maxSessionTimeout=60000", "admin.enableServer=false",
		"4lw.commands.whitelist=*", "reconfigEnabled=true", superDigest, "dataDir=" + e.servers[id].dir + "/data"}
	for _, other := range list {
		lines = append(lines, e.line(other))
	}
	write(e.t, e.servers[id].dir+"/zoo.cfg", lines...)
	write(e.t, e.servers[id].dir+"/data/myid", fmt.Sprint(id))
}

// start starts servers with a version of the program.
func (e *ensemble) start(zkgo string, ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		m := e.servers[id]
		m.Proc = run(e.t, exec.Command(zkgo, "server", m.dir+"/zoo.cfg"))
	}
}

// await waits until servers serve, as "zkgo health --wait" does.
func (e *ensemble) await(ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		serves(e.t, local(e.servers[id].client))
	}
}

// form configures and starts an ensemble.
func (e *ensemble) form(zkgo string, ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		e.configure(id, ids...)
	}
	e.start(zkgo, ids...)
	e.await(ids...)
}

// stop stops servers as a service manager does.
func (e *ensemble) stop(ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		if err := e.servers[id].Stop(syscall.SIGTERM); err != nil {
			e.t.Fatalf("server %d: %v", id, err)
		}
	}
}

// word returns a server's reply to a four-letter word, or "" if there is none.
func (e *ensemble) word(id int, word string) string {
	answer, _ := process.Word(local(e.servers[id].client), word, process.Patience)
	return answer
}

// says waits until a server's mntr has a line.
func (e *ensemble) says(id int, line string) {
	e.t.Helper()
	wait.Eventually(e.t, fmt.Sprintf("server %d: %s", id, line), func() bool { return strings.Contains(e.word(id, "mntr"), strings.Replace(line, " ", "\t", 1)+"\n") })
}

// leader waits until one of some servers leads.
func (e *ensemble) leader(ids ...int) int {
	e.t.Helper()
	lead := 0
	wait.Eventually(e.t, "a leader", func() bool {
		for _, id := range ids {
			if strings.Contains(e.word(id, "srvr"), "Mode: leader") {
				lead = id
			}
		}
		return lead != 0
	})
	return lead
}

// whole waits until all other servers are in sync with the leader. An operator should wait
// for that when restarting servers one after another.
func (e *ensemble) whole(ids ...int) {
	e.t.Helper()
	e.await(ids...)
	e.says(e.leader(ids...), fmt.Sprint("zk_synced_followers ", len(ids)-1))
}

// reconfig runs zkgo cli as the super user until the servers that it needs are available.
func (e *ensemble) reconfig(through int, args ...string) {
	e.t.Helper()
	wait.Eventually(e.t, fmt.Sprint("reconfig ", args), func() bool {
		out, err := command(e.t, program(e.t), append([]string{"cli", "--auth", "digest:super:secret", "-server", local(e.servers[through].client), "reconfig"}, args...)...).CombinedOutput()
		if err != nil {
			e.t.Logf("reconfig %v: %v\n%s", args, err, out)
		}
		return err == nil
	})
}

// writer is a client with a session and an ephemeral znode that writes all the time.
type writer struct {
	name    string
	c       *client.Client
	session int64
	stop    context.CancelFunc
	done    chan struct{}

	mu    sync.Mutex
	acked []string
	err   error
}

// write starts clients that know some of the servers and learn the others from the
// ensemble's configuration, and waits until they have written something.
func (e *ensemble) write(names string, ids ...int) {
	e.t.Helper()
	var addrs []string
	for _, id := range ids {
		addrs = append(addrs, local(e.servers[id].client))
	}
	for _, name := range strings.Fields(names) {
		ctx, cancel := context.WithCancel(context.Background())
		c, err := client.Connect(ctx, strings.Join(addrs, ","), client.WithSessionTimeout(time.Minute), client.WithConfigTracking())
		if err != nil {
			cancel()
			e.t.Fatal(err)
		}
		w := &writer{name: name, c: c, stop: cancel, done: make(chan struct{})}
		must.Get(c.Create(ctx, "/ephemeral-"+name, nil, client.Ephemeral))(e.t)
		w.session = c.Session().ID
		go w.run(ctx)
		e.writers = append(e.writers, w)
		e.t.Cleanup(func() { cancel(); <-w.done; c.Close() })
	}
	e.more()
}

// run writes until ctx ends or the session is lost.
func (w *writer) run(ctx context.Context) {
	defer close(w.done)
	pace := time.NewTicker(3 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		path := fmt.Sprintf("/%s-%06d", w.name, n)
		_, err := w.c.Create(ctx, path, nil)
		switch {
		case err == nil:
			w.mu.Lock()
			w.acked = append(w.acked, path)
			w.mu.Unlock()
		case errors.Is(err, client.ErrUnknownOutcome) && !errors.Is(err, client.ErrSessionExpired), ctx.Err() != nil:
		default:
			w.mu.Lock()
			w.err = fmt.Errorf("create %s: %w", path, err)
			w.mu.Unlock()
			return
		}
		<-pace.C
	}
}

// more waits until every client has made more writes.
func (e *ensemble) more() {
	e.t.Helper()
	for _, w := range e.writers {
		from := w.count()
		wait.Eventually(e.t, "more writes of "+w.name, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.err != nil {
				e.t.Fatalf("client %s: %v", w.name, w.err)
			}
			return len(w.acked) >= from+20
		})
	}
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// verify ends the writes and checks that every given server has everything that was
// acknowledged, and the sessions that the clients began with.
func (e *ensemble) verify(ids ...int) {
	e.t.Helper()
	total := 0
	for _, w := range e.writers {
		w.stop()
		<-w.done
		if w.err != nil {
			e.t.Errorf("client %s: %v", w.name, w.err)
		}
		total += len(w.acked)
	}
	for _, id := range ids {
		c := must.Get(client.Connect(e.t.Context(), local(e.servers[id].client)))(e.t)
		must.Do(e.t, c.Sync(e.t.Context(), "/"))
		names, _, err := c.Children(e.t.Context(), "/")
		if err != nil {
			e.t.Fatal(err)
		}
		listed := map[string]bool{}
		for _, name := range names {
			listed["/"+name] = true
		}
		for _, w := range e.writers {
			stat, there, err := c.Exists(e.t.Context(), "/ephemeral-"+w.name)
			if err != nil || !there || stat.EphemeralOwner != w.session {
				e.t.Errorf("server %d: the session of %s is lost: %+v, %v", id, w.name, stat, err)
			}
			for _, path := range w.acked {
				if !listed[path] {
					e.t.Errorf("server %d has lost %s", id, path)
				}
			}
		}
		c.Close()
	}
	for _, w := range e.writers {
		w.c.Close() // while there is a server to tell
	}
	e.t.Logf("%d acknowledged writes of %d clients are on servers %v", total, len(e.writers), ids)
}

// wipe deletes a stopped server's volume.
func (e *ensemble) wipe(id int) {
	e.t.Helper()
	must.Do(e.t, os.RemoveAll(e.servers[id].dir+"/data"))
	write(e.t, e.servers[id].dir+"/data/myid", fmt.Sprint(id))
}
