package control

import (
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

// Config says what is started. The zero value is one server on a free port.
type Config struct {
	Servers     int // 0: one that stands alone; else a cluster
	ControlPort int // on 127.0.0.1; 0: a free one
	Options     []zktest.Option
	// Log is given what a test's log would be: what the faults do, and the
	// servers' own log with zktest.WithLogs. Many goroutines call it.
	Log func(line string)
}

// Ready says where a TestServer is; it is what "zkgo testserver" prints.
type Ready struct {
	// ConnectString is for clients.
	ConnectString string `json:"connectString"`
	// Control is the URL that the endpoints' paths are appended to.
	Control string `json:"control"`
	PID     int    `json:"pid"`
	// SecureConnectString is for clients with TLS, if there is a port for them.
	SecureConnectString string `json:"secureConnectString,omitempty"`
}

// TestServer is a running test server with its endpoints.
type TestServer struct {
	bench   *bench
	servers []*zktest.Server // by id − 1
	cluster *zktest.Cluster  // nil: one that stands alone
	addrs   []string
	ready   Ready
	http    *http.Server
	served  sync.WaitGroup
	closing chan struct{} // closed by Close
	stopped chan struct{} // closed by POST /v1/stop
	stop    sync.Once
	over    sync.Once

	turn  sync.Mutex // held by what moves time or begins anew
	shape sync.Mutex // held by what changes the ensemble

	mu         sync.Mutex
	last       int // number given to a fault, a snapshot or a recording
	faults     map[string]fault
	snapshots  map[string]*zktest.Snapshot
	recordings map[string][]*zktest.Recording // of the servers
	undos      map[string][]func()            // see keep
}

// Start starts the servers and the endpoints, and returns when all of them
// serve. Close has to be called.
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
		err = t.listen(cfg.ControlPort)
	}
	if err != nil {
		_ = t.Close() // the first error counts
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
		t.addrs = append(t.addrs, s.Addrs()...)
		for _, addr := range s.Server().ClientAddrs() {
			secure = append(secure, onThisHost(addr))
		}
	}
	t.ready = Ready{ConnectString: strings.Join(t.addrs, ","), SecureConnectString: strings.Join(secure, ","), PID: os.Getpid()}
}

// onThisHost is the address by which clients of this host reach a listener.
func onThisHost(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// listen serves the endpoints, to this host only.
func (t *TestServer) listen(port int) error {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	t.ready.Control = "http://" + l.Addr().String()
	t.http = &http.Server{Handler: t.handler(), ReadHeaderTimeout: time.Minute}
	t.served.Go(func() { _ = t.http.Serve(l) }) // until Close
	return nil
}

// Ready says where it is.
func (t *TestServer) Ready() Ready { return t.ready }

// Stopped is closed when somebody has asked for the end, by POST /v1/stop.
func (t *TestServer) Stopped() <-chan struct{} { return t.stopped }

// grace is how long requests to the endpoints may take to end.
const grace = 5 * time.Second

// Close ends everything.
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
