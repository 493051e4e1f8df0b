package learner

import (
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/proto"
)

// authMagic begins each QuorumAuthPacket. ZooKeeper's source has −0xa0dbcafecafe1234, which
// overflows in Java to this value.
const authMagic int64 = 0x5f2435013501edcc

// Values of a QuorumAuthPacket's status.
const (
	authInProgress = 0
	authSuccess    = 1
)

// maxToken limits a token of DIGEST-MD5 in bytes.
const maxToken = 64 << 10

// errNoAuth is the cause when the server doesn't speak SASL.
var errNoAuth = errors.New("the server does not use SASL between servers (quorum.auth.enableSasl): leave out the user")

// authenticate logs in with DIGEST-MD5, as SaslQuorumAuthLearner does.
func (c *Conn) authenticate(user, password string) error {
	client := sasl.NewLearnerClient(user, password)
	token, _, err := client.Next(nil)
	for err == nil {
		if err := c.sendToken(token); err != nil {
			return err
		}
		status, answer, err := c.readToken()
		if err != nil {
			return err
		}
		if status != authInProgress && status != authSuccess {
			return fmt.Errorf("%w for user %q", sasl.ErrRefused, user)
		}
		next, done, err := client.Next(answer)
		switch {
		case err != nil:
			return err
		case done && status == authSuccess:
			return nil
		case done || status == authSuccess:
			return errors.New("the server ended the SASL exchange too early")
		}
		token = next
	}
	return err
}

func (c *Conn) sendToken(token []byte) error {
	b := proto.AppendLong(c.out[:0], authMagic)
	b = proto.AppendInt(b, authInProgress)
	return c.write(proto.AppendBuffer(b, token))
}

func (c *Conn) readToken() (status int32, token []byte, err error) {
	var head [8]byte
	if err := c.readFull(head[:]); err != nil {
		return 0, nil, err
	}
	d := proto.NewReader(head[:])
	if magic := d.Long(); magic != authMagic {
		return 0, nil, fmt.Errorf("%w (magic %#x)", errNoAuth, uint64(magic))
	}
	if status, err = readInt(c.r); err != nil {
		return 0, nil, err
	}
	token, err = readBuffer(c.r, maxToken)
	return status, token, err
}
