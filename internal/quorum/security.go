package quorum

import "crypto/tls"

// Authenticates reports whether a caller must prove its identity first, with a verified
// certificate or a password.
func (s Security) Authenticates() bool {
	if s.SASL != nil && s.SASL.Require {
		return true
	}
	return s.TLS != nil && !s.TLS.AcceptPlain && s.TLS.Config != nil && s.TLS.Config().ClientAuth >= tls.RequireAndVerifyClientCert
}
