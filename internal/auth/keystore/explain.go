package keystore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
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
		return fmt.Errorf("%s %s: %w", describe(leaf), reason(leaf, bad.Err), err)
	case strings.Contains(err.Error(), "remote error: tls: "):
		return fmt.Errorf("the other side has refused this server or its certificate: %w", err)
	}
	return err
}

// describe returns a description of a certificate.
func describe(c *x509.Certificate) string {
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
		return fmt.Sprintf("depends on one that is out of date: %s %s", describe(invalid.Cert), outdated(invalid.Cert, time.Now()))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return outdated(leaf, time.Now())
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return "is not meant for this side of a connection (its extended key usage does not say so)"
	case errors.As(err, &unknown):
		return "is signed by nobody in the trust store"
	case errors.As(err, &host):
		return "is for another host"
	case errors.Is(err, errRevoked):
		return "was revoked"
	case errors.Is(err, errUnchecked):
		return "may have been revoked"
	}
	return "is not good"
}

// outdated reports when c expired or becomes valid, or "" if c is valid at now.
func outdated(c *x509.Certificate, now time.Time) string {
	switch {
	case now.After(c.NotAfter):
		return "has expired on " + c.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(c.NotBefore):
		return "is not valid before " + c.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}
