package server

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// quietTLS returns the configuration of a server that sends nothing after the
// handshake.
func quietTLS(t *testing.T, a *authority) *tls.Config {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(a.dir+"/server.pem", a.dir+"/server.pem")
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true, MinVersion: tls.VersionTLS13}
}

// requestKeyUpdate does the handshake on nc and asks for an update of the server's key.
// It doesn't read the answer. package crypto/tls can't send such a request, so it is
// made here with the keys of the connection.
func requestKeyUpdate(t *testing.T, nc net.Conn, config *tls.Config) {
	t.Helper()
	var log bytes.Buffer
	config = config.Clone()
	config.ServerName, config.KeyLogWriter = "127.0.0.1", &log
	c := tls.Client(nc, config)
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if suite := c.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skipf("made for another cipher suite than %s", tls.CipherSuiteName(suite))
	}
	_, line, _ := strings.Cut(log.String(), "CLIENT_TRAFFIC_SECRET_0 ")
	secret, err := hex.DecodeString(strings.Fields(line)[1])
	if err != nil {
		t.Fatal(err)
	}
	expand := func(label string, n int) []byte {
		info := binary.BigEndian.AppendUint16(nil, uint16(n))
		info = append(info, byte(len("tls13 ")+len(label)))
		info = append(append(info, "tls13 "+label...), 0)
		b, err := hkdf.Expand(sha256.New, secret, string(info), n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	block, err := aes.NewCipher(expand("key", 16))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	message := []byte{24, 0, 0, 1, 1, 22} // KeyUpdate, of length 1, update_requested, in a handshake record
	header := []byte{23, 3, 3, 0, byte(len(message) + aead.Overhead())}
	record := aead.Seal(header, expand("iv", aead.NonceSize()), message, header) // the first record: the number is 0
	if _, err := nc.Write(record); err != nil {
		t.Fatal(err)
	}
}

// bufferless returns a connection without buffers. Its second end reports when it is closed.
func bufferless(t *testing.T) (client net.Conn, server *closingConn) {
	t.Helper()
	client, end := net.Pipe()
	t.Cleanup(func() { client.Close() })
	return client, &closingConn{Conn: end, closed: make(chan struct{})}
}

// closingConn reports when it is closed, and whether a write is in progress.
type closingConn struct {
	net.Conn
	writes atomic.Int32
	once   sync.Once
	closed chan struct{}
}

func (c *closingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	defer c.writes.Add(-1)
	return c.Conn.Write(b)
}

func (c *closingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// wantClosed waits until the server closes its end.
func (c *closingConn) wantClosed(t *testing.T) {
	t.Helper()
	select {
	case <-c.closed:
	case <-time.After(patience):
		t.Fatal("the connection is still open")
	}
}

// A client that asks for key updates and doesn't read the answers can be closed, and
// doesn't keep the server from stopping.
func TestUnreadKeyUpdate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startTLS(t, a, func(c *Config) {
		c.TLS = &TLS{Config: quietTLS(t, a)}
	})
	nc, server := bufferless(t)
	s.begin(server, s.ports.tls)
	requestKeyUpdate(t, nc, a.client(nil))
	eventually(t, "the server waits for the client to read", func() bool { return server.writes.Load() == 1 })
	s.clients.each((*conn).kill)
	server.wantClosed(t)
	eventually(t, "the server has removed the connection", func() bool {
		s.clients.mu.Lock()
		defer s.clients.mu.Unlock()
		return len(s.clients.conns) == 0
	})
}
