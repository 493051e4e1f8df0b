package schemes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/proto"
)

// The schemes that the server gives a meaning.
const (
	Auth     = "auth" // in an ACL: all identities that the client has proved
	Digest   = "digest"
	X509     = tlsport.Scheme
	SASL     = "sasl"
	Super    = "super"    // of the identity that has every permission
	Ensemble = "ensemble" // of the packet with which a client names the ensemble it wants
	Key      = "key"      // of ZooKeeper's KeyAuthenticationProvider, an example of a provider that reads the tree
	// Options is the scheme of an auth packet that sets an option and proves no identity.
	// We use auth packets because every client library sends them again on a new
	// connection.
	Options = "zkgo"
)

// own are reserved. Key is too while it is enabled.
var own = []string{Auth, "world", Digest, "ip", X509, SASL, Super, Ensemble, Options}

// CheckNames reports providers with a scheme that can't be used.
func CheckNames(providers []string, key bool) error {
	var seen []string
	if key {
		seen = append(seen, Key)
	}
	for _, scheme := range providers {
		if scheme == "" || strings.Contains(scheme, ":") || slices.Contains(own, scheme) || slices.Contains(seen, scheme) {
			return fmt.Errorf("AuthProviders: the scheme %q is empty, contains a colon, is ZooKeeper's own, or is a duplicate", scheme)
		}
		seen = append(seen, scheme)
	}
	return nil
}

// CheckProved rejects identities that a provider must not return.
func CheckProved(scheme string, ids []proto.ID) error {
	if len(ids) == 0 {
		return fmt.Errorf("the provider of %q has returned no identity", scheme)
	}
	for _, id := range ids {
		if id.Scheme != Super && (id.Scheme != scheme || id.ID == "") {
			return fmt.Errorf("the provider of %q has returned the identity %q:%q", scheme, id.Scheme, id.ID)
		}
	}
	return nil
}
