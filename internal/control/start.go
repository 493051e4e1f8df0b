package control

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/server/zktest"
)

// Config describes what to start. The zero value is one standalone server on a free
// port.
type Config struct {
	Servers     int    // 0: one standalone server; otherwise a cluster of that size
	Host        string // where the endpoints listen; default 127.0.0.1
	ControlPort int    // 0: any free port
	Options     []zktest.Option
	// Log receives what would go to a test's log: a line for every injected fault,
	// and the servers' own log with zktest.WithLogs. It's called from many
	// goroutines.
	Log func(line string)
}

// Ready lists the addresses of a TestServer. "zkgo testserver" prints it.
type Ready struct {
	// ConnectString is the connect string for clients.
	ConnectString string `json:"connectString"`
	// Control is the base URL of the endpoints.
	Control string `json:"control"`
	PID     int    `json:"pid"`
	// SecureConnectString is the connect string for TLS clients, if there is a TLS
	// port.
	SecureConnectString string `json:"secureConnectString,omitempty"`
}

// TestServer is a running test server with its endpoints.
type TestServer struct {
	bench   *bench
	servers []*zktest.Server // by id − 1
	cluster *zktest.Cluster  // nil: a standalone server
	addrs   []string
	ready   Ready
	http    *http.Server
	served  sync.WaitGroup
	closing chan struct{} // closed by Close
	stopped chan struct{} // closed by POST /v1/stop
	stop    sync.Once
	over    sync.Once

	turn  sync.Mutex // held by calls that move time or reset the tree
	shape sync.Mutex // held by calls that change the ensemble

	mu         sync.Mutex
	last       int // last number given to a fault, a snapshot or a recording
	faults     map[string]fault
	snapshots  map[string]*zktest.Snapshot
	recordings map[string][]*zktest.Recording // one per server
	undos      map[string][]func()            // see keep
}

// Start starts the servers and the endpoints, and returns when they all serve. The caller
// must call Close.
func Start(cfg Config) (*TestServer, error) {
	if cfg.Log == nil {
		cfg.Log = func(string) {}
	}
	t := &TestServer{
		bench: &bench{log: cfg.Log}, closing: make(chan struct{}), stopped: make(chan struct{}),
		faults: make(map[string]fault), snapshots: make(map[string]*zktest.Snapshot),
		recordings: make(map[string][]*zktest.Recording), undos: make(map[string][]func()),
	}
	err := try(func() { t.run(&cfg) })
	if err == nil {
		err = t.listen(&cfg)
	}
	if err != nil {
		_ = t.Close() // report the first error
		return nil, err
	}
	return t, nil
}

// run starts the servers.
func (t *TestServer) run(cfg *Config) {
	if cfg.Servers == 0 {
		t.servers = []*zktest.Server{zktest.Run(t.bench, cfg.Options...)}
	} else {
		t.cluster = zktest.RunCluster(t.bench, cfg.Servers, cfg.Options...)
		t.servers = t.cluster.Servers()
	}
	var secure []string
	for _, s := range t.servers {
		for _, addr := range s.Addrs() {
			t.addrs = append(t.addrs, onThisHost(addr))
		}
		for _, addr := range s.Server().ClientAddrs() {
			secure = append(secure, onThisHost(addr))
		}
	}
	t.ready = Ready{ConnectString: strings.Join(t.addrs, ","), SecureConnectString: strings.Join(secure, ","), PID: os.Getpid()}
}

// onThisHost returns the address that clients on this host use for a listener.
func onThisHost(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// listen serves the endpoints.
func (t *TestServer) listen(cfg *Config) error {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(cmp.Or(cfg.Host, "127.0.0.1"), strconv.Itoa(cfg.ControlPort)))
	if err != nil {
		return err
	}
	t.ready.Control = "http://" + onThisHost(l.Addr().String())
	t.http = &http.Server{Handler: t.handler(), ReadHeaderTimeout: time.Minute}
	t.served.Go(func() { _ = t.http.Serve(l) }) // returns after Close
	return nil
}

// Ready returns the addresses of the servers and the endpoints.
func (t *TestServer) Ready() Ready { return t.ready }

// Stopped returns a channel that is closed when a client requests a stop by POST
// /v1/stop.
func (t *TestServer) Stopped() <-chan struct{} { return t.stopped }

// grace is the time that requests in progress have to finish.
const grace = 5 * time.Second

// Close stops the endpoints and the servers.
func (t *TestServer) Close() (err error) {
	t.over.Do(func() {
		close(t.closing)
		if t.http != nil {
			ctx, cancel := context.WithTimeout(context.Background(), grace)
			defer cancel()
			if t.http.Shutdown(ctx) != nil {
				_ = t.http.Close()
			}
			t.served.Wait()
		}
		err = t.bench.end()
	})
	return err
}
