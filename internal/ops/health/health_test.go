package health

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// serve answers the four-letter word of each connection with the result of answer.
func serve(t *testing.T, config *tls.Config, answer func(word string) string) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	if config != nil {
		l = tls.NewListener(l, config)
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

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

const serving = "Zookeeper version: 3.9.5\nMode: follower\nNode count: 5\n"

func TestServing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, mode, err string }{
		{serving, "follower", ""},
		{"This ZooKeeper instance is not currently serving requests\n", "", ErrNotServing.Error()},
		{"srvr is not executed because it is not in the whitelist.\n", "", "not in the whitelist"},
		{"", "", "it may expect TLS"},
	} {
		addr := serve(t, nil, func(word string) string {
			if word != "srvr" {
				t.Errorf("asked for %q", word)
			}
			return c.answer
		})
		mode, err := Serving(within(t), Target{Addr: addr})
		if mode != c.mode || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, %v", c.answer, mode, err)
		}
		if err := Live(within(t), Target{Addr: addr}); (err == nil) != (c.answer != "") {
			t.Errorf("%q: live: %v", c.answer, err)
		}
	}
}

func TestNoListener(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.Close()
	if _, err := Serving(within(t), Target{Addr: l.Addr().String()}); err == nil || errors.Is(err, ErrNotServing) {
		t.Error(err)
	}
}

// TestSilence checks that the wait for a server that hangs ends with the caller's
// timeout.
func TestSilence(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	addr := serve(t, nil, func(string) string { cancel(); <-t.Context().Done(); return "" })
	if _, err := Word(ctx, Target{Addr: addr}, "srvr"); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), addr) {
		t.Error(err)
	}
	if _, err := Word(t.Context(), Target{Addr: addr}, "hello"); err == nil {
		t.Error("five letters are a word")
	}
}

// TestAwait queries until the server serves.
func TestAwait(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	addr := serve(t, nil, func(string) string {
		if asked.Add(1) < 4 {
			return "This ZooKeeper instance is not currently serving requests\n"
		}
		return serving
	})
	mode, err := Await(within(t), Target{Addr: addr}, time.Minute, time.Millisecond)
	if mode != "follower" || err != nil || asked.Load() != 4 {
		t.Errorf("%q, %v, asked %d times", mode, err, asked.Load())
	}
}

// TestAwaitInVain checks that Await returns the error of the last attempt instead of
// a timeout.
func TestAwaitInVain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int32
	addr := serve(t, nil, func(string) string {
		if asked.Add(1) == 3 {
			cancel()
		}
		return "This ZooKeeper instance is not currently serving requests\n"
	})
	if _, err := Await(ctx, Target{Addr: addr}, time.Minute, time.Millisecond); !errors.Is(err, ErrNotServing) {
		t.Error(err)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"clientPort=2181": "localhost:2181",
		"clientPort=2181\nclientPortAddress=0.0.0.0":               "localhost:2181",
		"clientPort=2182\nclientPortAddress=10.1.2.3":              "10.1.2.3:2182",
		"clientPort=2183\nclientPortAddress=::1":                   "[::1]:2183",
		"clientPort=2181\nsecureClientPort=2281":                   "localhost:2181",
		"tickTime=2000":                                            "",
		"standaloneEnabled=false\nserver.5=a:1:2;127.0.0.1:2199":   "127.0.0.1:2199",
		"standaloneEnabled=false\nclientPort=2181\nserver.5=a:1:2": "localhost:2181",
	} {
		c, err := zoocfg.ParseText("zoo.cfg", "dataDir=/nowhere\ninitLimit=5\nsyncLimit=5\n"+text, zoocfg.WithMyID(5))
		if err != nil {
			t.Fatal(text, err)
		}
		if got, err := Of(c); got.Addr != want || (err == nil) != (want != "") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestSecure queries a port that requires TLS and a client certificate, using the
// server's own.
func TestSecure(t *testing.T) {
	t.Parallel()
	store, cert := keyPair(t)
	addr := serve(t, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert}, func(string) string { return serving })
	host, port, _ := net.SplitHostPort(addr)
	c := must.Get(zoocfg.ParseText("zoo.cfg", "dataDir=/nowhere\nsecureClientPort="+port+"\nsecureClientPortAddress="+host+"\nssl.keyStore.location="+store))(t)
	target := must.Get(Of(c))(t)
	if mode, err := Serving(within(t), target); mode != "follower" || err != nil {
		t.Errorf("%q, %v", mode, err)
	}
	target.TLS.Certificates = nil
	if _, err := Serving(within(t), target); err == nil {
		t.Error("served without a certificate: this test shows nothing")
	}
	c.TLS.KeyStore.Location += ".gone"
	if _, err := Of(c); err == nil {
		t.Error("no error for a missing key store")
	}
}

// keyPair creates a certificate, in memory and as a PEM file.
func keyPair(t *testing.T) (string, tls.Certificate) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	pkcs8 := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	path := filepath.Join(t.TempDir(), "key.pem")
	must.Do(t, os.WriteFile(path, text, 0o600))
	return path, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestAwaitCutShort checks that Await and AwaitLive return the result of an attempt and not
// the timeout of a later one, which the end of the wait has cut short. A dial compares the
// deadline itself, so it may fail slightly before ctx.Err reports the end.
func TestAwaitCutShort(t *testing.T) {
	t.Parallel()
	for answer, await := range map[string]func(ctx context.Context, t Target) error{
		"This ZooKeeper instance is not currently serving requests\n": func(ctx context.Context, t Target) error {
			_, err := Await(ctx, t, time.Minute, time.Millisecond)
			return err
		},
		"": func(ctx context.Context, t Target) error { return AwaitLive(ctx, t, time.Minute, time.Millisecond) },
	} {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := &late{Context: parent}
		addr := serve(t, nil, func(string) string {
			ctx.over.Store(true)
			time.AfterFunc(50*time.Millisecond, cancel)
			return answer
		})
		if err := await(ctx, Target{Addr: addr}); err == nil || timedOut(err) {
			t.Errorf("after the answer %q: %v", answer, err)
		}
	}
}

// late is a context with a deadline that passes before its timer runs.
type late struct {
	context.Context
	over atomic.Bool
}

func (l *late) Deadline() (time.Time, bool) {
	if l.over.Load() {
		return time.Now().Add(-time.Millisecond), true
	}
	return time.Now().Add(time.Minute), true
}
