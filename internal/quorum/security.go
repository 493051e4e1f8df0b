package quorum

import "crypto/tls"

// Security configures how servers authenticate each other. Both fields may be nil: then
// all traffic is plaintext, and a server trusts any caller.
type Security struct {
	TLS  *TLS
	SASL *SASL // inside TLS, if TLS is used
}

// Authenticates reports whether a caller must prove its identity first, with a verified
// certificate or a password.
func (s Security) Authenticates() bool {
	if s.SASL != nil && s.SASL.Require {
		return true
	}
	return s.TLS != nil && !s.TLS.AcceptPlain && s.TLS.Config != nil && s.TLS.Config().ClientAuth >= tls.RequireAndVerifyClientCert
}
