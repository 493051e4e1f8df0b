package quorum

import "crypto/tls"

// Authenticates reports whether a caller has to prove who it is before it is heard:
// by a certificate that is verified, or by a password.
func (s Security) Authenticates() bool {
	if s.SASL != nil && s.SASL.Require {
		return true
	}
	return s.TLS != nil && !s.TLS.AcceptPlain && s.TLS.Config != nil && s.TLS.Config().ClientAuth >= tls.RequireAndVerifyClientCert
}
