package observermaster

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/internal/zab"
)

// recordHandshake is the first byte of a TLS connection. A packet begins with 0.
const recordHandshake = 0x16

// secure does what the configuration demands before the first packet. It replaces the connection
// by one inside TLS.
func (o *observer) secure() error {
	if err := o.raw.SetDeadline(time.Now().Add(o.m.cfg.silence())); err != nil {
		return err
	}
	if err := o.encrypt(); err != nil {
		return err
	}
	if err := o.authenticate(); err != nil {
		return err
	}
	return o.raw.SetDeadline(time.Time{})
}

// peeked is a connection that we have read from into a buffer.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

// Read implements net.Conn.
func (p peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

func (o *observer) encrypt() error {
	cfg := &o.m.cfg
	o.conn = o.raw
	if cfg.TLS != nil {
		r := bufio.NewReaderSize(o.raw, 16)
		first, err := r.Peek(1)
		switch {
		case err != nil:
			return err
		case first[0] == recordHandshake:
			secure := tls.Server(peeked{o.raw, r}, cfg.TLS())
			if err := secure.HandshakeContext(context.Background()); err != nil { // raw has a deadline
				return fmt.Errorf("TLS: %w", err)
			}
			o.conn = secure
		case cfg.AcceptPlain:
			o.conn = peeked{o.raw, r}
		default:
			return errors.New("it does not use TLS, which this server demands (sslQuorum)")
		}
	}
	o.r = bufio.NewReaderSize(o.conn, 16<<10)
	return nil
}

// authenticate takes the login of an observer, as SaslQuorumAuthServer does.
func (o *observer) authenticate() error {
	cfg := &o.m.cfg
	if cfg.Users == nil {
		return nil
	}
	magic, err := o.r.Peek(8)
	switch {
	case err != nil:
		return err
	case binary.BigEndian.Uint64(magic) == uint64(zab.AuthMagic):
	case cfg.RequireLogin:
		return errors.New("it does not use SASL, which this server demands (quorum.auth.serverRequireSasl)")
	default:
		return nil
	}
	exchange := sasl.NewLeaderServer(cfg.Users)
	for {
		_, token, err := zab.ReadToken(o.r)
		if err != nil {
			return err
		}
		answer, user, err := exchange.Step(token)
		status := int32(zab.AuthInProgress)
		switch {
		case err != nil:
			_ = o.write(zab.AppendToken(nil, zab.AuthError, nil)) // the connection ends anyway
			return fmt.Errorf("SASL: %w", err)
		case user != "":
			status = zab.AuthSuccess
		}
		if err := o.write(zab.AppendToken(nil, status, answer)); err != nil || user != "" {
			return err
		}
	}
}
