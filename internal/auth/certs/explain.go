package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors for a certificate that was, or may have been, revoked.
var (
	ErrRevoked   = errors.New("it was revoked")
	ErrUnchecked = errors.New("its revocation status is unknown")
)

// Explain adds the certificate and the reason to a handshake error that is about a
// certificate. It returns other errors unchanged.
func Explain(err error) error {
	var bad *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad) && len(bad.UnverifiedCertificates) > 0:
		leaf := bad.UnverifiedCertificates[0]
		return fmt.Errorf("%s %s: %w", Describe(leaf), reason(leaf, bad.Err), err)
	case strings.Contains(err.Error(), "remote error: tls: "):
		return fmt.Errorf("the peer rejected this server or its certificate: %w", err)
	}
	return err
}

// Describe returns a description of a certificate.
func Describe(c *x509.Certificate) string {
	name, err := Subject(c)
	if err != nil || name == "" {
		name = fmt.Sprint("no name ", c.DNSNames, c.IPAddresses)
	}
	return fmt.Sprintf("the certificate of %s (issued by %s, serial number %x)", name, c.Issuer, c.SerialNumber)
}

// reason describes why the certificate was rejected.
func reason(leaf *x509.Certificate, err error) string {
	var (
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil && !invalid.Cert.Equal(leaf):
		return fmt.Sprintf("depends on an expired certificate: %s %s", Describe(invalid.Cert), Outdated(invalid.Cert, time.Now()))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return Outdated(leaf, time.Now())
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return "is not valid for this side of a connection (extended key usage)"
	case errors.As(err, &unknown):
		return "is not signed by an authority in the trust store"
	case errors.As(err, &host):
		return "is for another host"
	case errors.Is(err, ErrRevoked):
		return "was revoked"
	case errors.Is(err, ErrUnchecked):
		return "may have been revoked"
	}
	return "is invalid"
}

// Outdated reports when c expired or becomes valid, or "" if c is valid at now.
func Outdated(c *x509.Certificate, now time.Time) string {
	switch {
	case now.After(c.NotAfter):
		return "expired on " + c.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(c.NotBefore):
		return "is not valid before " + c.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}
