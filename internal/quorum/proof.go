package quorum

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"time"
)

// Two members of an ensemble prove to each other that they are members. Their shared secret
// is the ensemble's id, 128 random bits that no other server has. We never put it into a
// handshake. A server names its ensemble by a hash of the id, and proves that it has the id
// with a MAC over both halves of the handshake, each of which contains a fresh challenge.
//
//	the dialler          hello: name, challenge
//	the server it calls  hello: name, challenge, proof over both
//	the dialler          proof over both, if both name the same ensemble
//
// The dialler's stream follows its proof immediately, so the proof costs no round trip.
// We don't trust a peer's claim about its ensemble without the proof: only the proof sets
// Identity.Cluster. The proof doesn't replace TLS: an attacker that controls the network
// can hijack a connection after the proofs.

const (
	// nameSize is large enough that two ensembles don't get the same name by chance.
	nameSize = 8
	// listSize is large enough that two lists don't get the same hash by chance.
	listSize      = 8
	challengeSize = 8
	proofSize     = 16
)

// EnsembleName names an ensemble to peers that may not belong to it. It is a hash of its
// ClusterID.
type EnsembleName [nameSize]byte

func (n EnsembleName) String() string {
	if n == (EnsembleName{}) {
		return "none"
	}
	return hex.EncodeToString(n[:])
}

// Name returns the name of the ensemble, which reveals nothing about the id.
func (c ClusterID) Name() EnsembleName {
	var n EnsembleName
	if c != (ClusterID{}) {
		sum := sha256.Sum256(append([]byte("zkgo ensemble "), c[:]...))
		copy(n[:], sum[:])
	}
	return n
}

// named returns id in the form that a handshake carries.
func (id Identity) named() Identity {
	if id.Cluster != (ClusterID{}) {
		id.Ensemble = id.Cluster.Name()
	}
	clear(id.List[listSize:])
	return id
}

// proof is a MAC that only a member of the ensemble can compute.
type proof [proofSize]byte

// challenge makes the proofs of a connection valid for that connection only.
type challenge [challengeSize]byte

func newChallenge() (c challenge) {
	_, _ = rand.Read(c[:]) // never fails
	return c
}

// answerProof is the accepting server's proof: a MAC over the dialler's message and the
// answer without its proof.
func (c ClusterID) answerProof(said, answer *hello) proof {
	bare := *answer
	bare.proof = proof{}
	return c.sign("answer", said, &bare)
}

// callerProof is the dialler's proof.
func (c ClusterID) callerProof(said, answer *hello) proof { return c.sign("caller", said, answer) }

func (c ClusterID) sign(role string, said, answer *hello) (p proof) {
	m := hmac.New(sha256.New, c[:])
	m.Write([]byte(role))
	m.Write(said.append(nil))
	m.Write(answer.append(nil))
	copy(p[:], m.Sum(nil))
	return p
}

// provable reports whether two servers name the same ensemble, and so must prove it.
func provable(ours Identity, theirs *Identity) bool {
	return ours.Ensemble != (EnsembleName{}) && ours.Ensemble == theirs.Ensemble
}

// verifyAnswer is the dialler's part: it checks the proof of the accepting server, sends
// its own, and marks the other server as a member in the answer.
func verifyAnswer(conn net.Conn, ours Identity, said, answer *hello, by time.Time) (Code, error) {
	if !provable(ours, &answer.from) {
		return Accepted, nil
	}
	if want := ours.Cluster.answerProof(said, answer); !hmac.Equal(want[:], answer.proof[:]) {
		return Impostor, nil
	}
	mine := ours.Cluster.callerProof(said, answer)
	answer.from.Cluster = ours.Cluster
	return Accepted, write(conn, mine[:], by)
}

// verifyCaller is the accepting server's part, after its answer.
func verifyCaller(conn net.Conn, ours Identity, said, answer *hello, by time.Time) (Code, error) {
	if !provable(ours, &said.from) {
		return Accepted, nil
	}
	var theirs proof
	if err := conn.SetReadDeadline(by); err != nil {
		return Accepted, err
	}
	if _, err := io.ReadFull(conn, theirs[:]); err != nil {
		return Accepted, err
	}
	if want := ours.Cluster.callerProof(said, answer); !hmac.Equal(want[:], theirs[:]) {
		return Impostor, nil
	}
	said.from.Cluster = ours.Cluster
	return Accepted, conn.SetReadDeadline(time.Time{})
}
