package client

import "github.com/zkgo/zkgo/internal/sasl"

// SASLMechanism begins a conversation for every connection. It must be safe for
// concurrent use.
type SASLMechanism interface {
	// Begin is given the host's name as the connect string has it.
	Begin(host string) SASLConversation
}

// SASLConversation is the client's side of one authentication.
type SASLConversation interface {
	// Next takes the server's token, nil for the first call, and returns the one to
	// answer with. done says that the server's answer to it, if any, is the last
	// word; a nil token with done is not sent.
	Next(challenge []byte) (response []byte, done bool, err error)
}

// DigestMD5 is the mechanism that ZooKeeper's servers call DIGEST-MD5 and
// configure with a JAAS section of DigestLoginModule. It is historic: it hides
// the password from who listens, but not from who tries many. Prefer TLS.
func DigestMD5(user, password string) SASLMechanism { return digestMD5{user, password} }

type digestMD5 struct{ user, password string }

// Begin implements [SASLMechanism].
func (m digestMD5) Begin(string) SASLConversation { return sasl.NewClient(m.user, m.password) }
