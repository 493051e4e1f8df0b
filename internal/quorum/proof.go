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

// How two members of an ensemble prove to each other that they are. What they
// share is the ensemble's id, 128 random bits that nobody else has. It is never
// sent in a handshake: a server names its ensemble by a hash of the id, and proves
// that it has the id by a code over both halves of the handshake, each of which
// holds a fresh challenge.
//
//	the dialler          hello: name, challenge
//	the server it calls  hello: name, challenge, proof over both
//	the dialler          proof over both, if both name the same ensemble
//
// The dialler's stream follows its proof at once, so this takes no round trip of
// its own. What a peer says of its ensemble counts for nothing without the proof:
// Identity.Cluster is set only by it. It does not replace TLS: whoever controls the
// network can take over a connection after the proofs.

const (
	// nameSize is enough for two ensembles not to have the same name by chance.
	nameSize = 8
	// listSize is enough for two lists not to have the same hash by chance.
	listSize      = 8
	challengeSize = 8
	proofSize     = 16
)

// EnsembleName names an ensemble to those who need not belong to it. It is a hash of
// its ClusterID.
type EnsembleName [nameSize]byte

func (n EnsembleName) String() string {
	if n == (EnsembleName{}) {
		return "none"
	}
	return hex.EncodeToString(n[:])
}

// Name returns the name of the ensemble, which tells nothing of the id.
func (c ClusterID) Name() EnsembleName {
	var n EnsembleName
	if c != (ClusterID{}) {
		sum := sha256.Sum256(append([]byte("zkgo ensemble "), c[:]...))
		copy(n[:], sum[:])
	}
	return n
}

// named returns id as it goes into a handshake.
func (id Identity) named() Identity {
	if id.Cluster != (ClusterID{}) {
		id.Ensemble = id.Cluster.Name()
	}
	clear(id.List[listSize:])
	return id
}

// proof is a code that only a member of the ensemble can make.
type proof [proofSize]byte

// challenge makes the proofs of a connection good for that one only.
type challenge [challengeSize]byte

func newChallenge() (c challenge) {
	_, _ = rand.Read(c[:]) // does not fail
	return c
}

// answerProof is what the server that was called proves with: a code over what was
// said and the answer, which has no proof in it yet.
func (c ClusterID) answerProof(said, answer *hello) proof {
	bare := *answer
	bare.proof = proof{}
	return c.sign("answer", said, &bare)
}

// callerProof is what the dialler proves with.
func (c ClusterID) callerProof(said, answer *hello) proof { return c.sign("caller", said, answer) }

func (c ClusterID) sign(role string, said, answer *hello) (p proof) {
	m := hmac.New(sha256.New, c[:])
	m.Write([]byte(role))
	m.Write(said.append(nil))
	m.Write(answer.append(nil))
	copy(p[:], m.Sum(nil))
	return p
}

// provable says whether two servers name the same ensemble, and so have to prove it.
func provable(ours Identity, theirs *Identity) bool {
	return ours.Ensemble != (EnsembleName{}) && ours.Ensemble == theirs.Ensemble
}

// verifyAnswer is the dialler's part: it checks the proof of the server that it
// called, sends its own, and notes in the answer that the other one is a member.
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

// verifyCaller is the other part, after the answer.
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
