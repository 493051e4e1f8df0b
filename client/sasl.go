package client

import "github.com/zkgo/zkgo/internal/sasl"

// SASLMechanism starts a conversation for every connection. It must be safe for
// concurrent use.
type SASLMechanism interface {
	// Begin starts a conversation. host is the host name in the connect string.
	Begin(host string) SASLConversation
}

// SASLConversation is the client's side of one authentication.
type SASLConversation interface {
	// Next takes the server's token, nil for the first call, and returns the
	// response. done says that the conversation ends after the server's reply to this
	// response. A nil response with done is not sent.
	Next(challenge []byte) (response []byte, done bool, err error)
}

// DigestMD5 is the mechanism that ZooKeeper servers call DIGEST-MD5 and configure with a
// JAAS section of DigestLoginModule. It is obsolete: it doesn't send the password in the
// clear, but an eavesdropper can guess passwords offline. You should prefer TLS.
func DigestMD5(user, password string) SASLMechanism { return digestMD5{user, password} }

type digestMD5 struct{ user, password string }

// Begin implements [SASLMechanism].
func (m digestMD5) Begin(string) SASLConversation { return sasl.NewClient(m.user, m.password) }
