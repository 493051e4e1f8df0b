package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/zkgo/zkgo/raftfsm"
)

// verify reports everything for which Start would refuse a configuration and which
// can be seen without opening the data or a port: what it points at is read, too.
// Every command that reads a configuration file calls it, by FromZooCfg, so that
// what one accepts is accepted by all.
func (c Config) verify() error {
	c = c.withDefaults()
	errs := []error{c.check(), sameAddress(c.Members)}
	if c.TLS != nil {
		_, err := newTLSPort(c.TLS, slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	if c.QuorumTLS != nil && c.distributed() {
		_, err := c.QuorumTLS.load(slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	for key, addr := range map[string]string{"clientPortAddress": c.ClientAddr, "secureClientPortAddress": c.SecureAddr} {
		if host, _, err := net.SplitHostPort(addr); err == nil && strings.ContainsAny(host, "“”„‘’\"' ") {
			errs = append(errs, fmt.Errorf("%s: %q is no host: quotes belong to the value here, so leave them out", key, host))
		}
	}
	return errors.Join(errs...)
}

// sameAddress reports servers that would have to listen on the same port of the
// same host for the others.
func sameAddress(members []raftfsm.Member) error {
	of := make(map[string]uint64)
	for _, m := range members {
		host, _, _ := net.SplitHostPort(m.QuorumAddr)
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			continue // its own line, as some files have it
		}
		if other, taken := of[m.QuorumAddr]; taken {
			return fmt.Errorf("server.%d and server.%d have the same quorum address %s: give each server its own host or port", other, m.ID, m.QuorumAddr)
		}
		of[m.QuorumAddr] = m.ID
	}
	return nil
}
