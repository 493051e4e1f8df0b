package observermaster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/internal/zab"
)

// secure starts TLS and authenticates, as configured, before the first packet. With TLS, it
// replaces the connection.
func (o *observer) secure() error {
	if err := o.raw.SetDeadline(time.Now().Add(o.m.cfg.silence())); err != nil {
		return err
	}
	o.conn = o.raw
	if begin := o.m.cfg.TLS; begin != nil {
		var err error
		if o.conn, err = begin(o.raw, time.Now().Add(o.m.cfg.silence())); err != nil {
			o.conn = o.raw
			return err
		}
		if err := o.raw.SetDeadline(time.Now().Add(o.m.cfg.silence())); err != nil {
			return err
		}
	}
	o.r = bufio.NewReaderSize(o.conn, 16<<10)
	if err := o.authenticate(); err != nil {
		return err
	}
	return o.raw.SetDeadline(time.Time{})
}

// authenticate handles the login of an observer, like SaslQuorumAuthServer.
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
		return errors.New("it does not use SASL, which this server requires (quorum.auth.serverRequireSasl)")
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
