package main

import (
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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
		"-s " + reset:                "it may expect TLS (--tls)",
		"--tls-insecure -s " + eof:   "the port may not speak TLS",
		"--tls-insecure -s " + reset: "the port may not speak TLS",
		"--live -s " + reset:         "it may expect TLS (--tls)",
		"--word mntr -s " + reset:    "it may expect TLS (--tls)",
	} {
		if _, _, err := zkgo(t, append([]string{"health"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("health %s: %v, want %q", args, err, want)
		}
	}
}

// words answers four-letter words until the test ends.
func words(t *testing.T, answer func(word string) string) (addr string) {
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
			word := make([]byte, 4)
			if _, err := io.ReadFull(c, word); err == nil {
				_, _ = io.WriteString(c, answer(string(word)))
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}

// TestHealthWaitsForWords checks that --wait also works with --live, until the server
// answers, and with --word, which we send when the server serves.
func TestHealthWaitsForWords(t *testing.T) {
	t.Parallel()
	const silent, without = "", "This ZooKeeper instance is not currently serving requests\n"
	for _, c := range []struct {
		flag, want string
		answers    []string // to srvr
		looks      int32
	}{
		{"--live", "live\n", []string{silent, silent, without}, 3},
		{"--word=mntr", "mntr\tyes\n\n", []string{silent, without, "Mode: leader\n"}, 3},
		{"--word=mntr", "mntr\tyes\n\n", []string{"Mode: leader\n"}, 1},
	} {
		var looks atomic.Int32
		addr := words(t, func(word string) string {
			if word != "srvr" {
				return "mntr\tyes\n"
			}
			n := looks.Add(1)
			return c.answers[min(int(n), len(c.answers))-1]
		})
		out, _, err := zkgo(t, "health", "-s", addr, "--wait", "60s", c.flag)
		if err != nil || out != c.want || looks.Load() != c.looks {
			t.Errorf("%s: %q after %d looks, %v", c.flag, out, looks.Load(), err)
		}
	}
	addr := words(t, func(string) string { return without })
	// On a busy machine the server may need longer than the command waits, so we try again.
	says := func(want string, args ...string) {
		t.Helper()
		var err error
		for range 5 {
			if _, _, err = zkgo(t, append([]string{"health", "-s", addr, "--wait", "2s"}, args...)...); err != nil && strings.Contains(err.Error(), want) {
				return
			}
		}
		t.Errorf("%v", err)
	}
	says("does not serve clients: it has no quorum", "--word", "mntr")
	addr = words(t, func(string) string { return silent })
	says("it may expect TLS (--tls)", "--live")
}

// TestReportsWhyItCannotConnect checks that commands without a client session explain a
// failed connect in the same words as zkgo cli, with their own flags.
func TestReportsWhyItCannotConnect(t *testing.T) {
	t.Parallel()
	without := words(t, func(string) string { return "This ZooKeeper instance is not currently serving requests\n" })
	serves := words(t, func(word string) string {
		if word == "srvr" {
			return "Mode: standalone\n"
		}
		return ""
	})
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	web := strings.TrimPrefix(secure.URL, "https://")
	waits := web // four letters are less than the header of a TLS record
	alert := words(t, func(string) string { return "\x15\x03\x03\x00\x02\x02\x46" })
	for args, want := range map[string]string{
		"health -s 127.0.0.1:1":                               "127.0.0.1:1: connection refused: no server listens there",
		"health -s nosuch.invalid:2181":                       "nosuch.invalid:2181: no such host: check the host name",
		"health -s " + without:                                without + ": it runs but does not serve clients: it has no quorum",
		"health -s " + alert:                                  alert + ": the port expects TLS: use --tls",
		"bench get -q -s 127.0.0.1:1":                         "127.0.0.1:1: connection refused: no server listens there",
		"bench get -q -s nosuch.invalid:2181":                 "nosuch.invalid:2181: no such host: check the host name",
		"bench get -q -s " + alert:                            alert + ": the port expects TLS: use --tls",
		"health --timeout 2s -s " + waits:                     waits + ": the port expects TLS: use --tls",
		"backup --from " + web + " FILE":                      "the port expects TLS: use https://",
		"bench get -q -s nosuch:x":                            "unknown port",
		"backup --from 127.0.0.1:1 FILE":                      "127.0.0.1:1: connection refused: no server listens there",
		"backup --from http://nosuch.invalid FILE":            "nosuch.invalid:http: no such host: check the host name",
		"backup --from " + serves + " FILE":                   serves + ": a ZooKeeper client would be served there: --from is the URL of an AdminServer",
		"backup --from https://" + alert + " FILE":            alert + ": ",
		"backup --from http://" + alert + " FILE":             alert + ": the port expects TLS: use https:// in --from",
		"backup --from 127.0.0.1:1 --from " + alert + " FILE": "no server listens there",
	} {
		args = strings.ReplaceAll(args, "FILE", t.TempDir()+"/a.zkb")
		if _, _, err := zkgo(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("zkgo %s: %v, want %q", args, err, want)
		}
	}
	// A server without a quorum closes the connection of a client but answers srvr.
	quorum := words(t, func(word string) string {
		if word == "srvr" {
			return "This ZooKeeper instance is not currently serving requests\n"
		}
		return ""
	})
	if _, _, err := zkgo(t, "bench", "get", "-q", "-s", quorum); err == nil || !strings.Contains(err.Error(), quorum+": it runs but does not serve clients: it has no quorum") {
		t.Errorf("bench: %v", err)
	}
}
