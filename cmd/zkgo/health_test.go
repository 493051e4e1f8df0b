package main

import (
	"net"
	"strings"
	"testing"
	"time"
)

// closing listens, and passes each connection to end after it has read from it.
func closing(t *testing.T, end func(*net.TCPConn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			end(c.(*net.TCPConn))
		}
	}()
	return l.Addr().String()
}

// TestHealthWait checks that --wait limits the time, also below the default of
// --timeout, and that the error is the server's and not the end of the wait.
func TestHealthWait(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	began := time.Now()
	_, _, err = zkgo(t, "health", "-s", l.Addr().String(), "--wait", "500ms", "--timeout", "1m")
	if took := time.Since(began); took < 500*time.Millisecond || took > 30*time.Second {
		t.Errorf("waited %v", took)
	}
	if err == nil || !strings.Contains(err.Error(), "no server listens there") {
		t.Error(err)
	}
}

// TestHealthOfAnotherPort checks the hint about a port that closes or resets the
// connection.
func TestHealthOfAnotherPort(t *testing.T) {
	t.Parallel()
	reset := closing(t, func(c *net.TCPConn) {
		_ = c.SetLinger(0)
		c.Close()
	})
	eof := closing(t, func(c *net.TCPConn) { c.CloseWrite(); _, _ = c.Read(make([]byte, 4096)); c.Close() })
	for args, want := range map[string]string{
		"-s " + reset:             "it may expect TLS (--secure)",
		"--secure -s " + eof:      "the port may not speak TLS",
		"--secure -s " + reset:    "the port may not speak TLS",
		"--live -s " + reset:      "it may expect TLS (--secure)",
		"--word mntr -s " + reset: "it may expect TLS (--secure)",
	} {
		if _, _, err := zkgo(t, append([]string{"health"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("health %s: %v, want %q", args, err, want)
		}
	}
}
