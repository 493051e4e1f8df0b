package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/zkgo/zkgo/raftfsm"
)

// ErrDataInUse reports that another server has the data directory open.
var ErrDataInUse = raftfsm.ErrInUse

// ListenError reports that the server can't listen on an address.
type ListenError struct {
	// Setting is the key of zoo.cfg that names the port.
	Setting string
	// Addr is the address, as host:port.
	Addr string
	// Err is the system's error.
	Err error
}

// Error names the setting, the address and the cause.
func (e *ListenError) Error() string {
	switch {
	case addressInUse(e.Err):
		return fmt.Sprintf("%s: the port of %s is in use by another process: %v", e.Setting, e.Addr, e.Err)
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("%s: no permission to listen on %s: %v; on Linux ports below 1024 need root or CAP_NET_BIND_SERVICE", e.Setting, e.Addr, e.Err)
	}
	return fmt.Sprintf("%s: cannot listen on %s: %v", e.Setting, e.Addr, e.Err)
}

// Unwrap returns the system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// checkPorts opens and closes every port that the server will listen on for clients and
// operators. So an unavailable port is found before a data directory is created, and
// before the server reports that it has started. The ports stay closed while the server
// reads its state: a client then tries another server instead of waiting.
func checkPorts(c *Config) error {
	for _, p := range c.ports() {
		l, err := net.Listen("tcp", p.addr)
		if err != nil {
			return &ListenError{Setting: p.setting, Addr: p.addr, Err: err}
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("%s: %w", p.setting, err)
		}
	}
	return nil
}
