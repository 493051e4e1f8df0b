package learner

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
)

// Conn is a connection to the leader of an ensemble that has accepted us as an observer.
type Conn struct {
	cfg     Config
	conn    net.Conn
	r       *bufio.Reader
	addr    string
	epoch   int64
	zkgo    bool          // the other side is a zkgo server
	mirror  bool          // and its state belongs to another ensemble
	timeout time.Duration // for the next byte from the leader; Follow changes it, holding send

	send    sync.Mutex // guards writes and the fields below
	out     []byte
	members string // of NEWLEADER
	asked   questions
}

// ErrNoLeader is the error when no address leads to a leader. It wraps each server's answer.
var ErrNoLeader = errors.New("learner: no leader")

// The causes when a server and we don't agree how to secure the connection. Their texts name the
// settings of the ensemble; the caller knows which of our settings help.
var (
	// ErrCertificate means that we don't trust the server's certificate.
	ErrCertificate = errors.New("the server's certificate (ssl.quorum.keyStore) is not trusted here")
	// ErrOurCertificate means that the server doesn't trust ours, or that we have none.
	ErrOurCertificate = errors.New("the server does not accept our certificate: its authority must be in ssl.quorum.trustStore there")
	// ErrNoTLS means that the server ended the handshake.
	ErrNoTLS = errors.New("the server does not answer the TLS handshake: it may not use TLS between servers (sslQuorum)")
	// ErrLogin means that the user or the password is wrong.
	ErrLogin = errors.New("the user or the password is not that in section QuorumServer of its JAAS file")
	// ErrNoLogin means that the server didn't accept any login.
	ErrNoLogin = errors.New("the server does not use SASL between servers (quorum.auth.enableSasl), or uses TLS before it (sslQuorum)")
	// ErrTurnedAway means that the server closed the connection when it read who we are.
	ErrTurnedAway = errors.New("the server closed the connection when we registered: it may require SASL (quorum.auth.serverRequireSasl), TLS (sslQuorum) or another certificate, or it has stopped leading")
)

// ended reports whether the other side has closed a connection.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// refused reports whether an error is the server's alert that it does not accept our certificate.
// With TLS 1.3 it arrives after the handshake.
func refused(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}

// handshakeError adds the cause to the error of a TLS handshake.
func handshakeError(err error) error {
	var (
		record tls.RecordHeaderError
		verify *tls.CertificateVerificationError
	)
	switch {
	case refused(err):
		return fmt.Errorf("%w (%w)", ErrOurCertificate, err)
	case errors.As(err, &verify):
		return fmt.Errorf("%w (%w)", ErrCertificate, err)
	case errors.As(err, &record), ended(err):
		return fmt.Errorf("%w (%w)", ErrNoTLS, err)
	}
	return err
}

// Dial finds the leader among cfg.Addrs and registers as an observer that has all transactions
// up to zxid; 0 means none. Only a leader listens at its quorum port. We try all addresses
// concurrently and use the first server that accepts us: a server that is down may not answer at
// all, and one without a quorum may still believe that it leads. While such a server keeps us
// waiting, we ask the others again, because another server may become the leader.
func Dial(ctx context.Context, cfg Config, zxid int64) (*Conn, error) {
	cfg = cfg.withDefaults()
	if len(cfg.Addrs) == 0 {
		return nil, errors.New("learner: no addresses of servers")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		i    int
		conn *Conn
		err  error
	}
	results := make(chan result)
	attempt := func(i int, pause time.Duration) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		c, err := dial(ctx, &cfg, cfg.Addrs[i], zxid)
		results <- result{i, c, err}
	}
	for i := range cfg.Addrs {
		go attempt(i, 0)
	}
	var found *Conn
	failed := make([]error, len(cfg.Addrs)) // each server's first error
	first := len(failed)                    // attempts that are the first to their server, and not over
	for running := first; running > 0; running-- {
		r := <-results
		if failed[r.i] == nil {
			failed[r.i] = r.err
			first--
		}
		switch {
		case r.err != nil:
		case found != nil:
			_ = r.conn.Close() // we need one
		default:
			found = r.conn
		}
		if found != nil || first == 0 {
			cancel()
		} else if ctx.Err() == nil {
			running++
			go attempt(r.i, again)
		}
	}
	if found == nil {
		return nil, errors.Join(append([]error{ErrNoLeader}, failed...)...)
	}
	return found, nil
}

// again is the pause before we ask a server again.
const again = 200 * time.Millisecond

// dial connects to one server and registers there.
func dial(ctx context.Context, cfg *Config, addr string, zxid int64) (*Conn, error) {
	conn, err := connect(ctx, cfg, addr)
	if err != nil {
		return nil, fmt.Errorf("learner: %w", err)
	}
	c := &Conn{cfg: *cfg, conn: conn, addr: addr, timeout: cfg.SyncTimeout}
	c.r = bufio.NewReaderSize(&deadlineReader{c}, 256<<10)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = c.start(zxid)
	if refused(err) {
		err = fmt.Errorf("%w (%w)", ErrOurCertificate, err)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("learner: %s: %w", addr, err), c.Close())
	}
	return c, nil
}

// start authenticates and registers.
func (c *Conn) start(zxid int64) error {
	if c.cfg.User != "" {
		if err := c.authenticate(c.cfg.User, c.cfg.Password); err != nil {
			return fmt.Errorf("SASL: %w", err)
		}
	}
	return c.register(zxid)
}

// connect connects to one server, with TLS if it is configured.
func connect(ctx context.Context, cfg *Config, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	conn, err := cfg.Dial(ctx, "tcp", addr)
	if err != nil || cfg.TLS == nil {
		return conn, err
	}
	config := cfg.TLS
	if config.ServerName == "" && !config.InsecureSkipVerify {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: TLS: %w", addr, handshakeError(err)), conn.Close())
	}
	return secure, nil
}

// register sends our number and newest zxid, and checks the leader's answer.
func (c *Conn) register(zxid int64) error {
	info := proto.AppendLong(nil, c.cfg.ID)
	info = proto.AppendInt(info, zab.ProtocolVersion)
	info = proto.AppendLong(info, 0) // the version of the configuration we know; a higher one than the leader's is refused
	err := c.sendPacket(zab.Packet{Kind: zab.KindObserverInfo, Zxid: zab.EpochOf(zxid) << 32, Data: info})
	var p zab.Packet
	if err == nil {
		p, err = c.readPacket()
	}
	switch {
	case ended(err):
		return fmt.Errorf("%w (%w)", ErrTurnedAway, err)
	case err != nil:
		return err
	case p.Kind != zab.KindLeaderInfo:
		return fmt.Errorf("the server answered %v instead of LEADERINFO: it is no leader of ZooKeeper 3.4 to 3.9", p.Kind)
	}
	d := proto.NewReader(p.Data)
	if version := d.Int(); d.Err() != nil || version != zab.ProtocolVersion {
		return fmt.Errorf("the leader speaks version %#x of the learner protocol, we know %#x", version, zab.ProtocolVersion)
	}
	extension := string(d.Rest())
	c.mirror = extension == zab.ExtensionOfMirror
	c.zkgo = extension == zab.Extension || c.mirror
	c.epoch = zab.EpochOf(p.Zxid)
	ours, current := zab.EpochOf(zxid), int32(-1)
	switch {
	case c.epoch < ours:
		return fmt.Errorf("the leader's epoch %d is older than the epoch %d of our newest transaction: it is another ensemble, or it has lost transactions", c.epoch, ours)
	case c.epoch > ours:
		current = int32(ours)
	}
	data := proto.AppendInt(nil, current)
	if c.zkgo {
		data = append(data, zab.Extension...)
	}
	return c.sendPacket(zab.Packet{Kind: zab.KindAckEpoch, Zxid: zxid, Data: data})
}

// Members returns the ensemble's configuration as text, e.g. server.1=…, as the leader sent it
// before the state became exact; "" before that, and for ZooKeeper 3.4. Later changes are in
// the znode /zookeeper/config.
func (c *Conn) Members() string {
	c.send.Lock()
	defer c.send.Unlock()
	return c.members
}

// Addr returns the leader's address.
func (c *Conn) Addr() string { return c.addr }

// Zkgo reports whether the other side is a zkgo server. It need not lead its ensemble, and the only
// Request that it accepts is sync.
func (c *Conn) Zkgo() bool { return c.zkgo }

// Mirror reports whether the other side is a zkgo server that follows another ensemble itself. It
// answers no sync.
func (c *Conn) Mirror() bool { return c.mirror }

// Epoch returns the leader's epoch.
func (c *Conn) Epoch() int64 { return c.epoch }

// Close closes the connection. It is safe for concurrent use and ends Follow.
func (c *Conn) Close() error { return c.conn.Close() }

// deadlineReader reads from the connection, and fails if nothing arrives in time.
type deadlineReader struct{ *Conn }

// Read implements io.Reader.
func (d deadlineReader) Read(b []byte) (int, error) {
	_ = d.conn.SetReadDeadline(time.Now().Add(d.timeout)) // an error shows in Read
	n, err := d.conn.Read(b)
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		err = fmt.Errorf("no byte for %v: %w", d.timeout, err)
	}
	return n, err
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func (c *Conn) readPacket() (zab.Packet, error) { return zab.ReadPacket(c.r, c.cfg.maxPacket()) }

func (c *Conn) sendPacket(p zab.Packet) error {
	c.send.Lock()
	defer c.send.Unlock()
	return c.sendLocked(p)
}

// sendLocked is sendPacket for a caller that has locked send.
func (c *Conn) sendLocked(p zab.Packet, identities ...proto.ID) error {
	c.out = zab.AppendPacket(c.out[:0], p, identities...)
	return c.write(c.out)
}

// write writes b, within the time that we also give the leader. A part of a packet may have
// been sent when it fails, so we send nothing more. The caller has locked send, unless no other
// goroutine has c.
func (c *Conn) write(b []byte) error {
	err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout))
	if err == nil {
		_, err = c.conn.Write(b)
	}
	if err != nil {
		c.asked.open = false
		_ = c.conn.Close() // ends Follow
	}
	return err
}
