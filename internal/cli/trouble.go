package cli

import (
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
)

const (
	// slowConnect is how long a connect may take before we look for the reason.
	slowConnect = 2 * time.Second
	// probeTime limits each probe of a server that closes connections. A server that
	// expects TLS doesn't answer the first probe.
	probeTime = time.Second
)

// trouble finds out why there is no connection to an ensemble and reports the reason
// immediately. It is safe for concurrent use.
type trouble struct {
	tls  *tls.Config // the connection's TLS configuration; nil without TLS
	tell func(causes []string)
	seen chan []client.ConnectFailure // holds only the newest list
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	told   string
	probes map[string]error // results of probes, by address
}

// newTrouble returns a trouble. Its option must be passed to the client, and the
// caller must call end.
func newTrouble(config *tls.Config, tell func(causes []string)) *trouble {
	return &trouble{tls: config, tell: tell, seen: make(chan []client.ConnectFailure, 1), probes: map[string]error{}, stop: func() {}}
}

// option returns the client option that reports connect failures.
func (t *trouble) option() client.Option {
	return client.WithConnectFailures(func(list []client.ConnectFailure) {
		select {
		case <-t.seen:
		default:
		}
		t.seen <- list // never blocks, because only this function sends
	})
}

// begin watches a client until end is called.
func (t *trouble) begin(zk *client.Client) {
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
				t.say(ctx, list)
			case <-slow.C:
				t.say(ctx, zk.ConnectFailures())
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

// end stops watching.
func (t *trouble) end() {
	if t != nil {
		t.stop()
		t.wg.Wait()
	}
}

// forget resets the state after a successful connection.
func (t *trouble) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = ""
	clear(t.probes)
}

// say reports the causes unless they are the same as last time.
func (t *trouble) say(ctx context.Context, failures []client.ConnectFailure) {
	t.look(ctx, failures)
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
func (t *trouble) causes(failures []client.ConnectFailure) []string {
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

// giveUp returns the error of a command that waited too long.
func (t *trouble) giveUp(zk *client.Client, waited time.Duration) error {
	return &noConnection{waited: waited.String(), causes: t.causes(zk.ConnectFailures())}
}

// look probes each server that closed a connection once for the reason.
func (t *trouble) look(ctx context.Context, failures []client.ConnectFailure) {
	for _, f := range failures {
		t.mu.Lock()
		_, known := t.probes[f.Addr]
		t.mu.Unlock()
		if known || f.Addr == "" || !isClosed(f.Err) {
			continue
		}
		found := t.probe(ctx, f.Addr)
		t.mu.Lock()
		t.probes[f.Addr] = found
		t.mu.Unlock()
	}
}

// probe checks whether a server that closed a connection doesn't serve or expects
// TLS. It returns nil if neither is the case.
func (t *trouble) probe(ctx context.Context, addr string) error {
	answer := t.word(ctx, addr)
	switch {
	case strings.Contains(answer, "not currently serving"):
		return probed{"it runs but does not serve clients: it has no quorum, or is starting (its log says why)"}
	case strings.Contains(answer, "Mode:"):
		return probed{"it serves, but closed this connection: the client has seen a later zxid than the server has, or the server refuses more connections (maxClientCnxns); its log says which"}
	case answer != "" || t.tls != nil:
		return nil
	}
	if speaksTLS(ctx, addr) {
		return probed{Cause(client.ErrTLSRequired)}
	}
	return nil
}

// word returns the answer to srvr, or "" if there is none.
func (t *trouble) word(ctx context.Context, addr string) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := dialFor(ctx, addr, t.tls)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(io.LimitReader(conn, 4096)) // a partial answer is enough
	return string(answer)
}

// dialFor connects, with TLS if config isn't nil; ctx also limits the use of the
// connection. It doesn't verify the certificate, because it sends no secrets.
func dialFor(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		conn.SetDeadline(end) //nolint:errcheck // a read would fail, too
	}
	if config == nil {
		return conn, nil
	}
	config = config.Clone()
	config.InsecureSkipVerify, config.VerifyConnection = true, nil
	return tls.Client(conn, config), nil
}

// speaksTLS reports whether a server answers a TLS handshake with a handshake or an
// alert.
func speaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := dialFor(ctx, addr, &tls.Config{MinVersion: tls.VersionTLS12})
	if err != nil {
		return false
	}
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return false
	}
	err = secure.HandshakeContext(ctx)
	return err == nil || strings.Contains(err.Error(), "remote error: tls: ")
}
