package sim

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/quorum/transport"
	"github.com/zkgo/zkgo/server"
)

// process is one run of a server, from its start to its end. Goroutines cannot be
// killed: a process that dies is cut off from network, clients and disk at once,
// and is then closed where its effects reach nothing.
type process struct {
	h       *host
	vol     *volume
	net     *wire
	srv     *server.Server
	started chan struct{} // closed when Start has returned
	gone    chan struct{} // closed when it has died or was stopped
	ended   chan struct{} // closed when the process has ended completely
	died    sync.Once
	closing sync.Once
	closed  chan struct{} // closed when srv.Close has returned
}

// start runs a server. It returns the error of server.Start, and nil if the
// process dies during its start.
func (h *host) start() error {
	vol, err := h.drive.mount()
	if err != nil {
		return err
	}
	p := &process{h: h, vol: vol, started: make(chan struct{}), gone: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{})}
	p.net = &wire{Network: h.c.net.Host(h.name), c: h.c, host: h.name, gone: p.gone}
	h.mu.Lock()
	h.proc = p
	h.mu.Unlock()
	h.c.trace.say("server %d starts", h.id)
	h.c.processes.Add(1)
	srv, err := server.Start(context.Background(), h.config(p))
	p.srv = srv
	close(p.started)
	if err != nil {
		dead := p.isGone()
		p.end(false)
		close(p.ended)
		h.c.processes.Done()
		if dead {
			return nil
		}
		return fmt.Errorf("server %d does not start: %w", h.id, err)
	}
	go func() {
		defer h.c.processes.Done()
		defer close(p.ended)
		p.run()
	}()
	return nil
}

func (p *process) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// run serves clients until the process ends, and then closes the rest.
func (p *process) run() {
	var wg sync.WaitGroup
	if l, err := p.net.Listen(p.h.name + ":2181"); err == nil {
		wg.Go(func() { p.accept(l) })
		wg.Go(func() {
			<-p.gone
			_ = l.Close()
		})
	}
	select {
	case err := <-p.srv.Err():
		p.h.c.stoppedItself(p, err)
		p.end(true)
	case <-p.gone:
	}
	// The process is detached: it only has to finish.
	timer := time.NewTimer(closes)
	defer timer.Stop()
	select {
	case <-p.close():
	case <-timer.C:
		p.h.c.violate("server %d cannot be closed within %v", p.h.id, closes)
	}
	wg.Wait()
}

// closes bounds the time to close any server, in fake time.
const closes = 5 * time.Minute

func (p *process) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		p.srv.ServeConn(nc)
	}
}

// end ends the process at once, like kill -9 or a power cut. It may also be
// called from inside the process. The network is cut first: everything
// acknowledged before that is already on the disk.
func (p *process) end(powerCut bool) {
	p.died.Do(func() {
		close(p.gone)
		p.h.c.net.Kill(p.h.name)
		p.h.drive.detach(powerCut)
		p.h.mu.Lock()
		if p.h.proc == p {
			p.h.proc = nil
		}
		p.h.mu.Unlock()
	})
}

// close closes the server and returns a channel that is closed once Close has
// returned. Two goroutines must not call Close: the second would wait for a
// mutex, where fake time is stopped.
func (p *process) close() <-chan struct{} {
	p.closing.Do(func() {
		go func() {
			defer close(p.closed)
			_ = p.srv.Close()
		}()
	})
	return p.closed
}

// stop ends the process like an operator, and kills it if it is too slow: its disk may hang.
// Unsynced data stays in the kernel's cache.
func (p *process) stop() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.close():
	case <-timer.C:
	}
	p.end(false)
	<-p.ended
}

// wire is the network between the servers as seen by one process.
type wire struct {
	quorum.Network
	c    *Cluster
	host string
	gone chan struct{}
}

var _ transport.Replayer = (*wire)(nil)

// Listen implements quorum.Network.
func (w *wire) Listen(addr string) (net.Listener, error) {
	select {
	case <-w.gone:
		return nil, net.ErrClosed
	default:
		return w.Network.Listen(addr)
	}
}

// Dial implements quorum.Network. A dead process reaches no server.
func (w *wire) Dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-w.gone:
			cancel()
		case <-stop:
		}
	}()
	conn, err := w.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.gone:
		_ = conn.Close()
		return nil, net.ErrClosed
	default:
		return conn, nil
	}
}

// Replays implements transport.Replayer.
func (w *wire) Replays(message any) []transport.Replay {
	w.c.mu.Lock()
	f := w.c.replays
	w.c.mu.Unlock()
	if _, ok := message.(*raft.InstallSnapshotRequest); ok {
		w.c.note("InstallSnapshot")
	}
	if f == nil {
		return nil
	}
	return f(w.host, message)
}

// wallClock is the clock of a host, which may be wrong.
type wallClock struct{ ahead atomic.Int64 }

func (c *wallClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }
