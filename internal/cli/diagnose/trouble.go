package diagnose

import (
	"context"
	"crypto/tls"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
)

// slowConnect is how long we wait for a connect before we look for the reason.
const slowConnect = 2 * time.Second

// Trouble finds out why there is no connection to an ensemble and reports the reason
// immediately. It is safe for concurrent use.
type Trouble struct {
	tls  *tls.Config // the connection's TLS configuration; nil without TLS
	tell func(causes []string)
	seen chan []client.ConnectFailure // contains only the newest list
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	told   string
	probes map[string]error // results of probes, by address
}

// New returns a Trouble. Its option must be passed to the client, and the
// caller must call End.
func New(config *tls.Config, tell func(causes []string)) *Trouble {
	return &Trouble{tls: config, tell: tell, seen: make(chan []client.ConnectFailure, 1), probes: map[string]error{}, stop: func() {}}
}

// Option returns the client option that reports connect failures.
func (t *Trouble) Option() client.Option {
	return client.WithConnectFailures(func(list []client.ConnectFailure) {
		select {
		case <-t.seen:
		default:
		}
		t.seen <- list // never blocks, because only this function sends
	})
}

// Begin watches a client until End is called.
func (t *Trouble) Begin(zk *client.Client) {
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	states := zk.Subscribe()
	t.wg.Go(func() {
		defer states.Close()
		slow := time.NewTimer(slowConnect)
		defer slow.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case list := <-t.seen:
				t.report(ctx, list)
			case <-slow.C:
				t.report(ctx, zk.ConnectFailures())
			case change, ok := <-states.C():
				if !ok {
					return
				}
				if change.State.Connected() {
					slow.Stop()
					t.forget()
				} else {
					slow.Reset(slowConnect)
				}
			}
		}
	})
}

// End stops watching.
func (t *Trouble) End() {
	if t != nil {
		t.stop()
		t.wg.Wait()
	}
}

// forget resets the state after a successful connection.
func (t *Trouble) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = ""
	clear(t.probes)
}

// report prints the causes unless they are the same as last time.
func (t *Trouble) report(ctx context.Context, failures []client.ConnectFailure) {
	t.probe(ctx, failures)
	causes := t.causes(failures)
	text := strings.Join(causes, "\n")
	t.mu.Lock()
	again := text == "" || text == t.told || ctx.Err() != nil
	t.told = text
	t.mu.Unlock()
	if !again {
		t.tell(causes)
	}
}

// causes describes the failures, with the results of probes.
func (t *Trouble) causes(failures []client.ConnectFailure) []string {
	t.mu.Lock()
	probes := maps.Clone(t.probes)
	t.mu.Unlock()
	list := make([]client.ConnectFailure, len(failures))
	for i, f := range failures {
		if found := probes[f.Addr]; found != nil && isClosed(f.Err) {
			f.Err = found
		}
		list[i] = f
	}
	return causeList(list)
}

// GiveUp returns the error of a command that waited too long.
func (t *Trouble) GiveUp(zk *client.Client, waited time.Duration) error {
	return &NoConnection{waited: waited.String(), causes: t.causes(zk.ConnectFailures())}
}

// probe asks each server that closed a connection once for the reason.
func (t *Trouble) probe(ctx context.Context, failures []client.ConnectFailure) {
	for _, f := range failures {
		t.mu.Lock()
		_, known := t.probes[f.Addr]
		t.mu.Unlock()
		if known || f.Addr == "" || !isClosed(f.Err) {
			continue
		}
		found := ClientTerms().probe(ctx, f.Addr, t.tls)
		t.mu.Lock()
		t.probes[f.Addr] = found
		t.mu.Unlock()
	}
}
