package httpport

import (
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of a request.
const (
	HeaderTimeout  = 10 * time.Second
	requestTimeout = 2 * time.Minute // for a whole request or reply; a profile lasts 30 s by default
	maxHeader      = 16 << 10        // bytes of a request's header
)

// Options say how a port serves.
type Options struct {
	Setting string // the key that names the port, for the log
	Idle    time.Duration
	Log     *slog.Logger
	// Complain logs that the port refuses a client.
	Complain func(msg string, args ...any)
	// Secure adds TLS to the port's listener, or returns it unchanged.
	Secure func(net.Listener) (net.Listener, error)
}

// Port is an HTTP server on one listener. A nil Port has no address and is closed.
type Port struct {
	l      net.Listener
	s      *http.Server
	conns  *conns
	closed chan struct{}
	ended  chan struct{} // the goroutine that accepts has ended
}

// Serve serves requests on the connections of plain until Close is called. If it fails,
// plain stays open.
func Serve(plain net.Listener, h http.Handler, o Options) (*Port, error) {
	p := &Port{conns: new(conns), closed: make(chan struct{}), ended: make(chan struct{})}
	var err error
	if p.l, err = o.Secure(&listener{plain, p.conns}); err != nil {
		return nil, err
	}
	p.s = &http.Server{
		Handler: p.conns.handle(h), ReadHeaderTimeout: HeaderTimeout, IdleTimeout: o.Idle,
		MaxHeaderBytes: maxHeader, ConnContext: p.conns.context,
		// Snapshots and restores set their own deadlines.
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		ErrorLog: log.New(httpLog{&o, p.closed}, "", 0),
	}
	go func() {
		defer close(p.ended)
		_ = p.s.Serve(p.l) // returns after Close
	}()
	return p, nil
}

// Addr returns the address that p listens on, or "" if p is nil.
func (p *Port) Addr() string {
	if p == nil {
		return ""
	}
	return p.l.Addr().String()
}

// Close closes the listener and all connections. It doesn't wait for clients: once we have
// closed their sockets, closing the layers above doesn't block.
func (p *Port) Close() error {
	if p == nil {
		return nil
	}
	close(p.closed)
	p.conns.close()
	err := p.s.Close()
	<-p.ended
	return err
}
