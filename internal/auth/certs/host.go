package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
)

// HostCheck is the check of the host that a client's certificate is for.
type HostCheck struct {
	Verify     bool // the certificate must contain the client's address
	ReverseDNS bool // or a host name of that address
}

// Check checks that a client's certificate contains the client's address, if Verify is set.
func (h HostCheck) Check(state tls.ConnectionState, remote net.Addr) error {
	if !h.Verify || len(state.PeerCertificates) == 0 {
		return nil
	}
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		return err
	}
	leaf := state.PeerCertificates[0]
	if err := verifyHost(leaf, host, h.ReverseDNS); err != nil {
		return fmt.Errorf("%s is not for the address that it comes from: %w", Describe(leaf), err)
	}
	return nil
}

// verifyHost accepts a certificate for the address itself or, with reverse, for a
// name that the address resolves to.
func verifyHost(cert *x509.Certificate, ip string, reverse bool) error {
	err := cert.VerifyHostname(ip)
	if err == nil || !reverse {
		return err
	}
	names, lookupErr := net.LookupAddr(ip)
	if lookupErr != nil {
		return err
	}
	for _, n := range names {
		if cert.VerifyHostname(strings.TrimSuffix(n, ".")) == nil {
			return nil
		}
	}
	return err
}
